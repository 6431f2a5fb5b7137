"""Further kernels of a session, around the same files."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from workbench.core import requests
from workbench.model.ids import SessionId, new_session_id
from workbench.server.answers import answer, nothing
from workbench.server.auth import InSession, OwningSession
from workbench.server.questions import body_of
from workbench.server.rest.sessions import noted
from workbench.server.routes import BODY, problems
from workbench.server.translate import shown_session
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["contexts"])
ContextId = Annotated[rest.SessionName, Path(description="The context's name, which is that of a session.")]


@router.post(
    "/sessions/{session_id}/contexts",
    operation_id="create_context",
    summary="Make a context",
    status_code=201,
    response_model=rest.Session,
    responses=problems(*BODY, 404, 409, 429),
)
async def create(
    visit: OwningSession,
    sent: Annotated[rest.CreateContext, body_of(rest.CreateContext)] = rest.CreateContext(),  # noqa: B008
) -> Response:
    """A further kernel with an empty memory, in the same sandbox; by its id it is used as a session is."""
    name = SessionId(sent.id) if sent.id is not None else new_session_id()
    request = requests.CreateContext(
        session=visit.session, context=name, runtime=sent.runtime or "", working_folder=sent.working_folder or ""
    )
    async with noted(visit, "session.create", name):
        told = await visit.workbench.create_context(request)
    return answer(shown_session(told), 201, {"location": f"/v1/sessions/{name}"})


@router.get(
    "/sessions/{session_id}/contexts",
    operation_id="list_contexts",
    summary="List contexts",
    response_model=rest.Contexts,
    responses=problems(404),
)
async def list_(visit: InSession) -> Response:
    """Those of a session, oldest first."""
    found = await visit.workbench.list_contexts(requests.ListContexts(session=visit.session))
    return answer(rest.Contexts(items=[shown_session(one) for one in found]))


@router.post(
    "/sessions/{session_id}/contexts/{context_id}/restart",
    operation_id="restart_context",
    summary="Restart a context",
    response_model=rest.Session,
    responses=problems(404, 409, 429),
)
async def restart(visit: OwningSession, context_id: ContextId) -> Response:
    """A new, empty memory for it alone."""
    request = requests.RestartContext(session=visit.session, context=SessionId(context_id))
    return answer(shown_session(await visit.workbench.restart_context(request)))


@router.delete(
    "/sessions/{session_id}/contexts/{context_id}",
    operation_id="remove_context",
    summary="Remove a context",
    status_code=204,
    response_class=Response,
    responses=problems(404, 409),
)
async def remove(visit: OwningSession, context_id: ContextId) -> Response:
    """End its kernel and drop its history; the session, its files and its other contexts stay."""
    name = SessionId(context_id)
    user = await visit.workbench.user_of(name)
    async with noted(visit, "session.delete", name, user):
        await visit.workbench.remove_context(requests.RemoveContext(session=visit.session, context=name))
    return nothing()
