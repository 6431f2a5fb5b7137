"""Work that goes on when whoever asked for it is gone. It ends with the app; what runs in sandboxes goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from workbench.errors import WorkbenchError
from workbench.server.logs import Log

T = TypeVar("T")
# Cancelled work has only to let go of its connection.
_END_TIMEOUT_S = 5.0


class Kept:
    """Owns tasks. Owned by the app, and closed with it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], what: str) -> asyncio.Task[T]:
        """Do it, whoever waits for it."""
        task = asyncio.create_task(work, name=what)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        # Also so that nobody complains of an exception that nobody fetched: who waited may be gone.
        problem = None if task.cancelled() else task.exception()
        if problem is not None and not isinstance(problem, WorkbenchError):
            self._log.defect(task.get_name(), problem)

    async def aclose(self) -> None:
        """End what is left."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_TIMEOUT_S)
