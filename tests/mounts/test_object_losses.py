"""What the bucket has is never deleted because something here was lost, moved about, or belongs to another bucket."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.mounts.driving import MIB, MINE, ROOMY, opened, put, road_to
from tests.objects import BUCKET, ObjectServer

from workbench.data_folder import DataFolder
from workbench.errors import StoreUnavailable
from workbench.model.mounts import FilePath
from workbench.storage.objects.restoring import Stored, older_of_two
from workbench.storage.opening import FilesPlace, open_mounts

pytestmark = pytest.mark.timeout(120)

KEPT = {f"mine/keep/{number}": 1 for number in range(5)}


async def fill(data: DataFolder, place: FilesPlace) -> None:
    """Five files, in both places."""
    async with opened(data, place) as store:
        (data.files / MINE / "keep").mkdir()
        for number in range(5):
            (data.files / MINE / f"keep/{number}").write_text("x", encoding="ascii")
        assert (await store.save(MINE)).unsaved == 0


def other(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "other")
    folder.make()
    return folder


async def test_a_folder_that_is_lost_during_an_upload_is_brought_back_and_nothing_is_dropped(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    await fill(data, place)
    async with opened(data, place) as store:
        async with store.stage(MINE, FilePath("new"), name="up", quota=ROOMY) as staged:
            await staged.write(b"n")
            shutil.rmtree(data.files / MINE)
            await staged.commit()
        assert (await store.save(MINE)).unsaved == 0
    assert server.keys(place) == KEPT | {"mine/new": 1}
    assert len(list((data.files / MINE).rglob("*"))) == 7


@pytest.mark.parametrize("is_prepared", [True, False])
async def test_a_folder_that_was_made_without_the_bucket_gets_what_it_lacks(
    data: DataFolder, place: FilesPlace, server: ObjectServer, tmp_path: Path, is_prepared: bool
) -> None:
    await fill(data, place)
    late = other(tmp_path)
    async with opened(late, FilesPlace()) as disk:
        await put(disk, "other", b"oo")
        await put(disk, "keep/1", b"mine")
    (late.files / MINE / "keep/3").mkdir()
    store = open_mounts(late, place)
    try:
        if is_prepared:
            await store.prepare(MINE)
            assert (late.files / MINE / "keep/2").read_text(encoding="ascii") == "x"
        assert (await store.measure(MINE)).unsaved > 0
        assert (await store.save(MINE)).unsaved == 0
    finally:
        await store.aclose()
    assert server.keys(place) == KEPT | {"mine/other": 2, "mine/keep/1": 4}
    assert sorted(os.listdir(late.files / MINE / "keep")) == ["0", "1", "2", "3", "4"]
    assert (late.files / MINE / "keep/3").is_dir()


async def test_a_folder_that_somebody_made_anew_gets_what_it_lacks_and_later_deletions_count(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    await fill(data, place)
    inside = data.files / MINE
    async with opened(data, place) as store:
        # As a host does that finds none; by its number alone it may be the same.
        shutil.rmtree(inside)
        inside.mkdir(mode=0o700)
        assert (await store.save(MINE)).unsaved == 0
        assert server.keys(place) == KEPT
        assert len(os.listdir(inside / "keep")) == 5
        (inside / "keep/1").unlink()
        assert (await store.save(MINE)).unsaved == 0
        assert server.keys(place).keys() == KEPT.keys() - {"mine/keep/1"}


async def test_a_folder_that_is_removed_during_saves_costs_no_object(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    async with opened(data, place) as store:
        for number in range(300):
            (inside / f"file-{number:03}").touch()
        await store.save(MINE)
        removing = threading.Thread(target=shutil.rmtree, args=(inside,))
        removing.start()
        while inside.exists():
            await store.save(MINE)
        removing.join()
        await store.save(MINE)
        assert len(server.keys(place)) == 300
        await store.prepare(MINE)
        assert len(os.listdir(inside)) == 300


async def test_what_code_writes_right_after_an_upload_is_saved(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    def append(path: Path) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError):
                written = os.open(path, os.O_WRONLY | os.O_APPEND)
                os.write(written, b"more")
                os.close(written)
                return

    async with opened(data, place) as store:
        for number in range(10):
            writing = threading.Thread(target=append, args=(data.files / MINE / f"{number}",))
            writing.start()
            await put(store, f"{number}", b"upload")
            writing.join()
        assert (await store.save(MINE)).unsaved == 0
        assert set(server.keys(place).values()) == {10}


async def test_another_bucket_is_sent_everything_and_the_first_one_keeps_it(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    await fill(data, place)
    moved = server.new_place()
    async with opened(data, moved) as store:
        assert (await store.measure(MINE)).unsaved == 5
        assert (await store.save(MINE)).unsaved == 0
    assert server.keys(moved) == server.keys(place) == KEPT


@contextlib.contextmanager
def when_looked_into(folder: Path, act: Callable[[], object]) -> Iterator[None]:
    """Done once, by another thread, as soon as somebody opens the folder."""
    watch = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC)
    assert ctypes.CDLL(None).inotify_add_watch(watch, os.fsencode(folder), 0x20) > 0

    def wait() -> None:
        os.read(watch, 4096)
        act()

    acting = threading.Thread(target=wait)
    acting.start()
    try:
        yield
    finally:
        os.listdir(folder)
        acting.join()
        os.close(watch)


async def test_a_file_that_is_moved_during_a_save_is_in_the_bucket_after_it(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    async with opened(data, place) as store:
        # In the order in which they are looked through: what goes from the last to the first meanwhile is seen in none.
        for name in ("a", "m", "z"):
            (inside / name).mkdir()
        for number in range(200):
            (inside / f"m/{number}").touch()
        (inside / "z/file").write_text("precious", encoding="ascii")
        assert (await store.save(MINE)).unsaved == 0
        for _ in range(3):
            with when_looked_into(inside / "m", lambda: (inside / "z/file").rename(inside / "a/file")):
                await store.save(MINE)
            assert server.keys(place).keys() & {"mine/a/file", "mine/z/file"}
            (inside / "a/file").rename(inside / "z/file")
            assert (await store.save(MINE)).unsaved == 0
            assert {name for name in server.keys(place) if "m/" not in name} == {"mine/z/file"}


async def test_what_is_deleted_goes_in_the_end_also_if_something_is_always_moved(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            (inside / "busy").mkdir()
            (inside / "busy").rmdir()

    async with opened(data, place) as store:
        (inside / "gone").write_text("x", encoding="ascii")
        await store.save(MINE)
        (inside / "gone").unlink()
        disturbing = threading.Thread(target=disturb)
        disturbing.start()
        try:
            for _ in range(12):
                await store.save(MINE)
        finally:
            done.set()
            disturbing.join()
        assert server.keys(place) == {}


async def test_an_upload_whose_answer_is_lost_is_put_right(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    with road_to(server.endpoint) as road:
        async with opened(data, replace(place, endpoint=road.endpoint)) as store:
            store.retry_saves()
            await put(store, "file", b"old")
            road.loses_answers = True
            with pytest.raises(StoreUnavailable):
                await put(store, "file", b"newer")
            with pytest.raises(StoreUnavailable):
                await put(store, "never", b"seen")
            road.loses_answers = False
            assert (data.files / MINE / "file").read_bytes() == b"old"
            async with asyncio.timeout(30):
                while server.keys(place) != {"mine/file": 3}:
                    store.retry_saves()
                    await asyncio.sleep(0.1)


async def test_a_key_that_is_no_name_of_a_file_is_left_to_who_made_it(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    prefix = place.url.removeprefix(f"s3://{BUCKET}/")
    with contextlib.closing(server.client()) as client:
        client.put_object(Bucket=BUCKET, Key=f"{prefix}/mine/%2E%2E/odd", Body=b"x")
    async with opened(data, place) as store:
        assert (await store.save(MINE)).unsaved == 0
    assert server.keys(place) == {"mine/%2E%2E/odd": 1}


def test_of_a_file_and_a_folder_of_one_name_the_newer_is_brought_back() -> None:
    def stored(**hours: int) -> list[Stored]:
        paths = {name.replace("_", "/"): hour for name, hour in hours.items()}
        return [Stored(path, path.encode(), datetime(2026, 1, 1, hour, tzinfo=UTC)) for path, hour in paths.items()]

    assert older_of_two(stored(a=2, a_b=1, a_c_d=1, b=1)) == {b"a/b", b"a/c/d"}
    assert older_of_two(stored(a=2, a_b=1, a_c_d=3, b=1)) == {b"a"}
    assert older_of_two(stored(a=1, b=2, c_d=3)) == set()


async def test_a_folder_becomes_a_file_and_a_file_a_folder_in_one_save(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    async with opened(data, place) as store:
        (inside / "file").write_text("one", encoding="ascii")
        (inside / "folder").mkdir()
        (inside / "folder/file").write_text("three", encoding="ascii")
        assert (await store.save(MINE)).unsaved == 0
        (inside / "file").rename(inside / "kept")
        (inside / "file").mkdir()
        (inside / "kept").rename(inside / "file/kept")
        (inside / "folder/file").rename(inside / "kept")
        (inside / "folder").rmdir()
        (inside / "kept").rename(inside / "folder")
        assert (await store.save(MINE)).unsaved == 0
        assert server.keys(place) == {"mine/file/kept": 3, "mine/folder": 5}


async def test_a_call_that_deletes_what_is_being_sent_ends_with_no_object(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    async with opened(data, place) as store:
        (inside / "large").write_bytes(os.urandom(MIB) * 60)
        saving = asyncio.ensure_future(store.save(MINE))
        async with asyncio.timeout(20):
            while not server.unfinished(place):
                await asyncio.sleep(0.005)
        await store.delete(MINE, FilePath("large"))
        assert server.keys(place) == {}
        await saving
        assert server.keys(place) == {}
