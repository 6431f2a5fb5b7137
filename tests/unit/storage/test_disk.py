"""Mounts on disk: removed with what a guest made of them, and never under a sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.data_folder import DataFolder
from workbench.errors import Conflict
from workbench.model.ids import MountId
from workbench.storage.disk import DiskMountStore

MINE = MountId("mine")


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    return folder


async def test_a_mount_goes_with_everything_in_it_and_its_lock(data: DataFolder) -> None:
    deep = data.files / MINE / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "link").symlink_to("/etc/passwd")
    (data.files / "other").mkdir()
    await DiskMountStore(data).remove(MINE)
    await DiskMountStore(data).remove(MINE)
    assert [path.name for path in data.files.iterdir()] == ["other"]
    assert list(data.mounts.iterdir()) == []
    assert Path("/etc/passwd").exists()


async def test_a_mount_in_use_is_left_alone(data: DataFolder) -> None:
    (data.files / MINE).mkdir()
    lock = data.use_mount(MINE)
    assert lock is not None
    with pytest.raises(Conflict, match="in use"):
        await DiskMountStore(data).remove(MINE)
    assert (data.files / MINE).is_dir()
    os.close(lock)
    await DiskMountStore(data).remove(MINE)
    assert not (data.files / MINE).exists()


async def test_without_a_data_folder_there_is_nothing_to_remove(tmp_path: Path) -> None:
    await DiskMountStore(DataFolder(tmp_path / "none")).remove(MINE)
    assert not (tmp_path / "none").exists()
