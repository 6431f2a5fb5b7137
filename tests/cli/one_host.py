"""One data folder and one host for all tests of a module: a host each takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.host.conftest import shared_settings

from workbench.cli.asking import ask
from workbench.core.requests import DeleteSession, ListSessions
from workbench.core.workbench import Workbench
from workbench.settings import Settings

__all__ = ["settings", "shared_settings"]


@pytest.fixture
def settings(shared_settings: Settings) -> Iterator[Settings]:
    """The module's; sessions that a test leaves are deleted."""
    yield shared_settings
    ask(shared_settings, _delete_all)


async def _delete_all(bench: Workbench) -> None:
    while sessions := (await bench.list_sessions(ListSessions(user=None))).sessions:
        for one in sessions:
            await bench.delete_session(DeleteSession(session=one.session.spec.id))
