"""The store of files in an object store passes the contract, on a real server that speaks S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.objects import ObjectServer, running_objects

from workbench.data_folder import DataFolder
from workbench.storage.opening import open_mounts
from workbench.testing.mount_contract import MountStoreContract
from workbench.testing.mount_driving import FolderOf, OpenMounts


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with running_objects() as running:
        yield running


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    return folder


class TestObjectMounts(MountStoreContract):
    @pytest.fixture
    def open_mounts(self, data: DataFolder, server: ObjectServer) -> OpenMounts:
        place = server.new_place()
        return lambda: open_mounts(data, place)

    @pytest.fixture
    def folder_of(self, data: DataFolder) -> FolderOf:
        return lambda mount: data.files / mount
