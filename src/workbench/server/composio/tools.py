"""Tools of the sessions API that are shown and found, and the toolkits they belong to."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core.router.connecting import ToolkitState
from workbench.core.router.searching import Query as Step
from workbench.model.connection import ConnectedAccount
from workbench.model.toolkit import Tool
from workbench.server.addresses import reached_by
from workbench.server.answers import answer
from workbench.server.auth import Anyone, InSession
from workbench.server.composio.connected_accounts import shown_config
from workbench.server.composio.execute import ToolPath
from workbench.server.composio.paging import Cursor, page_of
from workbench.server.composio.reading import api_body
from workbench.server.composio.routes import BODY, Api, problems
from workbench.server.composio.running import own_tools
from workbench.server.composio.sandbox_tools import SandboxTools
from workbench.server.rest.sessions import noted
from workbench.wire import composio_tools as wire

api = Api()

_SESSION = "/tool_router/session/{session_id}"
_MOST_TOOLS, _DEFAULT_TOOLS = 1000, 500
_MOST_TOOLKITS, _DEFAULT_TOOLKITS = 50, 20


@api.route(
    "GET",
    f"{_SESSION}/tools",
    operation_id="api_list_tools",
    summary="List the tools of a session",
    answers=wire.ToolPage,
    responses=problems(404, 409),
)
async def list_tools(
    visit: InSession, cursor: Cursor = None, limit: Annotated[int, Query(ge=1, le=_MOST_TOOLS)] = _DEFAULT_TOOLS
) -> Response:
    """Those that a model is shown: the meta tools that the session offers, and those that are preloaded."""
    session = await visit.workbench.configurations.get(visit.session)
    router = visit.door.service.router
    names = await router.toolkit_names(session)
    page = page_of(await router.tools(session, SandboxTools(visit)), cursor, limit)
    items = [_shown(tool, names.get(tool.toolkit, "Composio")) for tool in page.items]
    return answer(
        wire.ToolPage(
            items=items,
            next_cursor=page.next_cursor,
            total_pages=page.total_pages,
            current_page=page.current_page,
            total_items=page.total_items,
        )
    )


@api.route(
    "GET",
    "/tools/{tool_slug}",
    operation_id="api_get_tool",
    summary="Look at a tool",
    answers=wire.ToolShown,
    responses=problems(404),
)
async def get_tool(visit: Anyone, tool_slug: ToolPath) -> Response:
    """Any tool there is, whichever session may use it."""
    tool, toolkit = await visit.door.service.router.describe(tool_slug, SandboxTools(visit), visit.caller.project)
    return answer(_shown(tool, toolkit))


def _shown(tool: Tool, toolkit: str) -> wire.ToolShown:
    return wire.ToolShown(
        slug=tool.slug,
        name=tool.name,
        description=tool.description,
        human_description=tool.description.partition("\n")[0],
        input_parameters=tool.input_schema,
        output_parameters=tool.output_schema,
        tags=list(tool.tags),
        scopes=list(tool.scopes),
        no_auth=tool.no_auth,
        version=tool.version,
        available_versions=[tool.version],
        toolkit=wire.ToolkitNamed(slug=tool.toolkit, name=toolkit),
        deprecated=wire.Deprecated(
            available_versions=[tool.version], displayName=tool.name, toolkit=wire.Logo(), version=tool.version
        ),
    )


@api.route(
    "POST",
    f"{_SESSION}/search",
    operation_id="api_search_tools",
    summary="Find tools",
    answers=wire.Found,
    responses=problems(*BODY, 404, 409),
)
async def search(visit: InSession, sent: Annotated[wire.SearchTools, api_body(wire.SearchTools)]) -> Response:
    """Which tools fit a task, with their schemas, and whether their toolkits can be used."""
    session = await visit.workbench.configurations.get(visit.session)
    steps = [Step(use_case=one.use_case, known_fields=one.known_fields or "") for one in sent.queries]
    found = await visit.door.service.router.search(
        session, steps, own_tools(sent.experimental), toolkits=sent.toolkits or ()
    )
    return answer(wire.Found(**found))


@api.route(
    "GET",
    f"{_SESSION}/toolkits",
    operation_id="api_list_toolkits",
    summary="List toolkits",
    answers=wire.ToolkitPage,
    responses=problems(404, 409),
)
async def list_toolkits(
    visit: InSession,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_TOOLKITS)] = _DEFAULT_TOOLKITS,
    toolkits: Annotated[str | SkipJsonSchema[None], Query(description="Only these, with commas between them.")] = None,
    is_connected: Annotated[
        Literal["true", "false"] | SkipJsonSchema[None],
        Query(description="Only those with, or without, an active connected account."),
    ] = None,
    search: Annotated[str | SkipJsonSchema[None], Query(description="Only those whose name or slug has this.")] = None,
) -> Response:
    """A page of the toolkits that are configured here, by slug."""
    session = await visit.workbench.configurations.get(visit.session)
    wanted = {slug.strip().lower() for slug in (toolkits or "").split(",") if slug.strip()}
    found = [
        state
        for state in await visit.door.service.router.toolkits(session)
        if (not wanted or state.toolkit.slug in wanted)
        and (not search or search.lower() in f"{state.toolkit.slug} {state.toolkit.name}".lower())
        and (is_connected is None or _has_account(state) == (is_connected == "true"))
    ]
    page = page_of(found, cursor, limit)
    return answer(
        wire.ToolkitPage(
            items=[_shown_toolkit(state) for state in page.items],
            next_cursor=page.next_cursor,
            total_pages=page.total_pages,
            current_page=page.current_page,
            total_items=page.total_items,
        )
    )


def _has_account(state: ToolkitState) -> bool:
    """One that needs none can be used, and is connected with nothing."""
    return state.connection.is_active and not state.toolkit.no_auth


def _shown_toolkit(state: ToolkitState) -> wire.ToolkitShown:
    toolkit = state.toolkit
    return wire.ToolkitShown(
        slug=toolkit.slug,
        name=toolkit.name,
        enabled=state.is_enabled,
        is_no_auth=toolkit.no_auth,
        composio_managed_auth_schemes=list(toolkit.auth_schemes),
        meta=wire.ToolkitMeta(logo=toolkit.logo, description=toolkit.description, isNoAuth=toolkit.no_auth),
        connected_account=None if state.account is None else _shown_with_toolkit(state.account),
    )


def _shown_with_toolkit(account: ConnectedAccount) -> wire.ToolkitAccount:
    return wire.ToolkitAccount(
        id=account.id,
        user_id=account.user,
        status=account.status,
        created_at=account.created_at,
        auth_config=shown_config(account),
    )


@api.route(
    "POST",
    f"{_SESSION}/link",
    operation_id="api_link_toolkit",
    summary="Connect an account",
    status=201,
    answers=wire.LinkMade,
    responses=problems(*BODY, 404, 409, 429),
)
async def link(
    request: Request, visit: InSession, sent: Annotated[wire.LinkToolkit, api_body(wire.LinkToolkit)]
) -> Response:
    """Begin to connect an account of the session's user with a toolkit: the user opens `redirect_url`."""
    session = await visit.workbench.configurations.get(visit.session)
    async with noted(visit, "connection.begin", visit.session, session.spec.user) as entry:
        begun = await visit.door.service.router.connect(
            session, sent.toolkit, callback_url=sent.callback_url or "", alias=sent.alias or ""
        )
        entry.detail = f"{begun.account.toolkit} {begun.account.id}"
    return answer(
        wire.LinkMade(
            link_token=begun.token,
            redirect_url=f"{reached_by(request.scope, visit.door.options)}{begun.path}",
            connected_account_id=begun.account.id,
        ),
        201,
    )
