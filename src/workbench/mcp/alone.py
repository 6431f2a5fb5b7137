"""What is around the tools where there is no server: one client, the owner of the data folder."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from typing import Any

from workbench.core.access import Access
from workbench.model.access import Caller
from workbench.model.ids import SessionId
from workbench.model.records import CellRecord

# Clients wait a few seconds for a program to leave, and then kill it. The interrupt is on its way by then.
_END_TIMEOUT_S = 4.0
_log = logging.getLogger(__name__)


class Alone:
    """Owns the tasks that outlive a call; closed by who made it."""

    def __init__(self, access: Access, caller: Caller) -> None:
        self._access = access
        self._caller = caller
        self._tasks: set[asyncio.Task[Any]] = set()
        self.stopping = asyncio.Event()

    def keep(self, work: Coroutine[Any, Any, Any], what: str) -> asyncio.Task[Any]:
        """As the protocol of surroundings says."""
        task = asyncio.create_task(work, name=what)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Fetched, so that nobody complains: who waited may be gone.
            task.exception()

    def ran(self, record: CellRecord) -> None:
        """Nobody counts here."""

    async def note(self, action: str, session: SessionId, detail: str = "") -> None:
        """As the protocol says."""
        await self._access.note(self._caller, action, session=session, detail=detail)

    def defect(self, what: str, problem: BaseException) -> str:
        """To standard error: standard output is the protocol's."""
        name = f"defect-{secrets.token_hex(4)}"
        _log.error("%s: %s", name, what, exc_info=problem)
        return name

    async def aclose(self) -> None:
        """Let what is being stopped be stopped; what runs in sandboxes goes on."""
        if self._tasks:
            _, left = await asyncio.wait(tuple(self._tasks), timeout=_END_TIMEOUT_S)
            for task in left:
                task.cancel()
