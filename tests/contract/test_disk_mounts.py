"""The store of files on this machine passes the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.data_folder import DataFolder
from workbench.storage.disk import DiskMountStore
from workbench.testing.mount_contract import MountStoreContract
from workbench.testing.mount_driving import FolderOf, OpenMounts


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    return folder


@pytest.mark.isolation
class TestDiskMounts(MountStoreContract):
    @pytest.fixture
    def open_mounts(self, data: DataFolder) -> OpenMounts:
        return lambda: DiskMountStore(data)

    @pytest.fixture
    def folder_of(self, data: DataFolder) -> FolderOf:
        return lambda mount: data.files / mount
