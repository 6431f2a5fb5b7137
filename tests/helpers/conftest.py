"""One server with a host for most tests here, and a session for each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.helpers.serving import helped
from tests.restart.server import Server
from tests.services.conftest import _models, _searches, models, searches
from tests.services.running import Running

from workbench import Session, Workbench
from workbench.errors import NotFound

# Those of the services, whose servers are asked from inside here.
__all__ = ["_models", "_searches", "models", "searches"]


@pytest.fixture(scope="module")
def server(_models: Running, _searches: Running) -> Iterator[Server]:
    """For the tests of a module."""
    with helped(_models, _searches) as server:
        yield server


@pytest.fixture
def bench(server: Server) -> Iterator[Workbench]:
    """Its client."""
    with server.bench() as bench:
        yield bench


@pytest.fixture
def session(bench: Workbench) -> Iterator[Session]:
    """Deleted afterwards."""
    made = bench.create("tester")
    yield made
    with contextlib.suppress(NotFound):
        made.delete()
