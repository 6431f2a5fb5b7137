"""A bucket for whoever needs one, and a data folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.objects import ObjectServer, running_objects

from workbench.data_folder import DataFolder
from workbench.storage.opening import FilesPlace


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with running_objects() as running:
        yield running


@pytest.fixture
def place(server: ObjectServer) -> FilesPlace:
    return server.new_place()


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    return folder
