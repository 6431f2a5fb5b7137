"""One server with a host for most tests here, and a session for each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.helpers.serving import helped
from tests.restart.server import Server
from tests.services.model_server import model_server
from tests.services.running import Running
from tests.services.search_server import search_server

from workbench import Session, Workbench
from workbench.errors import NotFound


@pytest.fixture(scope="session")
def _models() -> Iterator[Running]:
    with model_server() as server:
        yield server


@pytest.fixture(scope="session")
def _searches() -> Iterator[Running]:
    with search_server() as server:
        yield server


@pytest.fixture
def models(_models: Running) -> Running:
    """A server of models that has seen nothing yet."""
    _models.forget()
    return _models


@pytest.fixture
def searches(_searches: Running) -> Running:
    """A server of search engines that has seen nothing yet."""
    _searches.forget()
    return _searches


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
