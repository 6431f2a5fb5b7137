"""Cells that are awaited: a quick end has its true status; for others the headers go out, and white space keeps the
connection alive until the body. Whoever goes away does not stop anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from workbench.core import requests
from workbench.errors import NotFound, Unauthenticated, WorkbenchError
from workbench.model.ids import CellId
from workbench.model.records import CellKind, CellRecord, CellStatus
from workbench.server.answers import JSON, answer
from workbench.server.auth import check_still_good
from workbench.server.door import SessionVisit
from workbench.server.listening import Heard, Listener
from workbench.server.metrics import outcome_of
from workbench.server.translate import shown_cell
from workbench.wire import rest
from workbench.wire.problems import problem_of

Run = requests.RunCell | requests.RunCommand

# A refusal comes within this; and a client that is told nothing for so long does not mind.
_GRACE_S = 0.25
_SPACE_EVERY_S = 5.0
# When the server is told to leave. What has not ended by then is answered as pending, and goes on in the host.
_STOP_GRACE_S = 10.0
# The most that the core waits in one call.
_WAIT_S = 60.0
_PAUSE_S, _TRIES = 5.0, 24


async def awaited(visit: SessionVisit, request: Run) -> Response:
    """The end of it."""
    task = visit.door.kept.start(_performed(visit, request), "cell")
    await asyncio.wait((task,), timeout=_GRACE_S)
    if not task.done():
        return _Awaited(visit, request, task)
    record = task.result()
    visit.note.outcome = outcome_of(record)
    return answer(shown_cell(record))


async def _performed(visit: SessionVisit, request: Run) -> CellRecord:
    metrics = visit.door.metrics
    try:
        with metrics.running.track_inprogress():
            record = await visit.workbench.perform(request)
    except WorkbenchError as problem:
        metrics.refused(kind_of(request), problem.code)
        raise
    metrics.cell(record)
    return record


class _Awaited(Response):
    """An answer whose headers go out before it is known."""

    def __init__(self, visit: SessionVisit, request: Run, task: asyncio.Task[CellRecord]) -> None:
        super().__init__(media_type=JSON)
        # Its length is not known.
        del self.headers["content-length"]
        self._visit = visit
        self._request = request
        self._task = task
        self._shut_out = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """As ASGI has it."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": b" ", "more_body": True})
        async with Listener(receive, self._visit.door) as listener:
            if await self._until_known(listener, send):
                body = (await self._known()).model_dump_json().encode()
                await send({"type": "http.response.body", "body": body})

    async def _until_known(self, listener: Listener, send: Send) -> bool:
        """Whether somebody still wants to know."""
        deadline: float | None = None
        while True:
            left_s = _SPACE_EVERY_S if deadline is None else min(_SPACE_EVERY_S, deadline - time.monotonic())
            heard = await listener.wait(self._task, max(left_s, 0.0), also_when_stopping=deadline is not None)
            if heard is Heard.STOPPING:
                deadline = time.monotonic() + _STOP_GRACE_S
            elif heard is not Heard.SILENCE:
                return heard is Heard.DONE
            elif (deadline is not None and time.monotonic() >= deadline) or not await self._still_good():
                return True
            else:
                await send({"type": "http.response.body", "body": b" ", "more_body": True})

    async def _still_good(self) -> bool:
        try:
            await check_still_good(self._visit)
        except Unauthenticated:
            self._shut_out = True
        except WorkbenchError:
            # It is asked again in a moment; until then nothing is told.
            pass
        return not self._shut_out

    async def _known(self) -> rest.Cell:
        """Its end; or, if it failed, or there is no time left for it, what is known."""
        problem: BaseException | None = None
        if self._shut_out:
            # It runs on, and what becomes of it is told to those who have a key.
            self._visit.note.outcome = Unauthenticated.code
            return _as_asked(self._request, None)
        if self._task.done():
            problem = self._task.exception()
            if problem is None:
                self._visit.note.outcome = outcome_of(self._task.result())
                return shown_cell(self._task.result())
            if not isinstance(problem, WorkbenchError):
                raise problem
        assert problem is None or isinstance(problem, WorkbenchError)
        self._visit.note.outcome = "pending" if problem is None else problem.code
        with contextlib.suppress(WorkbenchError):
            ask = requests.GetCell(session=self._visit.session, cell=self._request.cell)
            record = await self._visit.workbench.get_cell(ask)
            if problem is None or record.status is not CellStatus.PENDING:
                return shown_cell(record)
        return _as_asked(self._request, problem)


def _as_asked(request: Run, problem: WorkbenchError | None) -> rest.Cell:
    """For what nobody wrote down."""
    return rest.Cell(
        id=request.cell,
        session_id=request.session,
        kind=kind_of(request),
        status=CellStatus.PENDING if problem is None else CellStatus.FAILED,
        code=request.code if isinstance(request, requests.RunCell) else request.command,
        limit_s=request.limit_s,
        created_at="",
        error=None if problem is None else problem_of(problem),
    )


def kind_of(request: Run) -> CellKind:
    """What is run."""
    return CellKind.CELL if isinstance(request, requests.RunCell) else CellKind.COMMAND


async def submitted(visit: SessionVisit, request: Run) -> CellRecord:
    """As soon as it is under way; its end is seen to, whoever listens."""
    try:
        record = await visit.workbench.submit(request)
    except WorkbenchError as problem:
        visit.door.metrics.refused(kind_of(request), problem.code)
        raise
    visit.note.outcome = outcome_of(record)
    if record.status is CellStatus.PENDING:
        visit.door.kept.start(_seen_to(visit, record.id), "detached cell")
    else:
        visit.door.metrics.cell(record)
    return record


async def _seen_to(visit: SessionVisit, cell: CellId) -> None:
    """Wait for its end, which writes it down. If that is not possible for long, whoever asks next does it."""
    ask = requests.GetCell(session=visit.session, cell=cell, wait_s=_WAIT_S)
    tries = 0
    with visit.door.metrics.running.track_inprogress():
        while tries < _TRIES:
            try:
                record = await visit.workbench.get_cell(ask)
            except NotFound:
                return
            except WorkbenchError:
                tries += 1
                await asyncio.sleep(_PAUSE_S)
                continue
            if record.status is not CellStatus.PENDING:
                visit.door.metrics.cell(record)
                return
