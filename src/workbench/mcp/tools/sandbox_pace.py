"""How long one call has for all its files, and what its caller is told meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from workbench.errors import InvalidRequest
from workbench.mcp.visit import Visit

# For all files of one call; a part of one takes milliseconds.
_MOST_S = 120.0
_PROGRESS_EVERY_S = 1.0
# For what is called off: the half of a file is removed.
_CLEARING_UP_S = 10.0
_MOST_NAMED = 200
R = TypeVar("R")


class Pace:
    """One call's: what it does, for how long at most, and whom it tells."""

    def __init__(self, visit: Visit, files: int) -> None:
        self._visit = visit
        self._files = files
        self._begun = time.monotonic()
        self._doing = ""
        self._told_s = -1.0

    @property
    def _passed_s(self) -> float:
        return time.monotonic() - self._begun

    def next_file(self, number: int, name: str) -> None:
        """Raises: InvalidRequest if there is no more time for it."""
        self._doing = f"file {number} of {self._files}: {name[:_MOST_NAMED]}"
        if self._passed_s >= _MOST_S:
            raise _too_slow("not begun")

    async def done(self, work: Coroutine[Any, Any, R], what: str) -> R:
        """Its result. It is done to its end also if the caller goes away meanwhile: half of it would be nobody's.

        Raises:
            InvalidRequest: the time of the call is over; it was called off.
        """
        task: asyncio.Task[R] = self._visit.around.keep(work, what)
        while not task.done():
            left_s = _MOST_S - self._passed_s
            if left_s <= 0:
                task.cancel()
                await asyncio.wait((task,), timeout=_CLEARING_UP_S)
                if task.cancelled() or not task.done():
                    raise _too_slow("called off")
                break
            await self._tell()
            await asyncio.wait((task,), timeout=min(left_s, _PROGRESS_EVERY_S))
        return task.result()

    async def _tell(self) -> None:
        # The protocol wants each to be more than the one before.
        now_s = round(self._passed_s, 3)
        if self._visit.on_progress is not None and now_s > self._told_s:
            self._told_s = now_s
            await self._visit.on_progress(now_s, _MOST_S, self._doing)


def _too_slow(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"{what}: all files of one call have {_MOST_S:g} s together, and those are over; send this one in another call"
    )
