"""Who listens to an answer that takes long, and whether the server still has time for it."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

from starlette.types import Receive

from workbench.server.door import Door


class Heard(Enum):
    """What happened first."""

    DONE = "done"
    SILENCE = "silence"
    """nothing, for as long as was asked"""
    LEFT = "left"
    """the client has gone away"""
    STOPPING = "stopping"
    """the server is about to leave"""


class Listener:
    """Owned by one answer, as a context."""

    def __init__(self, receive: Receive, door: Door) -> None:
        self._receive = receive
        self._door = door
        self._left: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> Listener:
        self._left = asyncio.create_task(self._until_left())
        self._stopping = asyncio.create_task(self._door.stopping.wait())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._left, self._stopping):
            assert task is not None
            task.cancel()
        await asyncio.gather(self._left, self._stopping, return_exceptions=True)  # type: ignore[arg-type]

    async def _until_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def wait(self, work: asyncio.Task[Any], seconds: float, *, also_when_stopping: bool = False) -> Heard:
        """Until the work is done, or something else comes first; the work is not touched."""
        assert self._left is not None
        assert self._stopping is not None
        others = {self._left} if also_when_stopping else {self._left, self._stopping}
        await asyncio.wait({work, *others}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return Heard.DONE
        if self._left.done():
            return Heard.LEFT
        return Heard.STOPPING if self._stopping.done() and not also_when_stopping else Heard.SILENCE
