"""How much /mnt/files holds, and when that is looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from workbench.contracts.engine import SandboxSpec
from workbench.engines.namespace import files_watch
from workbench.engines.namespace.files_watch import FilesWatch, folder_bytes
from workbench.model.ids import new_sandbox_id
from workbench.model.tier import STANDARD, Tier

MIB = 2**20


@dataclass(frozen=True)
class Watched:
    spec: SandboxSpec
    tier: Tier


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    (tmp_path / "mine").mkdir()
    tier = replace(STANDARD, files_bytes=MIB)
    return Watched(SandboxSpec(id=new_sandbox_id(), tier=tier, files=tmp_path / "mine"), tier)


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The free space of the disk, to be set by the test."""
    space = [1000 * MIB]
    monkeypatch.setattr(files_watch, "_free_bytes", lambda _folder: space[0])
    return space


async def test_a_disk_that_became_fuller_is_looked_at(watched: Watched, free: list[int]) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    assert await watch.over_quota([watched]) == []
    free[0] -= 256 * MIB
    ((found, reason),) = await watch.over_quota([watched])
    assert found is watched
    assert reason.startswith("disk full: /mnt/files holds")
    assert await watch.over_quota([watched]) == [], "nothing changed since"


async def test_space_that_came_back_does_not_hide_the_next_loss(watched: Watched, free: list[int]) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "large", 2 * MIB)
    await watch.over_quota([watched])
    free[0] += 500 * MIB
    assert await watch.over_quota([watched]) == []
    free[0] -= 256 * MIB
    assert len(await watch.over_quota([watched])) == 1


async def test_files_within_the_tier_are_left_alone(watched: Watched, free: list[int]) -> None:
    watch = FilesWatch(watched.spec.files.parent)
    _write(watched.spec.files / "small", MIB // 2)
    await watch.over_quota([watched])
    free[0] -= 512 * MIB
    assert await watch.over_quota([watched]) == []


def test_folders_below_count_and_links_do_not(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    _write(outside, 8 * MIB)
    _write(inside / "a" / "b" / "file", MIB)
    (inside / "link").symlink_to(outside)
    (inside / "around").symlink_to(inside)
    assert MIB <= folder_bytes(inside) < 2 * MIB


def test_holes_are_not_counted_as_full(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10**12)
    assert folder_bytes(tmp_path) < MIB


def test_a_folder_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert folder_bytes(tmp_path / "missing") == 0


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(os.urandom(size))
        os.fsync(file.fileno())
