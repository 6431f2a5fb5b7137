"""Writers on both sides of the wall at once: nothing is lost, and nobody sees half of what is put there in one step."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.data_folder import DataFolder
from workbench.model.ids import MountId
from workbench.model.mounts import FilePath, Quota
from workbench.storage.disk import DiskMountStore
from workbench.testing.mount_driving import MINE, names

LASTING_S = 3.0
QUOTA = Quota(bytes=2**30, files=100_000)
LINES = 4000
PIECE = 8192

# A file is whole if it has so many lines, all alike. What is replaced in one step is always whole; what is written in
# place has one kind of byte at any one moment.
INSIDE = f"""
import os, sys, time
kind, me, until = sys.argv[1], sys.argv[2], time.monotonic() + {LASTING_S}
made = 0
while time.monotonic() < until:
    if kind == "replace":
        for name in ("same", f"inside-{{me}}-{{made}}"):
            draft = f".draft-{{me}}"
            with open(draft, "wb") as file:
                file.write(f"inside {{me}} {{made}}\\n".encode() * {LINES})
            os.replace(draft, name)
        made += 1
        time.sleep(0.002)
    elif kind == "in-place":
        with open("in-place", "wb", buffering=0) as file:
            for _ in range(8):
                file.write(bytes([65 + made % 26]) * {PIECE})
                time.sleep(0.001)
        made += 1
        time.sleep(0.01)
    else:
        try:
            with open("same", "rb") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue
        assert len(lines) == {LINES} and len(set(lines)) == 1, lines[:3]
        made += 1
print(made)
"""


@contextlib.contextmanager
def code_inside(folder: Path, *kinds: str) -> Iterator[list[int]]:
    """Processes in the folder; at the end, what each of them has made."""
    running = [
        subprocess.Popen([sys.executable, "-c", INSIDE, kind, str(me)], cwd=folder, stdout=subprocess.PIPE, text=True)
        for me, kind in enumerate(kinds)
    ]
    made: list[int] = []
    try:
        yield made
        made += [int(one.communicate(timeout=30)[0] or "-1") for one in running]
    finally:
        for one in running:
            one.kill()
            one.wait()


@pytest.fixture
def data(short_dir: Path) -> DataFolder:
    data = DataFolder(short_dir / "data")
    data.make()
    (data.files / MINE).mkdir()
    return data


async def upload(store: DiskMountStore, path: str, line: str, name: str) -> None:
    content = f"{line}\n".encode() * LINES
    async with store.stage(MINE, FilePath(path), name=name, quota=QUOTA) as staged:
        for start in range(0, len(content), PIECE):
            await staged.write(content[start : start + PIECE])
        await staged.commit()


async def uploads(store: DiskMountStore, me: int, until: float) -> int:
    made = 0
    while time.monotonic() < until:
        for path in ("same", f"outside-{me}-{made}"):
            await upload(store, path, f"outside {me} {made}", f"writer-{me}")
        made += 1
    return made


async def reads(store: DiskMountStore, until: float) -> int:
    whole = 0
    while time.monotonic() < until:
        async with store.open(MINE, FilePath("same")) as opened:
            content = await asyncio.to_thread(os.pread, opened.descriptor, opened.file.size + 1, 0)
            assert opened.is_unchanged(), "being replaced is no change of what is in it"
        assert is_whole(content)
        whole += 1
    return whole


def is_whole(content: bytes) -> bool:
    lines = content.splitlines()
    return len(lines) == LINES and len(set(lines)) == 1


async def test_nothing_is_lost_and_nothing_is_half(data: DataFolder) -> None:
    store, folder = DiskMountStore(data), data.files / MINE
    await upload(store, "same", "the first", "writer")
    with code_inside(folder, "replace", "replace", "read") as made:
        until = time.monotonic() + LASTING_S
        *uploaded, read = await asyncio.gather(
            uploads(store, 0, until), uploads(store, 1, until), uploads(store, 2, until), reads(store, until)
        )
    assert min(*made, *uploaded, read) > 10
    expected = {f"inside-{me}-{number}" for me in (0, 1) for number in range(made[me])}
    expected |= {f"outside-{me}-{number}" for me, count in enumerate(uploaded) for number in range(count)}
    assert set(await names(store)) == {*expected, "same"} == set(os.listdir(folder))
    for name in expected:
        side, me, number = name.split("-")
        assert (folder / name).read_bytes() == f"{side} {me} {number}\n".encode() * LINES
    assert is_whole((folder / "same").read_bytes())
    assert os.listdir(data.uploads / MINE) == []


async def test_what_is_written_in_place_during_a_read_is_noticed(data: DataFolder) -> None:
    store, folder = DiskMountStore(data), data.files / MINE
    (folder / "in-place").write_bytes(b"A")
    mixed = 0
    with code_inside(folder, "in-place") as made:
        until = time.monotonic() + LASTING_S
        while time.monotonic() < until:
            async with store.open(MINE, FilePath("in-place")) as opened:
                content = await read_slowly(opened.descriptor, opened.file.size)
                belongs_together = opened.is_unchanged()
            if len(set(content)) > 1 or len(content) != opened.file.size:
                assert not belongs_together, (content[:1], content[-1:], len(content), opened.file)
                mixed += 1
    assert made[0] > 10
    assert mixed > 3, "the two met"
    async with store.open(MINE, FilePath("in-place")) as opened:
        await read_slowly(opened.descriptor, opened.file.size)
        assert opened.is_unchanged(), "nobody writes any more"


async def read_slowly(descriptor: int, size: int) -> bytes:
    pieces = []
    for start in range(0, size, PIECE):
        pieces.append(os.pread(descriptor, min(PIECE, size - start), start))
        await asyncio.sleep(0.002)
    return b"".join(pieces)


async def test_an_upload_and_code_that_fight_for_a_name_each_win_whole(data: DataFolder) -> None:
    """A folder and a file of the same name, made and removed by both sides: each answer is one of the two."""
    store, folder = DiskMountStore(data), data.files / MINE
    mount = MountId(MINE)
    until, outcomes = time.monotonic() + 1.0, set[str]()
    while time.monotonic() < until:
        (folder / "place").mkdir()
        (folder / "place" / "kept").write_bytes(b"kept")
        try:
            await upload(store, "place", "x", "fight")
        except Exception as problem:  # noqa: BLE001
            outcomes.add(type(problem).__name__)
        assert (folder / "place" / "kept").read_bytes() == b"kept"
        assert await store.delete(mount, FilePath("place")) == 1
        await upload(store, "place", "x", "fight")
        (folder / "place").unlink()
    assert outcomes == {"Conflict"}
