"""Servers with real hosts: one that installs from the machine's own index, and one from an index that is made here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.packages.index import Index, serving
from tests.restart.server import Server, own_settings, served

from workbench import Session
from workbench.errors import NotFound

MakeSession = Callable[..., Session]
MADE_HERE = "good,bad-start-up,too-large,no-wheel,too-new,wants-numpy,first,second,liar,shared-one,shared-two,slow,late"


@pytest.fixture(scope="session")
def public() -> Iterator[Server]:
    """Packages of the machine's own index."""
    with own_settings() as settings, served(settings) as server:
        yield server


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    """For the tests of a module."""
    with serving() as index:
        yield index


@pytest.fixture(scope="module")
def indexed(index: Index) -> Iterator[Server]:
    """Packages of that index, of which some may be installed."""
    more: dict[str, Any] = {"packages_index": f"{index.url}/simple", "packages_allow": MADE_HERE, "packages_max_mib": 8}
    with own_settings(**more, packages_timeout_s=10) as settings, served(settings) as server:
        yield server


@pytest.fixture
def sessions() -> Iterator[MakeSession]:
    """Makes sessions of a server, which go with the test."""
    made: list[Session] = []
    with contextlib.ExitStack() as stack:

        def make(server: Server, **sandbox: Any) -> Session:
            bench = stack.enter_context(server.bench())
            session = bench.create("tester", sandbox={"snapshots": False, **sandbox})
            made.append(session)
            return session

        yield make
        for session in made:
            with contextlib.suppress(NotFound):
                session.delete()
