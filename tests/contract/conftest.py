"""A database server for the suites of the stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One for all tests."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of it."""
    with postgres.database() as url:
        yield url
