"""Answers that take long: the headers go out, and white space keeps the connection alive until the body. Whoever goes
away does not stop anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from workbench.errors import Unauthenticated, WorkbenchError
from workbench.server.answers import JSON
from workbench.server.auth import check_still_good
from workbench.server.door import Visit
from workbench.server.listening import Heard, Listener

# A refusal comes within this; and a client that is told nothing for so long does not mind.
GRACE_S = 0.25
_SPACE_EVERY_S = 5.0
# When the server is told to leave. What has not ended by then is told as far as it is known, and goes on.
STOP_GRACE_S = 10.0


class Ending(Enum):
    """Why an answer is given now."""

    DONE = "done"
    """the work is, however it ended"""
    OUT_OF_TIME = "out_of_time"
    """the server leaves before it is"""
    SHUT_OUT = "shut_out"
    """the key of who waits is good no more; nothing of the work may be told"""


Told = Callable[[Ending], Awaitable[bytes]]
"""the body, which is JSON"""


async def is_quick(task: asyncio.Task[Any]) -> bool:
    """Whether it has ended before anybody had to be told to wait. It is not touched."""
    await asyncio.wait((task,), timeout=GRACE_S)
    return task.done()


class Slow(Response):
    """An answer whose headers go out before it is known. Owns nothing: the task goes on without it."""

    def __init__(self, visit: Visit, task: asyncio.Task[Any], told: Told) -> None:
        super().__init__(media_type=JSON)
        # Its length is not known.
        del self.headers["content-length"]
        self._visit = visit
        self._task = task
        self._told = told

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """As ASGI has it."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": b" ", "more_body": True})
        async with Listener(receive, self._visit.door) as listener:
            if (ending := await self._until_known(listener, send)) is not None:
                await send({"type": "http.response.body", "body": await self._told(ending)})

    async def _until_known(self, listener: Listener, send: Send) -> Ending | None:
        """None if nobody wants to know any more."""
        deadline: float | None = None
        while True:
            left_s = _SPACE_EVERY_S if deadline is None else min(_SPACE_EVERY_S, deadline - time.monotonic())
            heard = await listener.wait(self._task, max(left_s, 0.0), also_when_stopping=deadline is not None)
            if heard is Heard.STOPPING:
                deadline = time.monotonic() + STOP_GRACE_S
            elif heard is not Heard.SILENCE:
                return Ending.DONE if heard is Heard.DONE else None
            elif deadline is not None and time.monotonic() >= deadline:
                return Ending.OUT_OF_TIME
            elif not await self._still_good():
                return Ending.SHUT_OUT
            else:
                await send({"type": "http.response.body", "body": b" ", "more_body": True})

    async def _still_good(self) -> bool:
        try:
            await check_still_good(self._visit)
        except Unauthenticated:
            return False
        except WorkbenchError:
            # It is asked again in a moment; until then nothing is told.
            pass
        return True
