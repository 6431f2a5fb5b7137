"""Output as it comes, as server-sent events: `piece`, `dropped` and `end`, and comments while nothing happens.

The id of an event is the offset behind it, where a follower goes on after a lost connection. Pieces that the host gave
together share the id of the last of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Header, Query
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from workbench.contracts.host import OutputPage
from workbench.core import requests
from workbench.errors import Conflict, InvalidRequest, WorkbenchError
from workbench.model.records import CellKind, CellRecord, CellStatus
from workbench.server.auth import check_still_good
from workbench.server.door import SessionVisit
from workbench.server.listening import Heard, Listener
from workbench.server.metrics import outcome_of
from workbench.server.translate import shown_cell
from workbench.wire import rest

EVENT_STREAM = "text/event-stream"
_HEARTBEAT_S = 10.0
# More than any spool holds.
_MOST_OFFSET = 2**53
_LEAVING = b": the server stops; connect again with Last-Event-ID, what runs goes on\n\n"
_ALIVE = b": still here\n\n"

T = TypeVar("T")
Offset = Annotated[
    int, Query(ge=0, le=_MOST_OFFSET, description="From here on: 0, or the id of an event that was seen.")
]
LastEventId = Annotated[
    Annotated[str, Field(pattern=r"^[0-9]{0,15}$")] | SkipJsonSchema[None],
    Header(
        alias="Last-Event-ID",
        description="The same, as browsers send it when they connect again; it comes before `offset`.",
    ),
]


def start_of(offset: int, last_event_id: str | None) -> int:
    """Where to begin."""
    return int(last_event_id) if last_event_id else offset


async def followed(visit: SessionVisit, record: CellRecord, offset: int, *, just_run: bool = False) -> Response:
    """A stream of what it says from the offset on.

    Whoever has `just_run` it, maybe for the second time with the same idempotency key, gets at least its end.

    Raises:
        WorkbenchError: its output cannot be read, or not from there.
    """
    ask = requests.ReadOutput(session=visit.session, cell=record.id, offset=offset)
    try:
        page = await visit.workbench.read_output(ask)
    except InvalidRequest as problem:
        # The number is a good one; only what was printed has no such place.
        raise Conflict(problem.message, problem.context) from None
    except Conflict:
        if not just_run:
            raise
        page = OutputPage(pieces=(), next_offset=offset, ended=True, dropped_bytes=0)
    return _Followed(visit, record, page)


class _Over(Exception):
    """Nothing more is sent here, but this."""

    def __init__(self, last: bytes) -> None:
        super().__init__()
        self.last = last


class _Followed(Response):
    """One stream."""

    def __init__(self, visit: SessionVisit, record: CellRecord, first: OutputPage) -> None:
        # Proxies that buffer would keep what comes until there is enough of it.
        headers = {"x-accel-buffering": "no", "location": place_of(record), "x-cell-id": record.id}
        super().__init__(media_type=EVENT_STREAM, headers=headers)
        # Its length is not known.
        del self.headers["content-length"]
        self._visit = visit
        self._cell = record.id
        self._page = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """As ASGI has it."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

        async def say(words: bytes, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": words, "more_body": more})

        async with Listener(receive, self._visit.door) as listener:
            last = b""
            try:
                async with contextlib.aclosing(self._words(_Ear(listener, say, self._visit))) as words:
                    async for some in words:
                        await say(some)
            except _Over as over:
                last = over.last
            await say(last, more=False)

    async def _words(self, ear: _Ear) -> AsyncGenerator[bytes, None]:
        page, workbench = self._page, self._visit.workbench
        yield _told(page) or _ALIVE
        failed: WorkbenchError | None = None
        try:
            while not page.ended:
                ask = requests.ReadOutput(
                    session=self._visit.session, cell=self._cell, offset=page.next_offset, wait_s=_HEARTBEAT_S
                )
                page = await ear.hear(workbench.read_output(ask))
                yield _told(page) or _ALIVE
        except WorkbenchError as problem:
            # What it ended with may be known although its output cannot be read any more.
            failed = problem
        yield await self._end(ear, page.next_offset, failed)

    async def _end(self, ear: _Ear, offset: int, failed: WorkbenchError | None) -> bytes:
        wait_s = _HEARTBEAT_S if failed is None else 0.0
        ask = requests.GetCell(session=self._visit.session, cell=self._cell, wait_s=wait_s)
        try:
            record = await ear.hear(self._visit.workbench.get_cell(ask))
            while record.status is CellStatus.PENDING and failed is None:
                await ear.say(_ALIVE)
                record = await ear.hear(self._visit.workbench.get_cell(ask))
        except WorkbenchError as problem:
            failed, record = problem, None
        if record is None or record.status is CellStatus.PENDING:
            code = "" if failed is None else failed.code
            self._visit.note.outcome = code
            return f": {code}; connect again with Last-Event-ID\n\n".encode()
        self._visit.note.outcome = outcome_of(record)
        return _event("end", shown_cell(record), offset)


class _Ear:
    """Waits for what a stream will say next, and keeps the connection alive meanwhile."""

    def __init__(self, listener: Listener, say: Callable[[bytes], Awaitable[None]], visit: SessionVisit) -> None:
        self._listener = listener
        self._visit = visit
        self._looked = time.monotonic()
        self.say = say

    async def hear(self, work: Coroutine[Any, Any, T]) -> T:
        """Its answer.

        Raises:
            _Over: nobody listens any more, or may, or the server is about to leave.
        """
        task = asyncio.create_task(work)
        try:
            while True:
                await self._look()
                # A little longer than what the core was given, whose answer is then the usual sign of life.
                heard = await self._listener.wait(task, _HEARTBEAT_S + 1.0)
                if heard is Heard.DONE:
                    return task.result()
                if heard is not Heard.SILENCE:
                    raise _Over(_LEAVING if heard is Heard.STOPPING else b"")
                await self.say(_ALIVE)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look(self) -> None:
        """Now and then, whether the key is still good: a stream that says much has no other pauses."""
        if time.monotonic() - self._looked < _HEARTBEAT_S:
            return
        try:
            await check_still_good(self._visit)
        except WorkbenchError as problem:
            self._visit.note.outcome = problem.code
            raise _Over(f": {problem.code}; connect again with Last-Event-ID\n\n".encode()) from None
        self._looked = time.monotonic()


def place_of(record: CellRecord) -> str:
    """Where it is found."""
    kind = "cells" if record.kind is CellKind.CELL else "commands"
    return f"/v1/sessions/{record.session}/{kind}/{record.id}"


def _told(page: OutputPage) -> bytes:
    last = len(page.pieces) - 1
    told = [
        _event("piece", rest.Piece.model_validate(piece), page.next_offset if number == last else None)
        for number, piece in enumerate(page.pieces)
    ]
    if page.ended and page.dropped_bytes:
        told.append(_event("dropped", rest.Dropped(bytes=page.dropped_bytes), page.next_offset))
    return b"".join(told)


def _event(name: str, data: BaseModel, offset: int | None) -> bytes:
    # JSON has no line breaks of its own, which would end the field.
    id_line = "" if offset is None else f"id: {offset}\n"
    return f"event: {name}\n{id_line}data: {data.model_dump_json()}\n\n".encode()
