"""Cells and commands: run, followed, asked for and stopped. Both are answered with the same shape."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core import requests
from workbench.errors import NotFound
from workbench.model.ids import CellId
from workbench.model.records import CellKind, CellRecord, CellStatus
from workbench.server.answers import answer
from workbench.server.auth import InSession, check_still_good
from workbench.server.door import SessionVisit
from workbench.server.events import EVENT_STREAM, LastEventId, Offset, followed, place_of, start_of
from workbench.server.questions import body_of
from workbench.server.routes import BODY, Responses, problems
from workbench.server.translate import run_cell, run_command, shown_cell
from workbench.server.waiting import Run, awaited, submitted
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["cells"])
commands = APIRouter(prefix="/v1", tags=["commands"])

# Longer than most clients and proxies wait in silence.
_MOST_WAIT_S = 60.0
_EVENTS: dict[str, Any] = {
    EVENT_STREAM: {
        "schema": {
            "type": "object",
            "description": "One event. Comments between events are signs of life.",
            "required": ["event", "data"],
            "properties": {
                "event": {
                    "enum": ["piece", "dropped", "end"],
                    "description": (
                        "`piece`: output as it came. `dropped`: how much of it the host could not keep. `end`: the "
                        "cell as it ended, after which nothing comes."
                    ),
                },
                "id": {"type": "string", "description": "The offset behind it, to go on from."},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "description": "A `Piece`, `Dropped` or `Cell`.",
                },
            },
        }
    }
}
_ENDED: Responses = {
    200: {
        "model": rest.Cell,
        "description": "`await`: how it ended, or failed to begin. `stream`: events as they come.",
        "content": _EVENTS,
    },
    202: {"model": rest.Cell, "description": "`detach`: it is under way, and can be asked for or followed by its id."},
}
_FOLLOWED: Responses = {200: {"description": "Events.", "content": _EVENTS}}

IdempotencyKey = Annotated[
    Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[ -~]+$")] | SkipJsonSchema[None],
    Header(
        alias="Idempotency-Key",
        description=(
            "1 to 200 printable characters of your choice. The same request with the same key is one cell: a retry "
            "gets the kept answer, or waits for it. Another request with the same key is refused."
        ),
    ),
]
CellPath = Annotated[
    str, Path(min_length=1, max_length=48, pattern=r"^[a-z0-9][a-z0-9_-]*$", examples=["c-5f1c0a9b7d3e"])
]
WaitSeconds = Annotated[
    float, Query(ge=0, le=_MOST_WAIT_S, allow_inf_nan=False, description="Wait up to so long for its end.")
]


@router.post(
    "/sessions/{session_id}/cells",
    operation_id="run_cell",
    summary="Run a cell",
    response_model=rest.Cell,
    responses={**_ENDED, **problems(*BODY, 404, 409, 429)},
)
async def run_a_cell(
    visit: InSession,
    sent: Annotated[rest.RunCell, body_of(rest.RunCell)],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Run code in the session's kernel, after what is queued there already.

    If it began there is a `result`, whatever became of it; if it never began there is an error. Awaited cells that take
    longer than a moment are answered with 200 and white space until the body comes; if such a cell turns out never to
    begin, its `status` is `failed` and `error` says why. Going away stops nothing.
    """
    return await _run(visit, run_cell(visit.session, sent, idempotency_key or ""), sent.mode)


@commands.post(
    "/sessions/{session_id}/commands",
    operation_id="run_command",
    summary="Run a command",
    response_model=rest.Cell,
    responses={**_ENDED, **problems(*BODY, 404, 409, 429)},
)
async def run_a_command(
    visit: InSession,
    sent: Annotated[rest.RunCommand, body_of(rest.RunCommand)],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Run a command line by bash, beside what the kernel does. Answered like a cell."""
    return await _run(visit, run_command(visit.session, sent, idempotency_key or ""), sent.mode)


async def _run(visit: SessionVisit, request: Run, mode: rest.Mode) -> Response:
    if mode == "await":
        return await awaited(visit, request)
    record = await submitted(visit, request)
    if mode == "stream":
        return await followed(visit, record, 0, just_run=True)
    status = 202 if record.status is CellStatus.PENDING else 200
    return answer(shown_cell(record), status, {"location": place_of(record)})


@router.get(
    "/sessions/{session_id}/cells/{cell_id}",
    operation_id="get_cell",
    summary="Look at a cell",
    response_model=rest.Cell,
    responses=problems(404, 409),
)
async def get_cell(visit: InSession, cell_id: CellPath, wait_s: WaitSeconds = 0.0) -> Response:
    """How it is, or how it ended if that comes within `wait_s`."""
    return answer(shown_cell(await _found(visit, CellKind.CELL, cell_id, wait_s)))


@commands.get(
    "/sessions/{session_id}/commands/{cell_id}",
    operation_id="get_command",
    summary="Look at a command",
    response_model=rest.Cell,
    responses=problems(404, 409),
)
async def get_command(visit: InSession, cell_id: CellPath, wait_s: WaitSeconds = 0.0) -> Response:
    """How it is, or how it ended if that comes within `wait_s`."""
    return answer(shown_cell(await _found(visit, CellKind.COMMAND, cell_id, wait_s)))


async def _waited(visit: SessionVisit, ask: requests.GetCell) -> CellRecord:
    """Its end; or how it is when the time is over, or the server is about to leave."""
    waiting = asyncio.create_task(visit.workbench.get_cell(ask))
    stopping = asyncio.create_task(visit.door.stopping.wait())
    try:
        await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            record = waiting.result()
        else:
            record = await visit.workbench.get_cell(replace(ask, wait_s=0.0))
    finally:
        waiting.cancel()
        stopping.cancel()
        await asyncio.gather(waiting, stopping, return_exceptions=True)
    await check_still_good(visit)
    return record


async def _found(visit: SessionVisit, kind: CellKind, cell: str, wait_s: float = 0.0) -> CellRecord:
    ask = requests.GetCell(session=visit.session, cell=CellId(cell), wait_s=wait_s)
    record = await (_waited(visit, ask) if wait_s else visit.workbench.get_cell(ask))
    if record.kind is not kind:
        raise NotFound(f"{cell} is a {record.kind}, and no {kind}: ask at {place_of(record)}", {"cell": cell})
    return record


@router.get(
    "/sessions/{session_id}/cells/{cell_id}/events",
    operation_id="follow_cell",
    summary="Follow a cell",
    response_class=Response,
    responses={**_FOLLOWED, **problems(404, 409)},
)
async def follow_cell(
    visit: InSession, cell_id: CellPath, offset: Offset = 0, last_event_id: LastEventId = None
) -> Response:
    """What it says, as it says it, from any offset on; whoever ran it, and from whichever connection."""
    record = await _found(visit, CellKind.CELL, cell_id)
    return await followed(visit, record, start_of(offset, last_event_id))


@commands.get(
    "/sessions/{session_id}/commands/{cell_id}/events",
    operation_id="follow_command",
    summary="Follow a command",
    response_class=Response,
    responses={**_FOLLOWED, **problems(404, 409)},
)
async def follow_command(
    visit: InSession, cell_id: CellPath, offset: Offset = 0, last_event_id: LastEventId = None
) -> Response:
    """The same for a command."""
    record = await _found(visit, CellKind.COMMAND, cell_id)
    return await followed(visit, record, start_of(offset, last_event_id))


@router.post(
    "/sessions/{session_id}/cells/{cell_id}/stop",
    operation_id="stop_cell",
    summary="Stop a cell",
    response_model=rest.Stopped,
    responses=problems(404, 409),
)
async def stop_cell(visit: InSession, cell_id: CellPath) -> Response:
    """Cancel it if it waits, interrupt it if it runs. No other is touched."""
    await _found(visit, CellKind.CELL, cell_id)
    stopped = await visit.workbench.stop_cell(requests.StopCell(session=visit.session, cell=CellId(cell_id)))
    return answer(rest.Stopped(stopped=stopped))


@commands.post(
    "/sessions/{session_id}/commands/{cell_id}/stop",
    operation_id="stop_command",
    summary="Stop a command",
    response_model=rest.Stopped,
    responses=problems(404, 409),
)
async def stop_command(visit: InSession, cell_id: CellPath) -> Response:
    """Interrupt it and everything in its group."""
    await _found(visit, CellKind.COMMAND, cell_id)
    stopped = await visit.workbench.stop_command(requests.StopCommand(session=visit.session, cell=CellId(cell_id)))
    return answer(rest.Stopped(stopped=stopped))
