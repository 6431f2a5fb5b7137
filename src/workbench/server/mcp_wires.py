"""The two ways of one request of MCP: what comes from its client, what goes to it, and when nothing goes any more."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Send

_LEFT: Message = {"type": "http.disconnect"}


class Inward:
    """The way from the client. That it left can be told before it did, or be kept back."""

    def __init__(self, body: bytes, receive: Receive, *, over: asyncio.Event | None = None, deaf: bool = False) -> None:
        self._body: bytes | None = body
        self._receive = receive
        self._over = over
        """when set, the client counts as gone"""
        self._deaf = deaf
        """to the client itself: whether it is there makes no difference"""
        self.shut = False
        """nobody is told any more that it left, however it did"""

    async def __call__(self) -> Message:
        """As ASGI has it."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._over is None:
            await self._client_left()
        else:
            await self._first(self._over)
        if self.shut:
            await asyncio.get_running_loop().create_future()
        return _LEFT

    async def _first(self, over: asyncio.Event) -> None:
        if self._deaf:
            await over.wait()
            return
        waiting = [asyncio.create_task(over.wait()), asyncio.create_task(self._client_left())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    async def _client_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Outward:
    """The way to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._shut = False
        self._ended = False
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """As ASGI has it."""
        if not self._shut:
            await self.last(message)

    async def last(self, message: Message) -> None:
        """Also when nothing else gets out any more."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self._ended = not message.get("more_body", False)
        await self._send(message)

    @property
    def ended(self) -> bool:
        """Whether the answer is whole."""
        return self._ended

    def shut(self) -> None:
        """From now on nothing gets out."""
        self._shut = True

    async def finish(self) -> None:
        """End what was begun: a stream that stops in the middle looks like a fault of the network."""
        self.shut()
        if self.status and not self._ended:
            await self.last({"type": "http.response.body", "body": b"", "more_body": False})


class Held:
    """Passes everything on, but for some statuses: then nothing has been answered yet."""

    def __init__(self, send: Send, *statuses: int) -> None:
        self._send = send
        self._statuses = statuses
        self.status = 0
        """the one that was held back"""

    async def __call__(self, message: Message) -> None:
        """As ASGI has it."""
        if message["type"] == "http.response.start" and message["status"] in self._statuses:
            self.status = message["status"]
        if not self.status:
            await self._send(message)
