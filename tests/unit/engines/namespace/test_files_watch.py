"""How much /mnt/files holds, and when that is looked at."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from workbench.contracts.engine import OverQuota, SandboxSpec
from workbench.engines.namespace import files_watch
from workbench.engines.namespace.files_watch import FilesWatch, _Free
from workbench.engines.namespace.quota import FilesQuota
from workbench.guest_trees import TreeSize
from workbench.model.ids import new_sandbox_id
from workbench.model.tier import STANDARD, Tier

MIB = 2**20


@dataclass(frozen=True)
class Watched:
    spec: SandboxSpec
    tier: Tier
    root_pid: int = 0
    quota: FilesQuota = field(default_factory=FilesQuota)


class Disk:
    """What is free on it, to be set by the test."""

    def __init__(self) -> None:
        self.bytes, self.inodes = 1000 * MIB, 1_000_000


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    (tmp_path / "mine").mkdir()
    tier = replace(STANDARD, files_bytes=MIB, files_inodes=10)
    return Watched(SandboxSpec(id=new_sandbox_id(), tier=tier, files=tmp_path / "mine"), tier)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(files_watch, "_free", lambda _folder: _Free(disk.bytes, disk.inodes))
    return disk


async def test_a_disk_that_became_fuller_is_looked_at(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    assert await seen(watch, watched) is None
    disk.bytes -= 256 * MIB
    over = await seen(watch, watched)
    assert over is not None
    assert (over.bytes, over.files) == (_blocks(watched), 1)
    assert (over.quota.bytes, over.quota.files) == (MIB, 10)


async def test_files_that_are_over_are_looked_at_until_they_are_not(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    await watch.look([watched])
    disk.bytes -= 256 * MIB
    assert await seen(watch, watched) is not None
    (watched.spec.files / "large").unlink()
    async with asyncio.timeout(10):
        while not watched.quota.wants_look(time.monotonic()):
            await asyncio.sleep(0.001)
    assert await seen(watch, watched) is None
    _write(watched.spec.files / "large", 2 * MIB)
    assert await seen(watch, watched) is None, "the disk is as it was"


async def test_at_the_quota_is_not_over_it(watched: Watched, disk: Disk) -> None:
    """As an upload that the quota just had room for leaves it, whatever the file system adds to it."""
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "exact", MIB)
    exact = replace(watched, tier=replace(watched.tier, files_inodes=1))
    assert await watch.look_at(exact) == ""
    assert exact.quota.over is None
    (watched.spec.files / "one more").touch()
    assert await watch.look_at(exact) == ""
    assert exact.quota.over is not None


async def test_who_wants_to_know_at_once_sees_that_the_disk_became_fuller_and_hides_it_from_nobody(
    watched: Watched, disk: Disk
) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    await watch.look([watched])
    assert not watch.may_be_fuller()
    disk.bytes -= 256 * MIB
    assert watch.may_be_fuller()
    assert watch.may_be_fuller()
    assert await seen(watch, watched) is not None
    assert not watch.may_be_fuller()


async def test_space_that_came_back_does_not_hide_the_next_loss(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    await watch.look([watched])
    disk.bytes += 500 * MIB
    assert await seen(watch, watched) is None
    disk.bytes -= 256 * MIB
    assert await seen(watch, watched) is not None


async def test_space_that_came_back_between_two_looks_does_not_hide_the_next_loss_of_a_new_sandbox(
    watched: Watched, disk: Disk
) -> None:
    """An old one ended, its files were removed, and a new one has taken as much before the next look."""
    watch = FilesWatch(watched.spec.files.parent)
    await watch.look([])
    disk.bytes += 500 * MIB
    watched = replace(watched, quota=await watch.begin(watched.spec.files, watched.tier))
    disk.bytes -= 500 * MIB
    _write(watched.spec.files / "large", 2 * MIB)
    assert await seen(watch, watched) is not None


async def test_all_are_looked_at_now_and_then_though_the_disk_is_as_full_as_before(
    watched: Watched, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one takes may be what another gave back."""
    monkeypatch.setattr(files_watch, "_ROUND_S", 0.0)
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    assert await seen(watch, watched) is not None


async def test_files_within_the_tier_are_left_alone(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "small", MIB // 2)
    await watch.look([watched])
    disk.bytes -= 512 * MIB
    assert await seen(watch, watched) is None


async def test_holes_are_not_counted_as_full(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    with (watched.spec.files / "sparse").open("wb") as file:
        file.truncate(10**12)
    await watch.look([watched])
    disk.bytes -= 256 * MIB
    assert await seen(watch, watched) is None


async def test_too_many_files_are_noticed_by_the_disk_running_out_of_them(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    for number in range(12):
        (watched.spec.files / str(number)).touch()
    assert await seen(watch, watched) is None
    disk.inodes -= 20_000
    over = await seen(watch, watched)
    assert over is not None
    assert over.files == 12


async def test_who_writes_on_beyond_the_bound_is_ended_at_the_next_look(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _keep(watched.spec.files / "large", 66 * MIB)
    await watch.look([watched])
    disk.bytes -= 256 * MIB
    assert await seen(watch, watched) is not None
    assert await seen(watch, watched) is not None
    _keep(watched.spec.files / "more", 64 * MIB)
    disk.bytes -= 256 * MIB
    ((found, reason),) = await watch.look([watched])
    assert found is watched
    assert reason == f"disk full: /mnt/files holds {_blocks(watched)} of {MIB} bytes"


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_next_sandbox_on_files_that_were_left_too_full_may_tidy_them_up(
    watched: Watched, disk: Disk, restarted: bool
) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _keep(watched.spec.files / "large", 200 * MIB)
    assert [await watch.look_at(watched), bool(await watch.look_at(watched))] == ["", True]
    watch = FilesWatch(watched.spec.files.parent) if restarted else watch
    following = replace(watched, quota=await watch.begin(watched.spec.files, watched.tier))
    assert following.quota.over is not None, "known before anything runs"
    assert [await watch.look_at(following) for _ in range(3)] == [""] * 3
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(following.quota.wait(), 0.01)
    (watched.spec.files / "large").unlink()
    assert await watch.look_at(following) == ""
    assert await seen(watch, following) is None
    _keep(watched.spec.files / "large", 200 * MIB)
    assert [await watch.look_at(following), bool(await watch.look_at(following))] == ["", True], (
        "it is as any other now"
    )


async def test_files_that_take_too_long_to_count_do_not_hold_up_a_new_sandbox(
    watched: Watched, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(files_watch, "_FIRST_LOOK_S", 0.05)
    monkeypatch.setattr(files_watch, "measure_tree", lambda _path, most_entries: _wait(let_go))
    (watched.spec.files / "one").touch()
    watch = FilesWatch(watched.spec.files.parent)
    quota = await watch.begin(watched.spec.files, watched.tier)
    assert quota.wants_look(0.0), "it is looked at while it runs"
    let_go.set()
    await watch.aclose()


async def test_a_look_that_nobody_waits_for_any_more_is_followed_by_one_at_most_and_takes_no_common_thread(
    watched: Watched, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, looks = threading.Event(), list[str]()

    def measure(_path: Path, most_entries: int) -> TreeSize:
        looks.append(threading.current_thread().name)
        return _wait(let_go)

    monkeypatch.setattr(files_watch, "measure_tree", measure)
    watch = FilesWatch(watched.spec.files.parent)
    for _ in range(20):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watch.look_at(watched), 0.01)
    assert len(looks) == 1
    let_go.set()
    assert await asyncio.wait_for(watch.look_at(watched), 10) == ""
    await watch.aclose()
    assert len(looks) == 2
    assert all(name.startswith("files") for name in looks)


async def test_a_file_without_a_name_counts_for_as_long_as_it_is_open(watched: Watched, disk: Disk) -> None:
    """Held by a process of the sandbox, which here is the test itself."""
    mine = replace(watched, root_pid=os.getpid())
    watch = FilesWatch(watched.spec.files.parent)
    path = watched.spec.files / "unlinked"
    _write(path, 2 * MIB)
    with path.open("rb"):
        path.unlink()
        await watch.look([mine])
        disk.bytes -= 256 * MIB
        over = await seen(watch, mine)
        assert over is not None
        assert over.bytes >= 2 * MIB
        nobody = replace(watched, quota=FilesQuota())
        assert await watch.look_at(nobody) == ""
        assert nobody.quota.over is None, "it is nobody's in a sandbox without processes"
    assert await watch.look_at(mine) == ""
    assert mine.quota.over is None


async def test_what_lies_deeper_than_a_path_can_say_is_counted(watched: Watched, disk: Disk) -> None:
    watched = replace(watched, tier=replace(watched.tier, files_inodes=100))
    watch = FilesWatch(watched.spec.files.parent)
    folder = os.open(watched.spec.files, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    with open(os.open("data", os.O_CREAT | os.O_WRONLY, dir_fd=folder), "wb") as file:
        file.write(os.urandom(2 * MIB))
    os.close(folder)
    await watch.look([watched])
    disk.bytes -= 256 * MIB
    assert await seen(watch, watched) is not None


async def test_files_that_cannot_be_measured_are_looked_at_again_and_then_count_as_too_many(
    watched: Watched, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    complete = False
    monkeypatch.setattr(files_watch, "measure_tree", lambda _path, most_entries: TreeSize(0, 0, complete))
    await watch.look([watched])
    disk.bytes -= 256 * MIB
    assert await watch.look([watched]) == [], "a folder may just have been moved"
    ((_, reason),) = await watch.look([watched])
    assert "cannot be measured" in reason
    complete = True
    assert await watch.look([watched]) == []
    complete = False
    assert await watch.look([watched]) == [], "it could be, so it is not looked at"


async def seen(watch: FilesWatch, watched: Watched) -> OverQuota | None:
    """What a look finds that ends nobody."""
    assert await watch.look([watched]) == []
    return watched.quota.over


def _wait(let_go: threading.Event) -> TreeSize:
    assert let_go.wait(10)
    return TreeSize(0, 0, True)


def _keep(path: Path, size: int) -> None:
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _blocks(watched: Watched) -> int:
    return sum(path.stat().st_blocks * 512 for path in watched.spec.files.iterdir())


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(os.urandom(size))
        os.fsync(file.fileno())
