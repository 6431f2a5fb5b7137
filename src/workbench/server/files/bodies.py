"""A body on its way into a staged file: as it comes, in pieces, and for as long as something comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable

from starlette.requests import ClientDisconnect

from workbench.contracts.mounts import StagedFile
from workbench.errors import InvalidRequest, ServerUnavailable, TooLarge
from workbench.server.connection import CONNECTION, Connection
from workbench.server.files.pace import Pace
from workbench.server.files.visit import FileVisit
from workbench.threads import apart, to_its_end

STALLED_S = 60.0
# A server that stops waits for no client longer.
STOPPING_S = 2.0
# What is left of a body has to be worth another way.
_WORTH_IT = 256 * 1024
# A thread that moves bytes by itself comes back after so many, for others that wait for one.
_AT_ONCE = 16 * 1024 * 1024
# Of who sends less each time, on the whole, more is let come together: a byte would cost as much as a million.
_LITTLE, _PAUSE_S = 64 * 1024, 0.02


class Body:
    """Of one request."""

    def __init__(self, visit: FileVisit, most: int | None = None) -> None:
        """With `most`, more bytes are an error."""
        self._visit = visit
        self._most = most
        self._stopping = visit.door.stopping
        self._limit: asyncio.Timeout | None = None
        self._pace = Pace()
        self.received = 0

    @property
    def length(self) -> int | None:
        """As it was announced; None if it comes in chunks."""
        if "transfer-encoding" in self._visit.headers:
            return None
        told = self._visit.headers.get("content-length", "0")
        return int(told) if told.isdecimal() else None

    async def into(self, staged: StagedFile, seen: Callable[[bytearray], None] | None = None) -> None:
        """All of it; `seen` is told every byte, in a thread. What had come when it broke off is in the file.

        Raises:
            ClientDisconnect: the client left before its end.
            InvalidRequest: nothing came for too long, or too little, or not what was announced.
            ServerUnavailable: the server stops, and nothing comes.
            TooLarge: more than was said.
        """
        async with self._hurried():
            with apart(self._visit.transfers.threads):
                await self._into(staged, seen)
        # BARRIER: whatever reads it in another way than we do, half a file is not taken for a whole one; held by
        # tests/unit/server/test_files.py.
        if self.length is not None and self.received != self.length:
            raise InvalidRequest(
                f"{self.received:,} bytes came of the {self.length:,} that were announced; send it again",
                {"announced": str(self.length)},
            )

    async def _into(self, staged: StagedFile, seen: Callable[[bytearray], None] | None) -> None:
        waiting, more = bytearray(), True
        while more:
            try:
                part, more = await self._next()
            except (ClientDisconnect, InvalidRequest, ServerUnavailable):
                await staged.write(waiting)
                raise
            waiting += part
            if more and seen is None and await self._straight(staged, waiting):
                return
            if waiting and (not more or len(waiting) >= self._visit.transfers.piece_bytes()):
                if seen is not None:
                    await to_its_end(seen, waiting)
                await staged.write(waiting)
                waiting = bytearray()

    async def _next(self) -> tuple[bytes, bool]:
        began = time.monotonic()
        async with self._for_the_client():
            message = await self._visit.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        self.received += len(part)
        if self._most is not None and self.received > self._most:
            raise _more_than(self._most)
        more = message.get("more_body", False)
        if more:
            self._pace.note(time.monotonic() - began, len(part))
        return part, more

    async def _straight(self, staged: StagedFile, waiting: bytearray) -> bool:
        """The rest without a way through our memory, where that can be: whether it was done."""
        connection: Connection | None = self._visit.scope.get(CONNECTION)
        left = (self.length or 0) - self.received
        if connection is None or left < _WORTH_IT:
            return False
        # Nothing is awaited between the last piece and this: or another one would be on its way.
        source = connection.take_body()
        if source is None:
            return False
        self._visit.note.body_left = True
        try:
            await staged.write(waiting)
            await self._moved(staged, source, left)
        except (EOFError, ConnectionError):
            await connection.break_off()
            raise ClientDisconnect from None
        finally:
            os.close(source)
        self._visit.note.body_left = False
        connection.body_taken()
        return True

    async def _moved(self, staged: StagedFile, source: int, left: int) -> None:
        credit = _AT_ONCE // 16
        while left:
            count = await staged.take(source, min(left, _AT_ONCE))
            left -= count
            self.received += count
            began = time.monotonic()
            if left and not count:
                await self._readable(source)
            credit = min(credit + count, _AT_ONCE) - _LITTLE
            # BARRIER: who sends byte by byte would have a thread at any time; held by tests/unit/server/test_files.py.
            if left and credit < 0:
                await asyncio.sleep(_PAUSE_S)
                credit = 0
            self._pace.note(time.monotonic() - began, count)

    async def _readable(self, source: int) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(source, ready.set)
        try:
            async with self._for_the_client():
                await ready.wait()
        finally:
            loop.remove_reader(source)

    @contextlib.asynccontextmanager
    async def _for_the_client(self) -> AsyncIterator[None]:
        """Raises: InvalidRequest, ServerUnavailable if it takes too long."""
        try:
            async with asyncio.timeout(STOPPING_S if self._stopping.is_set() else STALLED_S) as self._limit:
                yield
        except TimeoutError:
            raise (_leaving() if self._stopping.is_set() else _stalled()) from None
        finally:
            self._limit = None

    @contextlib.asynccontextmanager
    async def _hurried(self) -> AsyncIterator[None]:
        """Also a wait that has begun ends soon when the server stops."""
        loop = asyncio.get_running_loop()

        def hurry(told: asyncio.Task[object]) -> None:
            if not told.cancelled() and self._limit is not None and not self._limit.expired():
                self._limit.reschedule(loop.time() + STOPPING_S)

        told = loop.create_task(self._stopping.wait())
        told.add_done_callback(hurry)
        try:
            yield
        finally:
            told.cancel()


def _stalled() -> InvalidRequest:
    return InvalidRequest(f"no byte of the file came for {STALLED_S:g} s; send it again")


def _leaving() -> ServerUnavailable:
    return ServerUnavailable("the server stops, and the file has not come; send it again in a moment")


def _more_than(most: int) -> TooLarge:
    return TooLarge(
        f"more bytes came than the {most:,} that were said; no file in the mount was changed", {"most_bytes": str(most)}
    )
