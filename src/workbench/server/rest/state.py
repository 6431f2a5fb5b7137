"""What a session's kernel has in its memory, and how that is moved back, copied or begun anew."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response, StreamingResponse

from workbench.core import requests
from workbench.model.ids import SessionId, new_session_id
from workbench.server.answers import answer
from workbench.server.auth import InSession, OwningSession
from workbench.server.past import history_page, notebook_text
from workbench.server.questions import body_of
from workbench.server.rest.sessions import noted
from workbench.server.routes import BODY, Responses, problems
from workbench.server.translate import CURSOR, after_cursor, shown_branch, shown_session
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["state"])

_NOTEBOOK = "application/x-ipynb+json"
_EXPORTED: Responses = {
    200: {
        "description": "A notebook in nbformat 4.",
        "content": {_NOTEBOOK: {"schema": {"type": "object", "required": ["cells", "metadata", "nbformat"]}}},
    }
}


@router.post(
    "/sessions/{session_id}/interrupt",
    operation_id="interrupt",
    summary="Interrupt the kernel",
    response_model=rest.Stopped,
    responses=problems(404, 409),
)
async def interrupt(visit: InSession) -> Response:
    """Interrupt what runs, whoever runs it; nothing happens if nothing does."""
    told = await visit.workbench.describe_session(requests.DescribeSession(session=visit.session))
    await visit.workbench.interrupt_kernel(requests.InterruptKernel(session=visit.session))
    return answer(rest.Stopped(stopped=any(one.running for one in told.queue)))


@router.post(
    "/sessions/{session_id}/restart",
    operation_id="restart",
    summary="Restart the kernel",
    response_model=rest.Session,
    responses=problems(404, 409, 429),
)
async def restart(visit: InSession) -> Response:
    """A new memory with a new epoch, with the start-up code run in it. What runs is lost, what waits never begins."""
    told = await visit.workbench.restart_kernel(requests.RestartKernel(session=visit.session))
    return answer(shown_session(told))


@router.post(
    "/sessions/{session_id}/undo",
    operation_id="undo",
    summary="Undo cells",
    response_model=rest.Undone,
    responses=problems(*BODY, 404, 409, 429),
)
async def undo(visit: InSession, sent: Annotated[rest.Undo, body_of(rest.Undo)] = rest.Undo()) -> Response:  # noqa: B008
    """Back to the memory from before the last cells, with a new epoch; files stay as they are."""
    told = await visit.workbench.undo(requests.UndoCells(session=visit.session, cells=sent.cells))
    return answer(rest.Undone(session=shown_session(told.described), not_carried=told.not_carried))


@router.post(
    "/sessions/{session_id}/branch",
    operation_id="branch",
    summary="Branch a session",
    status_code=201,
    response_model=rest.Branched,
    responses=problems(*BODY, 404, 409, 429),
)
async def branch(visit: OwningSession, sent: Annotated[rest.Branch, body_of(rest.Branch)] = rest.Branch()) -> Response:  # noqa: B008
    """A second session with the same memory: in the same sandbox, with the same files; or with `copy` in its own."""
    name = SessionId(sent.id) if sent.id is not None else new_session_id()
    async with noted(visit, "session.create", name):
        told = await visit.workbench.branch(requests.BranchSession(session=visit.session, branch=name, copy=sent.copy_))
    return answer(shown_branch(told), 201, {"location": f"/v1/sessions/{name}"})


@router.get(
    "/sessions/{session_id}/variables",
    operation_id="list_variables",
    summary="List variables",
    response_model=rest.Variables,
    responses=problems(404, 409),
)
async def variables(visit: InSession, most: Annotated[int, Query(ge=1, le=500)] = 500) -> Response:
    """Names of the kernel's memory, after what is queued; none if it has no memory now."""
    found = await visit.workbench.list_variables(requests.ListVariables(session=visit.session, most=most))
    return answer(rest.Variables(items=[rest.Variable.model_validate(one) for one in found]))


@router.get(
    "/sessions/{session_id}/processes",
    operation_id="list_processes",
    summary="List background processes",
    response_model=rest.BackgroundProcesses,
    responses=problems(404, 409),
)
async def processes(visit: InSession) -> Response:
    """What runs in its sandbox beside the kernel and commands under way."""
    found = await visit.workbench.list_processes(requests.ListProcesses(session=visit.session))
    items = [rest.BackgroundProcess.model_validate(one) for one in found]
    return answer(rest.BackgroundProcesses(items=items))


@router.get(
    "/sessions/{session_id}/history",
    operation_id="list_history",
    summary="List cells and commands",
    response_model=rest.CellPage,
    responses=problems(404, 409),
)
async def history(
    visit: InSession,
    cursor: Annotated[
        Annotated[str, Field(pattern=CURSOR)] | SkipJsonSchema[None],
        Query(description="The `next_cursor` of the page before."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    newest_first: Annotated[bool, Query(description="The same backwards.")] = False,
) -> Response:
    """What was run in it, with results, in the order it was accepted. A page of large results may have fewer."""
    ask = requests.ListCells(session=visit.session, after=after_cursor(cursor), limit=limit, newest_first=newest_first)
    return await history_page(visit.workbench, ask)


@router.get(
    "/sessions/{session_id}/history.ipynb",
    operation_id="export_notebook",
    summary="Export a notebook",
    response_class=Response,
    responses={**_EXPORTED, **problems(404, 409)},
)
async def notebook(visit: InSession) -> Response:
    """Its history as a notebook, with outputs, and with thoughts as text between the cells."""
    parts = visit.workbench.notebook_parts(requests.ExportNotebook(session=visit.session))
    # Before the headers go out: there may be no such session.
    head = await anext(parts)
    headers = {"content-disposition": f'attachment; filename="{visit.session}.ipynb"'}
    return StreamingResponse(notebook_text(head, parts), media_type=_NOTEBOOK, headers=headers)
