"""One real server of the SDK's own for all its tests, and a session for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from workbench import AsyncWorkbench, Session, Workbench
from workbench.client.local import LocalServer


@pytest.fixture(scope="session")
def server() -> Iterator[LocalServer]:
    """As `Workbench.local()` starts it."""
    local = LocalServer.start()
    try:
        yield local
    finally:
        local.close()


@pytest.fixture(scope="session")
def wb(server: LocalServer) -> Iterator[Workbench]:
    """Its client."""
    with Workbench(server.url, server.key) as bench:
        yield bench


@pytest.fixture
async def awb(server: LocalServer) -> AsyncIterator[AsyncWorkbench]:
    """The other one."""
    async with AsyncWorkbench(server.url, server.key) as bench:
        yield bench


@pytest.fixture
def session(wb: Workbench) -> Iterator[Session]:
    """Deleted afterwards, unless the test did."""
    made = wb.create("user_123")
    yield made
    if any(found.id == made.id for found in wb.sessions("user_123")):
        made.delete()
