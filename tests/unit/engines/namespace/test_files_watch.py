"""How much /mnt/files holds, and when that is looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from workbench.contracts.engine import SandboxSpec
from workbench.engines.namespace import files_watch
from workbench.engines.namespace.files_watch import FilesWatch, _Free
from workbench.guest_trees import TreeSize
from workbench.model.ids import new_sandbox_id
from workbench.model.tier import STANDARD, Tier

MIB = 2**20


@dataclass(frozen=True)
class Watched:
    spec: SandboxSpec
    tier: Tier
    root_pid: int = 0


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
    assert await watch.over_quota([watched]) == []
    disk.bytes -= 256 * MIB
    ((found, reason),) = await watch.over_quota([watched])
    assert found is watched
    assert reason.startswith("disk full: /mnt/files holds")
    assert await watch.over_quota([watched]) == [], "nothing changed since"


async def test_space_that_came_back_does_not_hide_the_next_loss(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    await watch.over_quota([watched])
    disk.bytes += 500 * MIB
    assert await watch.over_quota([watched]) == []
    disk.bytes -= 256 * MIB
    assert len(await watch.over_quota([watched])) == 1


async def test_space_that_came_back_between_two_looks_does_not_hide_the_next_loss_of_a_new_sandbox(
    watched: Watched, disk: Disk
) -> None:
    """An old one ended, its files were removed, and a new one has taken as much before the next look."""
    watch = FilesWatch(watched.spec.files.parent)
    await watch.over_quota([])
    disk.bytes += 500 * MIB
    watch.note_free()
    disk.bytes -= 500 * MIB
    _write(watched.spec.files / "large", 2 * MIB)
    assert len(await watch.over_quota([watched])) == 1


async def test_all_are_looked_at_now_and_then_though_the_disk_is_as_full_as_before(
    watched: Watched, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one takes may be what another gave back."""
    monkeypatch.setattr(files_watch, "_ROUND_S", 0.0)
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    assert len(await watch.over_quota([watched])) == 1


async def test_files_within_the_tier_are_left_alone(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "small", MIB // 2)
    await watch.over_quota([watched])
    disk.bytes -= 512 * MIB
    assert await watch.over_quota([watched]) == []


async def test_holes_are_not_counted_as_full(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    with (watched.spec.files / "sparse").open("wb") as file:
        file.truncate(10**12)
    await watch.over_quota([watched])
    disk.bytes -= 256 * MIB
    assert await watch.over_quota([watched]) == []


async def test_too_many_files_are_noticed_by_the_disk_running_out_of_them(watched: Watched, disk: Disk) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    for number in range(12):
        (watched.spec.files / str(number)).touch()
    assert await watch.over_quota([watched]) == []
    disk.inodes -= 20_000
    ((_, reason),) = await watch.over_quota([watched])
    assert reason == "disk full: /mnt/files holds 11 of 10 files"


async def test_a_file_without_a_name_counts_for_as_long_as_it_is_open(watched: Watched, disk: Disk) -> None:
    """Held by a process of the sandbox, which here is the test itself."""
    mine = replace(watched, root_pid=os.getpid())
    watch = FilesWatch(watched.spec.files.parent)
    path = watched.spec.files / "unlinked"
    _write(path, 2 * MIB)
    with path.open("rb"):
        path.unlink()
        await watch.over_quota([mine])
        disk.bytes -= 256 * MIB
        ((_, reason),) = await watch.over_quota([mine])
        assert reason.startswith("disk full: /mnt/files holds 2")
        disk.bytes -= 256 * MIB
        assert await watch.over_quota([watched]) == [], "it is nobody's in a sandbox without processes"
    disk.bytes -= 256 * MIB
    assert await watch.over_quota([mine]) == []


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
    await watch.over_quota([watched])
    disk.bytes -= 256 * MIB
    assert len(await watch.over_quota([watched])) == 1


async def test_files_that_cannot_be_measured_are_looked_at_again_and_then_count_as_too_many(
    watched: Watched, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    complete = False
    monkeypatch.setattr(files_watch, "measure_tree", lambda _path, most_entries: TreeSize(0, 0, complete))
    await watch.over_quota([watched])
    disk.bytes -= 256 * MIB
    assert await watch.over_quota([watched]) == [], "a folder may just have been moved"
    ((_, reason),) = await watch.over_quota([watched])
    assert "cannot be measured" in reason
    complete = True
    assert await watch.over_quota([watched]) == []
    complete = False
    assert await watch.over_quota([watched]) == [], "it could be, so it is not looked at"


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(os.urandom(size))
        os.fsync(file.fileno())
