"""Cells that are awaited: a quick end has its true status; others are answered as `heartbeat` does."""

from __future__ import annotations

import asyncio
import contextlib
import functools

from starlette.responses import Response

from workbench.core import requests
from workbench.errors import NotFound, Unauthenticated, WorkbenchError
from workbench.model.ids import CellId
from workbench.model.records import CellKind, CellRecord, CellStatus
from workbench.server.answers import answer
from workbench.server.door import SessionVisit
from workbench.server.heartbeat import Ending, Slow, is_quick
from workbench.server.metrics import outcome_of
from workbench.server.translate import shown_cell
from workbench.wire import rest
from workbench.wire.problems import problem_of

Run = requests.RunCell | requests.RunCommand

# The most that the core waits in one call.
_WAIT_S = 60.0
_PAUSE_S, _TRIES = 5.0, 24


async def awaited(visit: SessionVisit, request: Run) -> Response:
    """The end of it."""
    task = visit.door.kept.start(_performed(visit, request), "cell")
    if not await is_quick(task):
        return Slow(visit, task, functools.partial(_told, visit, request, task))
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


async def _told(visit: SessionVisit, request: Run, task: asyncio.Task[CellRecord], ending: Ending) -> bytes:
    return (await _known(visit, request, task, ending)).model_dump_json().encode()


async def _known(visit: SessionVisit, request: Run, task: asyncio.Task[CellRecord], ending: Ending) -> rest.Cell:
    """Its end; or, if it failed, or there is no time left for it, what is known."""
    problem: BaseException | None = None
    if ending is Ending.SHUT_OUT:
        # It runs on, and what becomes of it is told to those who have a key.
        visit.note.outcome = Unauthenticated.code
        return _as_asked(request, None)
    if task.done():
        problem = task.exception()
        if problem is None:
            visit.note.outcome = outcome_of(task.result())
            return shown_cell(task.result())
        if not isinstance(problem, WorkbenchError):
            raise problem
    assert problem is None or isinstance(problem, WorkbenchError)
    visit.note.outcome = "pending" if problem is None else problem.code
    with contextlib.suppress(WorkbenchError):
        ask = requests.GetCell(session=visit.session, cell=request.cell)
        record = await visit.workbench.get_cell(ask)
        if problem is None or record.status is not CellStatus.PENDING:
            return shown_cell(record)
    return _as_asked(request, problem)


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
