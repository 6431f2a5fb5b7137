"""Cells and commands on their way: handles to wait for and stop them, and their output as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from types import TracebackType

import httpx2

from workbench.client import _requests
from workbench.client._answers import heard
from workbench.client._requests import Request
from workbench.client._sending import AsyncSender, Sender
from workbench.client.values import Result
from workbench.errors import Conflict, NotFound
from workbench.model.records import CellKind, CellStatus
from workbench.wire import rest

_BROKEN_OFF = "the events ended before the cell did"


class _Known:
    """What a handle knows of its cell without asking."""

    def __init__(self, record: rest.Cell) -> None:
        self.record = record
        """as it was when it was last asked for"""

    @property
    def id(self) -> str:
        """By which anybody with the key finds it again."""
        return self.record.id

    @property
    def session_id(self) -> str:
        """Where it runs."""
        return self.record.session_id

    @property
    def kind(self) -> CellKind:
        """A cell or a command."""
        return self.record.kind

    @property
    def done(self) -> bool:
        """Whether it had come to its end when it was last asked for."""
        return self.record.status is not CellStatus.PENDING

    def _next_wait(self, deadline: float | None, timeout_s: float | None) -> Request[rest.Cell]:
        left = _requests.WAIT_S if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self.id} still runs after {timeout_s:g} s; wait again, or stop() it")
        return _requests.get_cell(self.session_id, self.kind, self.id, round(min(left, _requests.WAIT_S), 3))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self.session_id}: {self.record.status}>"


class _Followed:
    """What a stream has seen."""

    def __init__(self, offset: int, *, started_by_us: bool) -> None:
        self.offset = offset
        """behind the last piece: where another one can go on"""
        self.dropped_bytes = 0
        """output beyond what the host keeps of one cell"""
        self._since = 0
        self._repeated = 0
        self._connected_before = started_by_us
        self._end: rest.Cell | None = None

    @property
    def result(self) -> Result:
        """How it ended, once the stream has.

        Raises:
            Conflict: the stream was not read to its end.
            WorkbenchError: it never began.
        """
        if self._end is None:
            raise Conflict("the stream was not read to its end; read on, or ask its cell to wait()")
        return Result.of(self._end)

    def _connected(self) -> None:
        # Only the last of the pieces that came together has an offset behind it, so those before it come once more.
        self._repeated, self._since = self._since + self._repeated, 0
        self._connected_before = True

    def _take(self, event: httpx2.ServerSentEvent) -> rest.Piece | None:
        said = heard(event.event, event.data)
        behind = int(event.id) if event.id.isascii() and event.id.isdigit() else self.offset
        if behind > self.offset:
            self.offset, self._since = behind, 0
        elif isinstance(said, rest.Piece):
            self._since += 1
        if isinstance(said, rest.Piece):
            if not self._repeated:
                return said
            self._repeated -= 1
            return None
        if isinstance(said, rest.Dropped):
            self.dropped_bytes = said.bytes
        elif said is not None:
            self._end = said
        return None

    def _over(self) -> bool:
        return self._end is not None

    def _settle(self, cell: _Known) -> None:
        assert self._end is not None
        cell.record = self._end
        # A cell that never began is an error wherever it is noticed.
        Result.of(self._end)

    def _end_without_output(self, record: rest.Cell, problem: Exception) -> None:
        # Its output went with its sandbox. Who asks for output from the start is told so; who was following a cell that
        # began has a result to come.
        if record.status is CellStatus.PENDING or not self._connected_before:
            raise problem
        self._end = record


class Stream(_Followed):
    """Pieces of output as they come; `result` when they are through. Goes on over lost connections and restarts.

    Leaving it early stops nothing: the cell goes on, `cell.stop()` ends it.
    """

    def __init__(self, sender: Sender, cell: Cell, offset: int, *, started_by_us: bool) -> None:
        super().__init__(offset, started_by_us=started_by_us)
        self.cell = cell
        self._sender = sender
        self._pieces = self._read()

    def __iter__(self) -> Iterator[rest.Piece]:
        return self

    def __next__(self) -> rest.Piece:
        return next(self._pieces)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Its connection."""
        self._pieces.close()

    def _request(self) -> Request[None]:
        return _requests.follow_cell(self.cell.session_id, self.cell.kind, self.cell.id, self.offset)

    def _read(self) -> Generator[rest.Piece, None, None]:
        attempts = self._sender.attempts(self._request())
        while not self._over():
            try:
                with self._sender.events(self._request()) as events:
                    attempts.got_through()
                    self._connected()
                    for event in events:
                        if piece := self._take(event):
                            yield piece
                        elif self._over():
                            break
                if not self._over():
                    time.sleep(attempts.pause_s(_BROKEN_OFF))
            except httpx2.TransportError as problem:
                if not self._over():
                    time.sleep(attempts.pause_s(problem))
            except (Conflict, NotFound) as problem:
                self._end_without_output(self.cell.refresh().record, problem)
        self._settle(self.cell)


class Cell(_Known):
    """A cell or command that runs on whether or not anybody listens."""

    def __init__(self, sender: Sender, record: rest.Cell) -> None:
        super().__init__(record)
        self._sender = sender

    def refresh(self) -> Cell:
        """Itself, as it is now."""
        self.record = self._sender.send(_requests.get_cell(self.session_id, self.kind, self.id))
        return self

    def wait(self, timeout_s: float | None = None) -> Result:
        """To its end.

        Raises:
            TimeoutError: it runs on.
            WorkbenchError: it never began.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.done:
            self.record = self._sender.send(self._next_wait(deadline, timeout_s))
        return Result.of(self.record)

    def follow(self, offset: int = 0) -> Stream:
        """Its output from an offset on, from the start unless given: any number may follow, at any time.

        Raises:
            NotFound, Conflict: when it is read: the output is not kept any more.
        """
        return Stream(self._sender, self, offset, started_by_us=False)

    def stop(self) -> bool:
        """End this one and no other: interrupted if it runs, dequeued if it waits. False if it was over."""
        return self._sender.send(_requests.stop_cell(self.session_id, self.kind, self.id))


class AsyncStream(_Followed):
    """As `Stream`, for `async for`."""

    def __init__(self, sender: AsyncSender, cell: AsyncCell, offset: int, *, started_by_us: bool) -> None:
        super().__init__(offset, started_by_us=started_by_us)
        self.cell = cell
        self._sender = sender
        self._pieces = self._read()

    def __aiter__(self) -> AsyncIterator[rest.Piece]:
        return self

    async def __anext__(self) -> rest.Piece:
        return await anext(self._pieces)

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Its connection."""
        await self._pieces.aclose()

    def _request(self) -> Request[None]:
        return _requests.follow_cell(self.cell.session_id, self.cell.kind, self.cell.id, self.offset)

    async def _read(self) -> AsyncGenerator[rest.Piece, None]:
        attempts = self._sender.attempts(self._request())
        while not self._over():
            try:
                async with self._sender.events(self._request()) as events:
                    attempts.got_through()
                    self._connected()
                    async for event in events:
                        if piece := self._take(event):
                            yield piece
                        elif self._over():
                            break
                if not self._over():
                    await asyncio.sleep(attempts.pause_s(_BROKEN_OFF))
            except httpx2.TransportError as problem:
                if not self._over():
                    await asyncio.sleep(attempts.pause_s(problem))
            except (Conflict, NotFound) as problem:
                self._end_without_output((await self.cell.refresh()).record, problem)
        self._settle(self.cell)


class AsyncCell(_Known):
    """As `Cell`, with `await`."""

    def __init__(self, sender: AsyncSender, record: rest.Cell) -> None:
        super().__init__(record)
        self._sender = sender

    async def refresh(self) -> AsyncCell:
        """As `Cell.refresh`."""
        self.record = await self._sender.send(_requests.get_cell(self.session_id, self.kind, self.id))
        return self

    async def wait(self, timeout_s: float | None = None) -> Result:
        """As `Cell.wait`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.done:
            self.record = await self._sender.send(self._next_wait(deadline, timeout_s))
        return Result.of(self.record)

    def follow(self, offset: int = 0) -> AsyncStream:
        """As `Cell.follow`."""
        return AsyncStream(self._sender, self, offset, started_by_us=False)

    async def stop(self) -> bool:
        """As `Cell.stop`."""
        return await self._sender.send(_requests.stop_cell(self.session_id, self.kind, self.id))
