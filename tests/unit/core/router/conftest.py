"""One world for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.core.router.world import World

from workbench.data_folder import DataFolder


@pytest.fixture
def world(tmp_path: Path) -> World:
    """With nothing in it."""
    data = DataFolder(tmp_path / "data")
    data.make()
    return World(data)
