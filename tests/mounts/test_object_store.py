"""Files in an object store, on a real server that speaks S3: what is saved, what comes back, and what fails how."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import random
import resource
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mounts.driving import MIB, MINE, ROOMY, opened, put
from tests.objects import BUCKET, ObjectServer, running_objects

from workbench.contracts.mounts import MountStore
from workbench.data_folder import DataFolder
from workbench.errors import Conflict, StoreUnavailable
from workbench.guest_trees import remove_tree
from workbench.model.ids import MountId
from workbench.model.mounts import FilePath, FilesWanted
from workbench.storage.opening import FilesPlace, open_mounts


def tree(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every regular file: what is in it, when it was changed, and who may what."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {
        os.fsencode(path.relative_to(folder)).decode("utf-8", "backslashreplace"): (
            path.read_bytes(),
            path.stat().st_mtime_ns,
            path.stat().st_mode & 0o777,
        )
        for path in found
    }


def fill(inside: Path) -> None:
    """As code does that knows no mercy with names."""
    (inside / "deep/er").mkdir(parents=True)
    (inside / "empty").touch()
    (inside / "deep/er/large").write_bytes(random.Random(1).randbytes(20 * MIB + 17))
    (inside / "deep/middle").write_bytes(random.Random(2).randbytes(3 * MIB))
    for name in (
        " lead",
        "trail ",
        "new\nline",
        "back\\slash",
        "100%",
        "%41",
        "a+b&c=d?e#f",
        "ü😀",
        "\u202ertl",
        "Case",
        "case",
    ):
        (inside / name).write_text(name, encoding="utf-8")
    Path(os.fsdecode(os.fsencode(inside) + b"/not-\xff-text")).write_bytes(b"bytes")
    (inside / "run.sh").write_text("#!/bin/sh\n", encoding="ascii")
    (inside / "run.sh").chmod(0o751)
    os.utime(inside / "run.sh", ns=(1, 1_234_567_890_123_456_789))


async def test_a_folder_that_is_lost_comes_back_byte_for_byte(data: DataFolder, place: FilesPlace) -> None:
    inside = data.files / MINE
    async with opened(data, place) as store:
        await put(store, "up/loaded.bin", random.Random(3).randbytes(9 * MIB))
        fill(inside)
        assert (await store.save(MINE)).unsaved == 0
        before = tree(inside)
    assert len(before) > 15
    shutil.rmtree(inside)
    shutil.rmtree(data.replicas)
    async with opened(data, place) as store:
        assert tree(inside) == before
        assert (await store.measure(MINE)).unsaved == 0
    assert not [path for path in data.replicas.iterdir() if "restoring" in path.name]


async def test_many_that_prepare_a_lost_folder_at_once_never_see_half_of_it(
    data: DataFolder, place: FilesPlace
) -> None:
    inside = data.files / MINE
    async with opened(data, place) as store:
        for number in range(60):
            (inside / f"file-{number}").write_bytes(b"x" * number)
        await store.save(MINE)
    shutil.rmtree(inside)
    seen: set[int] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            with contextlib.suppress(FileNotFoundError):
                seen.add(len(os.listdir(inside)))

    watching = threading.Thread(target=watch)
    watching.start()
    stores = [open_mounts(data, place) for _ in range(3)]
    try:
        await asyncio.gather(*(store.prepare(MINE) for store in stores for _ in range(3)))
    finally:
        done.set()
        watching.join()
        for store in stores:
            await store.aclose()
    assert len(os.listdir(inside)) == 60
    assert seen <= {60}


async def test_what_is_new_changed_or_gone_inside_is_so_in_the_bucket_after_a_save(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    async with opened(data, place) as store:
        (inside / "stays").write_text("as it is", encoding="ascii")
        (inside / "changes").write_text("one", encoding="ascii")
        (inside / "folder").mkdir()
        (inside / "folder/goes").write_text("away", encoding="ascii")
        (inside / "becomes").write_text("a folder", encoding="ascii")
        await store.save(MINE)
        assert server.keys(place).keys() == {f"mine/{name}" for name in ("stays", "changes", "folder/goes", "becomes")}
        (inside / "changes").write_text("two!", encoding="ascii")
        shutil.rmtree(inside / "folder")
        (inside / "becomes").unlink()
        (inside / "becomes").mkdir()
        (inside / "becomes/this").write_text("one", encoding="ascii")
        assert (await store.measure(MINE)).unsaved == 2
        assert (await store.save(MINE)).unsaved == 0
        assert server.keys(place) == {"mine/stays": 8, "mine/changes": 4, "mine/becomes/this": 3}


@pytest.fixture
def data_on_disk() -> Iterator[DataFolder]:
    # In memory, as /tmp may be, nobody keeps the times of what is written through a mapping.
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/var/tmp"))
    data = DataFolder(folder / "data")
    data.make()
    yield data
    assert remove_tree(folder)


async def test_a_change_through_a_mapping_is_noticed_also_if_a_save_was_in_between(
    data_on_disk: DataFolder, place: FilesPlace
) -> None:
    data, inside = data_on_disk, data_on_disk.files / MINE
    async with opened(data, place) as store:
        (inside / "array").write_bytes(bytes(4096))
        with (inside / "array").open("r+b") as file, mmap.mmap(file.fileno(), 4096) as mapped:
            mapped[0] = 1
            await store.save(MINE)
            mapped[0] = 2
            await store.save(MINE)
    shutil.rmtree(inside)
    async with opened(data, place):
        assert (inside / "array").read_bytes()[0] == 2


async def test_a_file_that_is_written_all_the_time_is_never_saved_in_half(data: DataFolder, place: FilesPlace) -> None:
    inside = data.files / MINE
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            block = number.to_bytes(8) * (MIB // 8)
            with (inside / "busy").open("r+b") as file:
                for _ in range(12):
                    file.write(block)

    async with opened(data, place) as store:
        (inside / "busy").write_bytes(bytes(12 * MIB))
        await store.save(MINE)
        writing = threading.Thread(target=write)
        writing.start()
        try:
            for _ in range(5):
                await store.save(MINE)
        finally:
            done.set()
            writing.join()
        kept = data.path / "kept"
        (data.files / MINE).rename(kept)
        await store.prepare(MINE)
        content = (inside / "busy").read_bytes()
        assert len(content) == 12 * MIB
        assert len({content[at : at + 8] for at in range(0, len(content), 8)}) == 1
        # And what was left comes with the next one.
        shutil.rmtree(inside)
        kept.rename(inside)
        assert (await store.save(MINE)).unsaved == 0


async def test_a_link_is_never_followed_and_never_sent(
    data: DataFolder, place: FilesPlace, server: ObjectServer, tmp_path: Path
) -> None:
    inside = data.files / MINE
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("canary", encoding="ascii")
    async with opened(data, place) as store:
        (inside / "was-a-file").write_text("harmless", encoding="ascii")
        await store.save(MINE)
        (inside / "was-a-file").unlink()
        (inside / "was-a-file").symlink_to("/etc/passwd")
        (inside / "passwd").symlink_to("/etc/passwd")
        (inside / "folder").symlink_to(tmp_path / "outside")
        os.mkfifo(inside / "fifo")
        (inside / "harmless").write_text("x", encoding="ascii")
        async with asyncio.timeout(20):
            assert (await store.save(MINE)).unsaved == 0
    assert server.keys(place) == {"mine/harmless": 1}


async def test_links_that_are_swapped_during_saves_send_nothing_of_what_they_lead_to(
    data: DataFolder, place: FilesPlace, server: ObjectServer, tmp_path: Path
) -> None:
    inside = data.files / MINE
    (tmp_path / "secret").write_text("canary" * 1000, encoding="ascii")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (inside / "new").symlink_to(tmp_path / "secret")
            (inside / "new").rename(inside / "swapped")
            (inside / "new").write_text("mine", encoding="ascii")
            (inside / "new").rename(inside / "swapped")

    async with opened(data, place) as store:
        swapping = threading.Thread(target=swap)
        swapping.start()
        try:
            for _ in range(15):
                await store.save(MINE)
                assert set(server.keys(place).values()) <= {0, 4}
        finally:
            done.set()
            swapping.join()


async def test_a_store_that_is_away_refuses_uploads_and_nothing_is_half(data: DataFolder, tmp_path: Path) -> None:
    with running_objects() as server:
        place, inside = server.new_place(), data.files / MINE
        async with opened(data, place) as store:
            await put(store, "before", b"one")
            server.stop()
            with pytest.raises(StoreUnavailable, match="WORKBENCH_FILES_ENDPOINT"):
                await put(store, "during", b"two")
            with pytest.raises(StoreUnavailable):
                await put(store, "before", b"other")
            found = await store.list(MINE, FilesWanted())
            assert [file.path for file in found.files] == ["before"]
            assert (inside / "before").read_bytes() == b"one"
            # Code goes on, and a new mount is not taken for an empty one.
            (inside / "by-code").write_text("three", encoding="ascii")
            with pytest.raises(StoreUnavailable):
                await store.save(MINE)
            with pytest.raises(StoreUnavailable):
                await store.prepare(MountId("other"))
            with pytest.raises(StoreUnavailable, match="is deleted in /mnt/files, but not"):
                await store.delete(MINE, FilePath("before"))
            assert (await store.measure(MINE)).unsaved == 1
            server.start()
            assert (await store.save(MINE)).unsaved == 0
            assert server.keys(place) == {"mine/by-code": 5}


async def test_an_upload_that_finds_no_place_leaves_nothing_in_the_bucket(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    async with opened(data, place) as store:
        (data.files / MINE / "folder").mkdir()
        (data.files / MINE / "folder/inside").write_text("x", encoding="ascii")
        await store.save(MINE)
        with pytest.raises(Conflict):
            await put(store, "folder", b"not a folder")
        assert server.keys(place) == {"mine/folder/inside": 1}


async def test_what_cannot_be_named_in_the_bucket_is_told_as_unsaved(data: DataFolder, place: FilesPlace) -> None:
    long = "/".join(["n" * 200] * 6)
    async with opened(data, place) as store:
        (data.files / MINE / long).parent.mkdir(parents=True)
        (data.files / MINE / long).write_text("x", encoding="ascii")
        (data.files / MINE / "short").write_text("x", encoding="ascii")
        assert (await store.save(MINE)).unsaved == 1
        assert (await store.measure(MINE)).unsaved == 1


async def test_a_folder_that_cannot_be_read_is_not_taken_for_deleted(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    # As root nothing is closed; a folder that is too deep to be named is not read either.
    inside = data.files / MINE
    async with opened(data, place) as store:
        (inside / "deep").mkdir()
        (inside / "deep/file").write_text("x", encoding="ascii")
        await store.save(MINE)
        at = os.open(inside / "deep", os.O_RDONLY)
        for _ in range(20):
            os.mkdir("d" * 250, dir_fd=at)
            below = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
        assert not (await store.save(MINE)).complete
        assert server.keys(place) == {"mine/deep/file": 1}


async def test_a_large_file_goes_both_ways_through_little_memory(data: DataFolder, place: FilesPlace) -> None:
    inside, size = data.files / MINE, 300 * MIB
    async with opened(data, place) as store:
        await put(store, "small", b"x")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with (inside / "large").open("wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(4096) * 256)
        assert (await store.save(MINE)).unsaved == 0
        (inside / "large").rename(data.path / "large")
        shutil.rmtree(inside)
        await store.prepare(MINE)
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 32 * 1024
    assert os.stat(inside / "large").st_size == size
    with (inside / "large").open("rb") as one, (data.path / "large").open("rb") as other:
        while piece := one.read(MIB):
            assert piece == other.read(MIB)


@pytest.mark.parametrize(
    ("wrong", "setting"),
    [
        ({"secret_key": "not-the-one"}, "WORKBENCH_FILES_SECRET_KEY"),
        ({"access_key": "nobody"}, "WORKBENCH_FILES_ACCESS_KEY"),
        ({"url": "s3://no-such-bucket/x"}, "WORKBENCH_FILES_URL"),
        ({"endpoint": "http://127.0.0.1:1"}, "WORKBENCH_FILES_ENDPOINT"),
    ],
)
async def test_a_wrong_setting_is_named_and_no_secret_is(
    data: DataFolder, place: FilesPlace, wrong: dict[str, str], setting: str
) -> None:
    store = open_mounts(data, replace(place, **wrong))
    try:
        with pytest.raises(StoreUnavailable) as caught:
            await store.prepare(MINE)
        assert setting in caught.value.message
        assert place.secret_key not in caught.value.message
        assert not (data.files / MINE).exists()
    finally:
        await store.aclose()


async def test_credentials_of_the_environment_and_of_the_home_folder_are_not_used(
    data: DataFolder, place: FilesPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    for name in ("credentials", "config"):
        (tmp_path / ".aws" / name).write_text(
            f"[default]\naws_access_key_id = {place.access_key}\naws_secret_access_key = {place.secret_key}\n",
            encoding="ascii",
        )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_PROFILE", "another")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", place.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", place.secret_key)
    store = open_mounts(data, replace(place, access_key="nobody", secret_key="nothing"))
    try:
        with pytest.raises(StoreUnavailable, match="refuses our credentials"):
            await store.prepare(MINE)
    finally:
        await store.aclose()


async def test_a_mount_that_is_removed_leaves_no_object_and_no_half_upload(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    prefix = place.url.removeprefix(f"s3://{BUCKET}/")
    async with opened(data, place) as store:
        await put(store, "one", b"x")
        await put(store, "two/three", b"x")
        with contextlib.closing(server.client()) as client:
            begun = client.create_multipart_upload(Bucket=BUCKET, Key=f"{prefix}/mine/half")
            client.upload_part(
                Bucket=BUCKET, Key=f"{prefix}/mine/half", UploadId=begun["UploadId"], PartNumber=1, Body=b"x"
            )
        assert server.unfinished(place) == 1
        await store.remove(MINE)
        assert server.keys(place) == {}
        assert server.unfinished(place) == 0
        assert list(data.replicas.iterdir()) == []


async def test_a_key_that_leads_elsewhere_is_not_brought_back(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    prefix = place.url.removeprefix(f"s3://{BUCKET}/")
    with contextlib.closing(server.client()) as client:
        # As they come out of our own encoding; the server itself resolves plain ones.
        for key in ("%2E%2E/%2E%2E/escaped", "%2E%2E%2Fescaped", "nul%00", "good"):
            client.put_object(Bucket=BUCKET, Key=f"{prefix}/mine/{key}", Body=b"x")
    async with opened(data, place) as store:
        found = await store.list(MINE, FilesWanted())
        assert [file.path for file in found.files] == ["good"]
    assert not list(data.path.rglob("*escaped*"))


async def test_uploads_and_saves_at_once_end_with_what_lies_here(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    stores = [open_mounts(data, place) for _ in range(2)]
    await stores[0].prepare(MINE)

    async def upload(store: MountStore, number: int) -> None:
        for turn in range(8):
            path, content = FilePath(f"file-{turn % 3}"), bytes([number]) * (turn + number * 100)
            async with store.stage(MINE, path, name=f"up-{number}-{turn}", quota=ROOMY) as staged:
                await staged.write(content)
                await staged.commit()

    async def save(store: MountStore) -> None:
        for _ in range(8):
            await store.save(MINE)

    try:
        await asyncio.gather(
            *(upload(store, number) for number, store in enumerate(stores * 2, 1)), *(save(store) for store in stores)
        )
        assert (await stores[0].save(MINE)).unsaved == 0
        here = tree(inside)
        shutil.rmtree(inside)
        await stores[1].prepare(MINE)
        assert tree(inside) == here
    finally:
        for store in stores:
            await store.aclose()
