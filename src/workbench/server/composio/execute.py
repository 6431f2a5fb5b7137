"""Tools of the sessions API that are run: in a session, or for a user."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request
from starlette.responses import Response

from workbench.core import requests
from workbench.core.router.meta import META_SLUGS
from workbench.core.router.router import Execute
from workbench.errors import Conflict, InvalidRequest, NotFound
from workbench.model.access import Scope
from workbench.model.ids import users_own_session
from workbench.model.session import Session
from workbench.model.toolkit import ToolResult
from workbench.server.auth import InProject, InSession, require
from workbench.server.composio.reading import api_body
from workbench.server.composio.routes import BODY, Api, problems
from workbench.server.composio.running import answered, executed, own_tools
from workbench.server.composio.sandbox_tools import SandboxTools
from workbench.server.door import SessionVisit, Visit
from workbench.server.joining import mark_of
from workbench.server.rest.sessions import noted
from workbench.wire import composio_tools as wire

api = Api()

_SESSION = "/tool_router/session/{session_id}"
_RUN = problems(*BODY, 404, 409, 429, 502)
# By which a caller tells two calls of the same words apart.
_TOLD_APART = "x-call-id"
ToolPath = Annotated[str, Path(min_length=1, max_length=200, examples=["COMPOSIO_REMOTE_WORKBENCH"])]


@api.route(
    "POST",
    f"{_SESSION}/execute",
    operation_id="api_execute_tool",
    summary="Run a tool",
    answers=wire.Executed,
    responses=_RUN,
)
async def execute(
    request: Request, visit: InSession, sent: Annotated[wire.ExecuteTool, api_body(wire.ExecuteTool)]
) -> Response:
    """Run a tool in the session, to its end, which is 200 whatever it is. One that takes longer than a moment is
    answered with 200 and white space until the body comes. Going away stops nothing. The same call, sent again while
    the first is under way, is not made twice.
    """
    ask = Execute(
        session=await visit.workbench.configurations.get(visit.session),
        slug=sent.tool_slug.strip().upper(),
        arguments=sent.arguments or {},
        account=sent.account or "",
        custom=own_tools(sent.experimental),
        offload=bool(sent.enable_auto_workbench_offload),
        key=visit.caller.key,
        may_proxy=visit.caller.may(Scope.PROXY),
        for_code=visit.caller.session is not None,
    )
    return await _run(request, visit, ask, sent.model_dump())


@api.route(
    "POST",
    f"{_SESSION}/execute_meta",
    operation_id="api_execute_meta_tool",
    summary="Run a meta tool",
    answers=wire.Executed,
    responses=_RUN,
)
async def execute_meta(
    request: Request, visit: InSession, sent: Annotated[wire.ExecuteMeta, api_body(wire.ExecuteMeta)]
) -> Response:
    """The same for the tools that lead to others, and for no others."""
    slug = sent.slug.strip().upper()
    if slug not in META_SLUGS:
        raise InvalidRequest(
            f"{slug[:100]!r} is no meta tool: there are {', '.join(sorted(META_SLUGS))}; others are run by execute",
            {"field": "slug"},
        )
    ask = Execute(
        session=await visit.workbench.configurations.get(visit.session),
        slug=slug,
        arguments=sent.arguments or {},
        custom=own_tools(sent.experimental),
        key=visit.caller.key,
        may_proxy=visit.caller.may(Scope.PROXY),
        for_code=visit.caller.session is not None,
    )
    return await _run(request, visit, ask, sent.model_dump())


async def _run(request: Request, visit: SessionVisit, ask: Execute, body: dict[str, Any]) -> Response:
    await SandboxTools(visit).prepare(ask.slug)
    mark = _mark(request, visit, visit.session, body)
    return await answered(visit, mark, lambda: executed(visit, ask), _executed)


def _mark(request: Request, visit: Visit, about: str, body: dict[str, Any]) -> str:
    # Both addresses of a route are the same to it, and its name is that of neither.
    operation = request.scope["endpoint"].__name__
    return mark_of(visit.caller, operation, about, body, request.headers.get(_TOLD_APART, ""))


def _executed(result: ToolResult) -> wire.Executed:
    return wire.Executed(
        data=result.data,
        error=result.error or None,
        log_id=result.log_id,
        result_type="failed" if result.error else "completed",
    )


@api.route(
    "POST",
    "/tools/execute/{tool_slug}",
    operation_id="api_execute_tool_for_user",
    summary="Run a tool for a user",
    answers=wire.ExecutedForUser,
    responses=_RUN,
)
async def execute_for_user(
    request: Request,
    visit: InProject,
    tool_slug: ToolPath,
    sent: Annotated[wire.ExecuteForUser, api_body(wire.ExecuteForUser)],
) -> Response:
    """Run a tool for a user, in a session that is theirs for such calls: made with the first, the same ever after."""
    session = await _session_for(visit, sent.user_id)
    visit.note.session = session.spec.id
    ask = Execute(
        session=session,
        slug=tool_slug.strip().upper(),
        arguments=sent.arguments or {},
        key=visit.caller.key,
        may_proxy=visit.caller.may(Scope.PROXY),
    )
    await SandboxTools(visit).prepare(ask.slug)
    mark = _mark(request, visit, f"{ask.slug} {session.spec.id}", sent.model_dump())
    return await answered(visit, mark, lambda: executed(visit, ask), _executed_for_user)


def _executed_for_user(result: ToolResult) -> wire.ExecutedForUser:
    return wire.ExecutedForUser(
        data=result.data, error=result.error or None, successful=not result.error, log_id=result.log_id
    )


async def _session_for(visit: Visit, user: str) -> Session:
    name = users_own_session(visit.caller.project, user)
    try:
        return await visit.workbench.configurations.get(name)
    except NotFound:
        pass
    try:
        async with noted(visit, "session.create", name, user):
            return (await visit.workbench.create_session(requests.CreateSession(session=name, user=user))).session
    except Conflict:
        # Another call was quicker.
        return await visit.workbench.configurations.get(name)


@api.route(
    "POST",
    f"{_SESSION}/proxy_execute",
    operation_id="api_proxy_execute",
    summary="Call a service directly",
    answers=wire.Proxied,
    responses=_RUN,
)
async def proxy_execute(visit: InSession, sent: Annotated[wire.ProxyExecute, api_body(wire.ProxyExecute)]) -> Response:
    """A raw call to the service of a toolkit, on behalf of a connection of the session's user. There are none yet."""
    # BARRIER: a key for sessions alone would act for everybody who is connected; held by
    # tests/composio/tools/test_connections.py.
    require(visit.caller, Scope.PROXY)
    session = await visit.workbench.configurations.get(visit.session)
    async with noted(visit, "proxy.execute", visit.session, session.spec.user):
        visit.door.service.router.refuse_proxy(session, sent.toolkit_slug)
