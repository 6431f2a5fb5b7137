"""What killed servers leave of uploads: nothing that nobody can go on with, and no room that nobody needs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.data_folder import DataFolder
from workbench.errors import QuotaExceeded
from workbench.model.ids import MountId
from workbench.model.mounts import FilePath, Quota
from workbench.storage import leftovers
from workbench.storage.disk import DiskMountStore

MINE = MountId("mine")
PATH = FilePath("a")
QUOTA = Quota(bytes=64 * 1024 * 1024, files=100)
_KILLED = """
import asyncio, os, sys
from pathlib import Path
from workbench.data_folder import DataFolder
from workbench.model.mounts import Quota
from workbench.storage.disk import DiskMountStore
async def main():
    store = DiskMountStore(DataFolder(Path(sys.argv[1])))
    quota = Quota(bytes=2**26, files=100)
    async with store.stage("mine", "a", name=sys.argv[2], quota=quota, size=2**26 - 2**22) as staged:
        await staged.write(b"begun")
        print("begun", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


def _kill_in_the_middle(folder: Path, name: str) -> Path:
    with subprocess.Popen([sys.executable, "-c", _KILLED, str(folder), name], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        child.kill()
    left = folder / "uploads" / "mine" / name
    assert left.stat().st_blocks * 512 > 2**25
    a_while_ago = time.time() - 60
    os.utime(left, (a_while_ago, a_while_ago))
    return left


async def _put(store: DiskMountStore, name: str) -> None:
    async with store.stage(MINE, PATH, name=name, quota=QUOTA, size=2**25) as staged:
        await staged.write(b"x" * 2**25)
        await staged.commit()


async def test_what_a_killed_server_had_of_an_upload_in_one_go_takes_no_room(tmp_path: Path) -> None:
    left = _kill_in_the_middle(tmp_path, "once-1")
    store = DiskMountStore(DataFolder(tmp_path))
    assert (await store.measure(MINE)).coming_bytes > 2**25
    await _put(store, "once-2")
    assert not left.exists()
    assert (await store.measure(MINE)).coming_bytes == 0


async def test_what_can_be_gone_on_with_stays_and_takes_the_room_of_what_came(tmp_path: Path) -> None:
    left = _kill_in_the_middle(tmp_path, "up-1")
    store = DiskMountStore(DataFolder(tmp_path))
    await _put(store, "once-2")
    assert left.read_bytes() == b"begun"
    assert left.stat().st_blocks * 512 <= 4096


async def test_one_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    store, other = DiskMountStore(DataFolder(tmp_path)), DiskMountStore(DataFolder(tmp_path))
    async with store.stage(MINE, FilePath("b"), name="once-1", quota=QUOTA, size=2**24) as staged:
        await staged.write(b"whole")
        a_while_ago = time.time() - 60
        os.utime(tmp_path / "uploads" / "mine" / "once-1", (a_while_ago, a_while_ago))
        await _put(other, "once-2")
        assert (await staged.commit()).size == 5


async def test_uploads_that_come_to_no_end_are_bounded_in_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "MOST_STAGED", 6)
    store = DiskMountStore(DataFolder(tmp_path))
    for number in range(3):
        async with store.stage(MINE, PATH, name=f"up-{number}", quota=QUOTA) as staged:
            await staged.write(b"x")
        await store.remark(MINE, name=f"up-{number}", text="begun")
    with pytest.raises(QuotaExceeded, match="DELETE"):
        async with store.stage(MINE, PATH, name="up-9", quota=QUOTA):
            pass
    with pytest.raises(QuotaExceeded):
        await store.remark(MINE, name="up-9", text="begun")
    # Those that are there can still be gone on with.
    async with store.stage(MINE, PATH, name="up-0", quota=QUOTA) as staged:
        await staged.write(b"y")
        await staged.commit()
    await store.remark(MINE, name="up-0", text="done")


async def test_what_is_known_of_finished_uploads_makes_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "MOST_STAGED", 3)
    store = DiskMountStore(DataFolder(tmp_path))
    for number in range(3):
        await store.remark(MINE, name=f"up-{number}", text="done")
    with pytest.raises(QuotaExceeded):
        await store.remark(MINE, name="up-3", text="done")
    long_ago = time.time() - 7200
    for kept in (tmp_path / "uploads" / "mine").iterdir():
        os.utime(kept, (long_ago, long_ago))
    await _put(store, "once-1")
    await store.remark(MINE, name="up-3", text="done")
    assert await store.remarked(MINE, name="up-0") == ""
