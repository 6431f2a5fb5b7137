"""No file, name, neighbour or lock keeps a store of files in a bucket waiting, or is told in the wrong words."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.mounts.driving import MIB, MINE, opened, put
from tests.objects import BUCKET, ObjectServer

from workbench.data_folder import DataFolder
from workbench.errors import InvalidRequest, StoreUnavailable
from workbench.model.ids import MountId
from workbench.storage.objects.connecting import BucketAddress
from workbench.storage.objects.locks import CopyLocks
from workbench.storage.opening import FilesPlace

pytestmark = pytest.mark.timeout(120)


async def test_many_uploads_to_one_path_keep_nobody_waiting(data: DataFolder, place: FilesPlace) -> None:
    async with opened(data, place) as store, asyncio.timeout(60):
        uploads = [asyncio.ensure_future(put(store, "same", b"x" * number)) for number in range(40)]
        await store.measure(MountId("another"))
        await asyncio.gather(*uploads)
        assert (await store.save(MINE)).unsaved == 0


async def test_a_file_of_holes_is_not_sent_and_told_as_unsaved(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    async with opened(data, place) as store:
        (data.files / MINE / "real").write_text("x", encoding="ascii")
        for name in ("hole", "zone"):
            with (data.files / MINE / name).open("wb") as file:
                file.truncate(2**40 if name == "hole" else 5 * MIB)
        async with asyncio.timeout(30):
            assert (await store.save(MINE)).unsaved == 1
        assert (await store.measure(MINE)).unsaved == 1
        assert server.keys(place) == {"mine/real": 1, "mine/zone": 5 * MIB}
        shutil.rmtree(data.files / MINE)
        await store.prepare(MINE)
        found = (data.files / MINE / "zone").stat()
        assert (found.st_size, found.st_blocks < 100) == (5 * MIB, True)


async def test_names_that_xml_has_no_words_for_come_back_and_go(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    inside = data.files / MINE
    names = {"\ufffe", "a\uffff", "plain", "\U0001fffe", "\ufffd"}
    async with opened(data, place) as store:
        for name in names:
            (inside / name).write_text("x", encoding="ascii")
        assert (await store.save(MINE)).unsaved == 0
        shutil.rmtree(inside)
        await store.prepare(MINE)
        assert set(os.listdir(inside)) == names
        for name in names - {"plain"}:
            (inside / name).unlink()
        assert (await store.save(MINE)).unsaved == 0
        assert server.keys(place) == {"mine/plain": 1}
        # And such as another program has put there.
        prefix = place.url.removeprefix(f"s3://{BUCKET}/")
        with contextlib.closing(server.client()) as client:
            client.put_object(Bucket=BUCKET, Key=f"{prefix}/mine/odd\uffff", Body=b"x")
        await store.remove(MINE)
        assert server.keys(place) == {}


async def test_closing_waits_no_longer_than_it_says_for_a_lock_of_another_process(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    async with opened(data, place, close_s=0.3) as store:
        (data.files / MINE / "file").write_text("x", encoding="ascii")
        with CopyLocks(data.replicas / "mine.lock", threading.Event()).saver(wait_s=1.0):
            store.save_soon(MINE)
            await asyncio.sleep(0.2)
            began = time.monotonic()
            await store.aclose()
            assert time.monotonic() - began < 5.0
    assert server.keys(place) == {}


async def test_a_file_that_another_is_at_is_left_for_the_next_save(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    async with opened(data, place) as store:
        for name in ("busy", "free"):
            (data.files / MINE / name).write_text("x", encoding="ascii")
        with CopyLocks(data.replicas / "mine.lock", threading.Event()).path(b"busy", wait_s=1.0):
            async with asyncio.timeout(20):
                assert (await store.save(MINE)).unsaved == 1
            assert server.keys(place) == {"mine/free": 1}
        assert (await store.save(MINE)).unsaved == 0


@contextlib.contextmanager
def small_files_only() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    told = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, told)


async def test_a_disk_that_takes_no_more_is_not_told_as_a_store_that_does_not_answer(
    data: DataFolder, place: FilesPlace
) -> None:
    async with opened(data, place) as store:
        await put(store, "large", os.urandom(3 * MIB))
        shutil.rmtree(data.files / MINE)
        with small_files_only(), pytest.raises(StoreUnavailable, match="cannot be written here: File too large"):
            await store.prepare(MINE)
        assert not (data.files / MINE).exists()


async def test_a_path_that_is_too_long_for_the_bucket_is_refused_before_anything_is_sent(
    data: DataFolder, place: FilesPlace
) -> None:
    async with opened(data, place) as store:
        with pytest.raises(InvalidRequest, match="shorten its path"):
            await put(store, "/".join(["n" * 200] * 6), b"x")
        assert not list(data.uploads.glob("*/*"))


async def test_uploads_of_others_in_the_same_bucket_are_not_given_up(data: DataFolder, server: ObjectServer) -> None:
    place = replace(server.new_place(), url=f"s3://{BUCKET}")
    with contextlib.closing(server.client()) as client:
        for key in ("theirs/backup", "mine/half"):
            client.create_multipart_upload(Bucket=BUCKET, Key=key)
        async with opened(data, place) as store:
            await put(store, "file", b"x")
            await asyncio.sleep(1.1)
            assert await store.drop_staged(older_than_s=0.1) == 1
            left = client.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
            assert [one["Key"] for one in left] == ["theirs/backup"]
            await store.remove(MINE)


async def test_a_save_that_waited_while_its_mount_was_removed_leaves_nothing(
    data: DataFolder, place: FilesPlace, server: ObjectServer
) -> None:
    async with opened(data, place) as store:
        await put(store, "file", b"x")
        for _ in range(3):
            store.save_soon(MINE)
            await store.remove(MINE)
            await asyncio.sleep(0.2)
            assert list(data.replicas.iterdir()) == []
            assert not (data.files / MINE).exists()
            await store.prepare(MINE)
            await put(store, "file", b"x")


def test_a_place_is_told_apart_by_its_server_its_bucket_and_its_prefix() -> None:
    address = BucketAddress(bucket="b", prefix="p/", endpoint="http://e", access_key="one", secret_key="two")
    others = [replace(address, **{name: "x"}) for name in ("bucket", "prefix", "endpoint")]
    assert len({one.place for one in (address, *others)}) == 4
    assert replace(address, access_key="another", region="r").place == address.place
