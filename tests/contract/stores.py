"""The stores that the suites are run with."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.storage.memory import MemoryRecords
from workbench.storage.opening import open_records as opened
from workbench.testing.storage_contract import OpenRecords


class InMemory:
    @pytest.fixture
    def open_records(self) -> OpenRecords:
        records = MemoryRecords()
        return lambda: records


class InSqlite:
    @pytest.fixture
    def open_records(self, tmp_path: Path) -> OpenRecords:
        return lambda: opened(tmp_path / "data" / "workbench.db")


class InPostgres:
    @pytest.fixture
    def open_records(self, tmp_path: Path, postgres_url: str) -> OpenRecords:
        return lambda: opened(tmp_path / "none", postgres_url)
