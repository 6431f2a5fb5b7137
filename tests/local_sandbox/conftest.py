"""One server with a model and a search, and a session without a sandbox, whose code runs in a box of the test's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.helpers.serving import helped
from tests.local_sandbox.boxes import Box, box_in
from tests.restart.server import Server
from tests.services.conftest import _models, _searches, models, searches
from tests.services.running import Running

from workbench import LocalWorkbenchSession, Session, Workbench, create_local_workbench_session
from workbench.errors import NotFound

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
    """Without a sandbox; deleted afterwards."""
    made = bench.create("tester", sandbox={"enable": False})
    yield made
    with contextlib.suppress(NotFound):
        made.delete()


@pytest.fixture
def local(bench: Workbench, session: Session) -> LocalWorkbenchSession:
    """What a box needs."""
    return create_local_workbench_session(bench, session)


@pytest.fixture
def box(local: LocalWorkbenchSession, tmp_path: Path) -> Box:
    """It."""
    return box_in(tmp_path / "box", local.env)


MakeBox = Callable[[LocalWorkbenchSession], Box]
