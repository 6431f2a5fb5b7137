"""Which store the settings ask for."""

from __future__ import annotations

from pathlib import Path

from workbench.contracts.storage import Records
from workbench.errors import InvalidSetting
from workbench.storage.database import Database
from workbench.storage.records import SqlRecords
from workbench.storage.sqlite import SqliteDatabase

_POSTGRES = ("postgresql://", "postgres://")


def open_records(path: Path, url: str = "") -> Records:
    """Those of the URL's database, or of the SQLite file at `path` without one; opened when they are first used.

    Raises:
        InvalidSetting: the URL is of no database that we know, or its driver is not installed.
    """
    return SqlRecords(_postgres(url) if url else SqliteDatabase(path))


def _postgres(url: str) -> Database:
    if not url.startswith(_POSTGRES):
        raise InvalidSetting(
            f"WORKBENCH_DATABASE_URL must begin with {_POSTGRES[0]}, or be empty for a file in the data folder"
        )
    try:
        # Here, so that whoever keeps records in a file neither needs it nor waits for it.
        from workbench.storage.postgres import PostgresDatabase
    except ImportError as problem:
        raise InvalidSetting(
            f"WORKBENCH_DATABASE_URL asks for PostgreSQL, whose driver is not installed ({problem}): "
            "pip install 'open-workbench[postgres]'"
        ) from problem
    return PostgresDatabase(url)
