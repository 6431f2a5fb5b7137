"""Servers that tests kill and start again; each test finds its own running."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.postgres import running_postgres
from tests.restart.server import Server, own_settings, served

STORES = ("SQLite", "PostgreSQL")


@contextlib.contextmanager
def _database(store: str) -> Iterator[str]:
    if store == "SQLite":
        yield ""
        return
    with running_postgres() as postgres, postgres.database() as url:
        yield url


@pytest.fixture(scope="module", params=STORES)
def any_store(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One for each kind of store."""
    with _database(request.param) as url, own_settings(database_url=url) as settings, served(settings) as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One with the usual store."""
    with own_settings() as settings, served(settings) as server:
        yield server
