"""Sessions: made, looked at, changed and deleted."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.errors import InternalError, WorkbenchError
from workbench.model.ids import SessionId
from workbench.model.tier import tier_named
from workbench.server.answers import answer, nothing
from workbench.server.auth import InProject, InSession, OwningSession
from workbench.server.door import Visit
from workbench.server.questions import body_of
from workbench.server.routes import BODY, problems
from workbench.server.translate import create_session, shown_session
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["sessions"])


@dataclass(slots=True)
class Entry:
    """What is to be written down beside who did what; filled in meanwhile."""

    outcome: str = "ok"
    """if nothing is raised"""
    detail: str = ""
    is_news: bool = True
    """if not, it is not written down: as it was before, many times"""


@contextlib.asynccontextmanager
async def noted(visit: Visit, action: str, session: SessionId | None = None, user: str = "") -> AsyncIterator[Entry]:
    """Write down who did it, and how it went."""
    outcome, entry = InternalError.code, Entry()
    try:
        yield entry
        outcome = entry.outcome
    except WorkbenchError as problem:
        outcome = problem.code
        raise
    finally:
        try:
            if entry.is_news:
                await visit.door.service.access.note(
                    visit.caller, action, session=session, user=user, outcome=outcome, detail=entry.detail
                )
        except WorkbenchError as problem:
            # It was done, or refused, whether that could be written down or not: the log has to remember it.
            visit.door.log.event("error", "audit.lost", request_id=visit.note.request_id, outcome=problem.code)


@router.post(
    "/sessions",
    operation_id="create_session",
    summary="Make a session",
    status_code=201,
    response_model=rest.Session,
    responses=problems(*BODY, 409, 429),
)
async def create(visit: InProject, sent: Annotated[rest.CreateSession, body_of(rest.CreateSession)]) -> Response:
    """A new session. Its sandbox is made with the first call that needs one, unless it is `eager`."""
    request = create_session(sent)
    visit.note.session = request.session
    async with noted(visit, "session.create", request.session, request.user):
        told = await visit.workbench.create_session(request)
    return answer(shown_session(told), 201, {"location": f"/v1/sessions/{request.session}"})


@router.get(
    "/sessions",
    operation_id="list_sessions",
    summary="List sessions",
    response_model=rest.SessionPage,
    responses=problems(),
)
async def list_(
    visit: InProject,
    user_id: Annotated[rest.UserName | SkipJsonSchema[None], Query(description="Only those of this user.")] = None,
    cursor: Annotated[
        rest.SessionName | SkipJsonSchema[None], Query(description="The `next_cursor` of the page before.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """A page of the project's sessions, by name."""
    after = None if cursor is None else SessionId(cursor)
    page = await visit.workbench.list_sessions(requests.ListSessions(user=user_id, after=after, limit=limit))
    items = [shown_session(one) for one in page.sessions]
    return answer(rest.SessionPage(items=items, next_cursor=page.next_after))


@router.get(
    "/sessions/{session_id}",
    operation_id="get_session",
    summary="Look at a session",
    response_model=rest.Session,
    responses=problems(404),
)
async def get(visit: InSession) -> Response:
    """How it is now. Changes nothing, starts nothing, and does not count as use."""
    told = await visit.workbench.describe_session(requests.DescribeSession(session=visit.session))
    return answer(shown_session(told))


@router.patch(
    "/sessions/{session_id}",
    operation_id="change_session",
    summary="Change a session",
    response_model=rest.Session,
    responses=problems(*BODY, 404, 409, 429),
)
async def change(visit: OwningSession, sent: Annotated[rest.ChangeSession, body_of(rest.ChangeSession)]) -> Response:
    """Another size, at once and with its memory kept; snapshots on or off; idle limits. What is left out stays."""
    wanted = sent.sandbox
    async with noted(visit, "session.change", visit.session):
        if wanted.sandbox_size is not None:
            tier = tier_named(wanted.sandbox_size)
            await visit.workbench.change_tier(requests.ChangeTier(session=visit.session, tier=tier))
        if wanted.snapshots is not None:
            await visit.workbench.set_snapshots(requests.SetSnapshots(session=visit.session, on=wanted.snapshots))
        if wanted.idle is not None:
            await _change_idle(visit.workbench, visit.session, wanted.idle)
        told = await visit.workbench.describe_session(requests.DescribeSession(session=visit.session))
    return answer(shown_session(told))


async def _change_idle(workbench: Workbench, session: SessionId, sent: rest.Idle) -> None:
    """Only what was said; `null` is said."""
    told = await workbench.describe_session(requests.DescribeSession(session=session))
    given = {name: getattr(sent, name) for name in sent.model_fields_set}
    idle = replace(told.session.spec.idle, **given)
    await workbench.set_idle_limits(requests.SetIdleLimits(session=session, idle=idle))


@router.delete(
    "/sessions/{session_id}",
    operation_id="delete_session",
    summary="Delete a session",
    status_code=204,
    response_class=Response,
    responses=problems(404, 409),
)
async def delete(visit: OwningSession) -> Response:
    """End what runs in it, and drop its memory, its history and its files, unless branches still share them."""
    # Before: afterwards nobody knows whose it was, and what is noted of it could not be forgotten with them.
    user = await visit.workbench.user_of(visit.session)
    async with noted(visit, "session.delete", visit.session, user):
        await visit.workbench.delete_session(requests.DeleteSession(session=visit.session))
    return nothing()


@router.post(
    "/sessions/{session_id}/keep-alive",
    operation_id="keep_alive",
    summary="Keep a session alive",
    status_code=204,
    response_class=Response,
    responses=problems(404, 409),
)
async def keep_alive(visit: InSession) -> Response:
    """Counts as use: the idle limits begin anew."""
    await visit.workbench.keep_alive(requests.KeepAlive(session=visit.session))
    return nothing()
