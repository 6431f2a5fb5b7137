"""Running one cell or command: write it down, submit it, hand on what it says, and give its end, also when the place
ended under it.

If it began there is a result. It is submitted under an id that is written down before, so that a lost answer is asked
for again, by whoever comes, and nothing ever runs twice; it goes into a second sandbox only if the first surely never
took it, and only while nobody has concluded otherwise.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace

from workbench.contracts.clock import Clock
from workbench.contracts.host import OutputPage, SandboxHost, answer_lost, gone_reason, never_began, was_dropped
from workbench.contracts.storage import CellStore
from workbench.core.ends import Ends
from workbench.core.languages import is_python
from workbench.core.places import ATTEMPTS, Places, never_stays
from workbench.core.requests import Follower, GetCell, ReadOutput
from workbench.core.work import (
    NOWHERE,
    WAIT_S,
    Asked,
    End,
    Run,
    address_of,
    asked_for,
    digest_of,
    record_of,
    send,
    wait,
)
from workbench.errors import Conflict, HostUnavailable, InvalidRequest, NotFound, SandboxUnavailable, WorkbenchError
from workbench.model.execution import Cell
from workbench.model.ids import SandboxId
from workbench.model.records import CellRecord, CellStatus, Problem
from workbench.model.session import Session

# For a cell that is written down and about to reach the host.
_ARRIVING_S = 0.2


class Executions:
    """Runs cells and commands."""

    def __init__(self, host: SandboxHost, cells: CellStore, places: Places, ends: Ends, clock: Clock) -> None:
        self._host = host
        self._cells = cells
        self._places = places
        self._ends = ends
        self._clock = clock

    async def perform(self, request: Run) -> CellRecord:
        """To its end."""
        return await self._answer(request, to_end=True)

    async def submit(self, request: Run) -> CellRecord:
        """Until the host has it."""
        return await self._answer(request, to_end=False)

    async def get(self, request: GetCell) -> CellRecord:
        """As it is, or at its end if that comes in time."""
        _check_wait(request.wait_s)
        record = await self._cells.get(request.session, request.cell)
        return await self._ends.awaited(record, request.wait_s)

    async def _answer(self, request: Run, *, to_end: bool) -> CellRecord:
        asked = asked_for(request)
        session = await self._places.enter(request.session)
        if isinstance(asked, Cell) and not is_python(session):
            # What is corrected is Python's: in another language it may be what was meant.
            asked = replace(asked, corrected=False)
        record = await self._ran_or_kept(session, request, asked, to_end=to_end)
        if record.status is CellStatus.FAILED and request.idempotency_key and not record.idempotency_key:
            # It was never sent, as whoever had accepted it was ended before, and its key is free again.
            session = await self._places.enter(request.session)
            record = await self._ran_or_kept(session, request, asked, to_end=to_end)
        return _answered(record)

    async def _ran_or_kept(self, session: Session, request: Run, asked: Asked, *, to_end: bool) -> CellRecord:
        kept: CellRecord | None = None
        if request.idempotency_key:
            kept = await self._cells.with_idempotency_key(request.session, request.idempotency_key)
        if kept is None:
            try:
                return await self._run(session, request, asked, to_end=to_end)
            except _Taken as taken:
                kept = taken.record
        return await self._kept(kept, request, asked, to_end=to_end)

    async def _kept(self, record: CellRecord, request: Run, asked: Asked, *, to_end: bool) -> CellRecord:
        """The answer to one that was asked for before."""
        if record.digest != digest_of(asked):
            raise _another(record, request)
        if request.follower is not None and to_end and record.status is not CellStatus.FAILED:
            # What is not kept any more cannot be handed on; the result has head and tail of it.
            with contextlib.suppress(WorkbenchError):
                await self._follow(record, request.follower)
        if to_end:
            record = await self._ends.awaited(record, math.inf)
        return record

    async def _run(self, session: Session, request: Run, asked: Asked, *, to_end: bool) -> CellRecord:
        sent = _Sent(session=session)
        try:
            await self._send(sent, request, asked, to_end=to_end)
        except WorkbenchError as problem:
            # It never began. Whatever fails after this is no reason to say so.
            if sent.record is None:
                await self._note_unsent(record_of(request, asked, sent.session, self._clock.now_iso()), problem)
                raise
            failed = await self._ends.failed(sent.record, problem)
            if failed.status is CellStatus.PENDING or failed.problem == Problem.of(problem):
                raise
            # Somebody was first to conclude how it ended.
            return failed
        assert sent.record is not None
        if sent.unseen is not None:
            return await self._ends.unseen(sent.session, sent.record, sent.unseen)
        if sent.result is None:
            return sent.record
        return await self._ends.settled(sent.session, sent.record, sent.result, told=True)

    async def _send(self, sent: _Sent, request: Run, asked: Asked, *, to_end: bool) -> None:
        for _ in range(ATTEMPTS):
            is_cell = isinstance(asked, Cell)
            code = asked.code if isinstance(asked, Cell) else ""
            session = sent.session = await self._places.ready(sent.session, kernel=is_cell, code=code)
            if sent.record is None:
                sent.record = await self._written(record_of(request, asked, session, self._clock.now_iso()))
            else:
                sent.record = await self._moved(sent.record, session.sandbox)
            try:
                await self._send_to(sent, sent.record, asked, request.follower, to_end=to_end)
            except SandboxUnavailable as problem:
                # Nothing ran: what may have run has a result.
                if (reason := gone_reason(problem)) is None:
                    raise
                # Before anything else: whoever reads it may not call it lost with that sandbox.
                sent.record = await self._nowhere(sent.record)
                sent.session = await self._places.lost(session, reason)
            except NotFound:
                # Nor here: there is no such kernel.
                sent.record = await self._nowhere(sent.record)
                sent.session = await self._places.without_kernel(session)
            else:
                return
            sent.record = await self._moved(sent.record, sent.session.sandbox)
        raise never_stays(sent.session)

    async def _written(self, record: CellRecord) -> CellRecord:
        if (before := await self._cells.add(record)) is not None:
            raise _Taken(before)
        return record

    async def _nowhere(self, record: CellRecord) -> CellRecord:
        await self._cells.move(record.session, record.id, NOWHERE)
        return replace(record, sandbox=NOWHERE)

    async def _moved(self, record: CellRecord, sandbox: SandboxId) -> CellRecord:
        """Written down as sent to another sandbox, unless somebody was first to conclude how it ended."""
        await self._cells.move(record.session, record.id, sandbox)
        now = await self._cells.get(record.session, record.id)
        if now.status is not CellStatus.PENDING:
            raise _Taken(now)
        return now

    async def _note_unsent(self, record: CellRecord, problem: WorkbenchError) -> None:
        """For the history: it had no place to run in. The same idempotency key may have more luck the next time."""
        record = replace(record, idempotency_key="")
        with contextlib.suppress(WorkbenchError):
            if await self._cells.add(record) is None:
                await self._ends.failed(record, problem)

    async def _send_to(
        self, sent: _Sent, record: CellRecord, asked: Asked, follower: Follower | None, *, to_end: bool
    ) -> None:
        """To the session's sandbox, and to its end if that is wanted; an error means that it never began."""
        wait_s = WAIT_S if to_end and follower is None else 0.0
        try:
            sent.result = await send(self._host, sent.session, asked, wait_s)
        except HostUnavailable as problem:
            if not answer_lost(problem):
                raise
            try:
                sent.result = await send(self._host, sent.session, asked, wait_s)
            except WorkbenchError as again:
                if not _is_unseen(again):
                    raise
                sent.unseen = again if to_end or not isinstance(again, HostUnavailable) else None
                return
        if not to_end:
            return
        try:
            if follower is not None:
                await self._follow(record, follower)
            while sent.result is None:
                sent.result = await wait(self._host, record, WAIT_S)
        except WorkbenchError as problem:
            if not _is_unseen(problem):
                raise
            # What it ended with may be known although its output is not there any more.
            sent.unseen = problem if sent.result is None else None

    async def _follow(self, record: CellRecord, follower: Follower) -> None:
        at = address_of(record)
        offset, ended = 0, False
        while not ended:
            page = await self._host.read_output(at, offset, WAIT_S)
            for piece in page.pieces:
                await follower.on_piece(piece)
            offset, ended = page.next_offset, page.ended
            if ended and page.dropped_bytes:
                await follower.on_dropped(page.dropped_bytes)

    async def read_output(self, request: ReadOutput) -> OutputPage:
        """From the host, as long as that keeps it."""
        _check_wait(request.wait_s)
        if request.offset < 0:
            raise InvalidRequest(f"an offset is 0 or an earlier next_offset, not {request.offset}")
        record = await self._cells.get(request.session, request.cell)
        nothing = OutputPage(pieces=(), next_offset=request.offset, ended=False, dropped_bytes=0)
        if record.status is CellStatus.FAILED:
            return replace(nothing, ended=True)
        try:
            return await self._host.read_output(address_of(record), request.offset, min(request.wait_s, WAIT_S))
        except WorkbenchError as problem:
            if not isinstance(problem, NotFound) and gone_reason(problem) is None:
                raise
        record = await self._ends.awaited(record, 0.0)
        if record.status is CellStatus.ENDED:
            raise _no_output(record)
        if record.status is CellStatus.FAILED:
            return replace(nothing, ended=True)
        await self._clock.pause(min(request.wait_s, _ARRIVING_S))
        return nothing


@dataclass(slots=True)
class _Sent:
    """What is known so far about one that is being sent."""

    session: Session
    record: CellRecord | None = None
    """once it is written down"""
    result: End | None = None
    unseen: WorkbenchError | None = None
    """why nobody can tell its end"""


class _Taken(Exception):
    """Not an error: the record is another's, or has its end."""

    def __init__(self, record: CellRecord) -> None:
        super().__init__(record.id)
        self.record = record


def _answered(record: CellRecord) -> CellRecord:
    if record.problem is not None:
        raise record.problem.error()
    return record


def _is_unseen(problem: WorkbenchError) -> bool:
    """Whether the place failed, and took along what nobody can tell any more."""
    gone = gone_reason(problem) is not None and not never_began(problem)
    # One that was dropped has run to its end, and was sent once more.
    return gone or was_dropped(problem) or isinstance(problem, HostUnavailable | NotFound)


def _check_wait(wait_s: float) -> None:
    # Written so that a NaN is refused as well.
    if not wait_s >= 0:
        raise InvalidRequest(f"a wait is 0 seconds or more, not {wait_s:g}")


def _another(record: CellRecord, request: Run) -> Conflict:
    by = f"the idempotency key {record.idempotency_key!r}" if request.idempotency_key else f"the id {record.id}"
    return Conflict(
        f"{by} belongs to another request, of {record.kind} {record.id}: send that one as it was, or choose another",
        {"session": record.session, "cell": record.id},
    )


def _no_output(record: CellRecord) -> Conflict:
    result = record.result
    assert result is not None
    files = ", ".join(path for path in (result.stdout.file_path, result.stderr.file_path) if path)
    where = f"; the whole is in {files}" if files else ""
    return Conflict(
        f"the output of {record.kind} {record.id} is not kept as it came any more: its result has head and tail"
        f"{where}. Get the {record.kind} by its id",
        {"session": record.session, "cell": record.id},
    )
