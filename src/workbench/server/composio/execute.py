"""Tools of the sessions API that are run: in a session, or for a user."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from fastapi import Path, Request
from starlette.responses import Response

from workbench.core import requests
from workbench.core.links import address_of
from workbench.core.mount_requests import MakeLink
from workbench.core.router.approving import Answers
from workbench.core.router.meta import META_SLUGS
from workbench.core.router.proxying import KeptFile, RawCall, RawResult
from workbench.core.router.router import Execute, Outcome
from workbench.errors import Conflict, InvalidRequest, NotFound
from workbench.model.access import Scope
from workbench.model.approval import InputRequired
from workbench.model.ids import users_own_session
from workbench.model.mounts import LinkAction
from workbench.model.session import Session
from workbench.model.toolkit import ToolResult
from workbench.server.addresses import links_lead_to, reached_by
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
    answers=wire.Executed | wire.InputRequired,
    responses=_RUN,
)
async def execute(
    request: Request, visit: InSession, sent: Annotated[wire.ExecuteTool, api_body(wire.ExecuteTool)]
) -> Response:
    """Run a tool in the session, to its end, which is 200 whatever it is. One that takes longer than a moment is
    answered with 200 and white space until the body comes. Going away stops nothing. The same call, sent again while
    the first is under way, is not made twice. Where a person has to approve it first, the answer says what to ask them.
    """
    ask = Execute(
        session=await visit.workbench.configurations.get(visit.session),
        slug=sent.tool_slug.strip().upper(),
        arguments=sent.arguments or {},
        account=sent.account or "",
        custom=own_tools(sent.experimental),
        answers=_answers(sent),
        address=reached_by(request.scope, visit.door.options),
        mark=request.headers.get(_TOLD_APART, ""),
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
    answers=wire.Executed | wire.InputRequired,
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
        answers=_answers(sent),
        address=reached_by(request.scope, visit.door.options),
        mark=request.headers.get(_TOLD_APART, ""),
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


def _answers(sent: wire.ExecuteTool | wire.ExecuteMeta | wire.ProxyExecute) -> Answers:
    responses = {name: one.model_dump() for name, one in (sent.input_responses or {}).items()}
    return Answers(state=sent.request_state or "", responses=responses)


def _executed(outcome: Outcome) -> wire.Executed | wire.InputRequired:
    if isinstance(outcome, InputRequired):
        return _asked(outcome)
    return wire.Executed(
        data=outcome.data,
        error=outcome.error or None,
        log_id=outcome.log_id,
        result_type="failed" if outcome.error else "completed",
    )


def _asked(outcome: InputRequired) -> wire.InputRequired:
    request = wire.InputRequest(message=outcome.message, requested_schema=dict(outcome.schema))
    return wire.InputRequired(input_requests={outcome.request: request}, request_state=outcome.state)


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
        account=sent.connected_account_id or "",
        key=visit.caller.key,
        may_proxy=visit.caller.may(Scope.PROXY),
        address=reached_by(request.scope, visit.door.options),
        mark=request.headers.get(_TOLD_APART, ""),
    )
    await SandboxTools(visit).prepare(ask.slug)
    mark = _mark(request, visit, f"{ask.slug} {session.spec.id}", sent.model_dump())
    return await answered(visit, mark, lambda: executed(visit, ask), _executed_for_user)


def _executed_for_user(outcome: Outcome) -> wire.ExecutedForUser:
    if isinstance(outcome, InputRequired):
        words = "a person has to approve this first, which cannot be asked for here: run it in a session"
        return wire.ExecutedForUser(data={}, error=f"not run: {words}", successful=False, log_id="")
    return wire.ExecutedForUser(
        data=outcome.data, error=outcome.error or None, successful=not outcome.error, log_id=outcome.log_id
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
    answers=wire.Proxied | wire.InputRequired,
    responses=_RUN,
)
async def proxy_execute(
    request: Request, visit: InSession, sent: Annotated[wire.ProxyExecute, api_body(wire.ProxyExecute)]
) -> Response:
    """A raw call to the service of a toolkit, on behalf of a connection of the session's user. As `execute` it is
    answered with white space while it takes long, and the same call is not made twice while the first is under way.
    """
    # BARRIER: a key for sessions alone would act for everybody who is connected; held by
    # tests/composio/tools/test_connections.py.
    require(visit.caller, Scope.PROXY)
    session = await visit.workbench.configurations.get(visit.session)
    call, links = _raw(sent), links_lead_to(request.scope, visit.door.options)
    mark = _mark(request, visit, visit.session, sent.model_dump())
    return await answered(visit, mark, lambda: _called(visit, session, call, _answers(sent), links), _proxied)


async def _called(visit: SessionVisit, session: Session, call: RawCall, answers: Answers, links: str) -> Outcome:
    router = visit.door.service.router
    async with noted(visit, "proxy.execute", session.spec.id, session.spec.user) as entry:
        entry.detail = f"{call.method} of a service"
        if visit.caller.session is not None:
            made: RawResult | InputRequired = await router.proxy_inside(session, call, is_counted=False)
        else:
            made = await router.proxy(session, call, answers)
        if isinstance(made, InputRequired):
            return made
        told: dict[str, Any] = {"status": made.status, "data": made.data, "headers": made.headers}
        if made.file is not None:
            told["binary_data"] = await _linked(visit, made.file, links)
    return ToolResult(data=told, error=made.problem, http_status=made.status)


async def _linked(visit: SessionVisit, file: KeptFile, links: str) -> dict[str, Any]:
    ask = MakeLink(session=visit.session, path=file.path, action=LinkAction.DOWNLOAD)
    made = await visit.workbench.mounts.link(ask)
    return {
        "url": links + address_of(made),
        "content_type": file.content_type,
        "size": file.size,
        "expires_at": made.expires_at,
        "mount_relative_path": file.path,
    }


def _proxied(outcome: Outcome) -> wire.Proxied | wire.InputRequired:
    if isinstance(outcome, InputRequired):
        return _asked(outcome)
    if outcome.error:
        # BARRIER: a status of our own would have SDKs send it again, and it may have been carried out; held by
        # tests/toolkits/test_raw_calls.py.
        status = 502 if outcome.http_status is None else 504
        return wire.Proxied(status=status, data={"error": outcome.error})
    return wire.Proxied(**outcome.data)


def _raw(sent: wire.ProxyExecute) -> RawCall:
    binary = sent.binary_body
    if binary is not None and (binary.base64 is None) == (binary.url is None):
        raise InvalidRequest("`binary_body` takes `base64` or `url`, and one of them", {"field": "binary_body"})
    if binary is not None and sent.body is not None:
        raise InvalidRequest("`body` and `binary_body` are both given; send one of them", {"field": "binary_body"})
    try:
        has_content = binary is not None and binary.base64 is not None
        content = base64.b64decode(binary.base64 or "", validate=True) if binary and has_content else None
    except ValueError:
        raise InvalidRequest("`binary_body.base64` is no base64", {"field": "binary_body"}) from None
    given = sent.parameters or []
    return RawCall(
        toolkit=sent.toolkit_slug,
        endpoint=sent.endpoint,
        method=sent.method,
        body=sent.body,
        binary=content,
        binary_from=(binary.url if binary else None) or "",
        content_type=(binary.content_type if binary else None) or "",
        query=tuple((one.name, one.value) for one in given if one.type == "query"),
        headers=tuple((one.name, one.value) for one in given if one.type == "header"),
        account=sent.account or "",
    )
