"""The MCP server: lists the tools that a caller sees, and calls them. Transports are not its business."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from workbench import __version__
from workbench.errors import InternalError, WorkbenchError
from workbench.mcp.answers import Answer
from workbench.mcp.asking import AskFirst, answers_of, way_to_ask
from workbench.mcp.families import Families
from workbench.mcp.resources import TEMPLATES, read_resource
from workbench.mcp.tool import Tool
from workbench.mcp.tools import ALL_TOOLS, ROUTER_TOOLS
from workbench.mcp.tools.router import RouterTool, approve_waiting, shown_by_router
from workbench.mcp.visit import Visit
from workbench.mcp.wording import for_agents

Context = ServerRequestContext[Any, Any]
Receive = Callable[[Context], Awaitable[Visit]]
Shown = Tool[Any] | RouterTool

INSTRUCTIONS = (
    "A computer for running code: a persistent, isolated sandbox with a Jupyter-grade Python kernel. Variables, "
    "imports and files live on from call to call. Files under /mnt/files outlive the sandbox. An answer that is not a "
    "success carries `next`: the tool and the arguments that get on from there."
)


class _Rooms:
    """Answers requests of clients; who they are, the transport says."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    async def list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        visit = await self._visit(context)
        return types.ListToolsResult(tools=[tool.listed() for tool in await _seen_by(visit)])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        visit = await self._visit(context)
        tool = next((one for one in await _seen_by(visit) if one.name == params.name), None)
        if tool is None:
            there = await _there_are(visit)
            raise MCPError(code=types.INVALID_PARAMS, message=f"no tool {params.name[:60]!r} here; {there}")
        visit = replace(visit, answers=answers_of(params), ask=way_to_ask(context))
        if context.meta is not None and context.meta.get("progress_token") is not None:

            async def report(progress: float, total: float | None, message: str) -> None:
                await context.session.report_progress(progress, total, message)

            visit = replace(visit, on_progress=report)
        given = dict(params.arguments or {})
        try:
            await approve_waiting(visit, tool.family)
            return (await tool.answer(visit, given)).result(visit.most_answer_bytes)
        except AskFirst as first:
            return first.result()
        except Exception as problem:  # noqa: BLE001  (whatever it is, the agent reads that it is ours)
            name = visit.around.defect(f"tool {tool.name}", problem)
            ours = InternalError(
                f"the server has a defect here, and its log has it as {name}. Whether this ran is unknown: look first"
            )
            return (await _refused(visit, tool, given, ours)).result(visit.most_answer_bytes)

    async def list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """None by name: files come and go, and are named by who exported them."""
        return types.ListResourcesResult(resources=[])

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return TEMPLATES

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        visit = await self._visit(context)
        try:
            return await read_resource(visit, params.uri, context.protocol_version)
        except MCPError:
            raise
        except Exception as problem:  # noqa: BLE001  (the library would tell the client in the exception's own words)
            name = visit.around.defect("resource", problem)
            words = f"the server has a defect here, and its log has it as {name}; tell who runs it"
            raise MCPError(code=types.INTERNAL_ERROR, message=words) from None

    async def _visit(self, context: Context) -> Visit:
        try:
            return await self._receive(context)
        except WorkbenchError as problem:
            raise MCPError(code=types.INVALID_REQUEST, message=for_agents(problem)) from None


async def _refused(visit: Visit, tool: Shown, given: dict[str, Any], problem: WorkbenchError) -> Answer:
    if isinstance(tool, RouterTool):
        return await tool.refused(visit, given, problem)
    return await tool.refused(visit, tool, given, problem)


async def _seen_by(visit: Visit) -> list[Shown]:
    """What a client is shown, in the order in which it is likely to be used."""
    own: list[Shown] = [*shown_tools(visit.families)] if visit.has_sandbox else []
    others = await shown_by_router(visit)
    # At a session's own address work begins with the search for tools; elsewhere with what every session has.
    return [*own, *others] if visit.own_session is None else [*others, *own]


async def _there_are(visit: Visit) -> str:
    names = ", ".join(one.name for one in await _seen_by(visit))
    if not visit.has_sandbox:
        without = f"session {visit.session!r} is configured without a sandbox, so that there are none of it"
        return f"{without}; there are: {names}" if names else without
    return f"there are: {names}"


def shown_tools(families: Families) -> list[Tool[Any]]:
    """Those of the families, in their order."""
    return [tool for tool in ALL_TOOLS if tool.family in families]


def _input_schema(name: str) -> dict[str, Any] | None:
    """For the library, which looks with every call whether arguments are repeated in headers, and would list all tools
    to find out.
    """
    known: tuple[Shown, ...] = (*ALL_TOOLS, *ROUTER_TOOLS)
    tool = next((one for one in known if one.name == name), None)
    return None if tool is None else tool.listed().input_schema


def make_server(receive: Receive) -> Server[Any]:
    """A server for any number of clients; `receive` says who asks."""
    rooms = _Rooms(receive)
    return Server(
        "open-workbench",
        title="Open Workbench",
        version=__version__,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_input_schema,
        on_list_tools=rooms.list_tools,
        on_call_tool=rooms.call_tool,
        on_list_resources=rooms.list_resources,
        on_list_resource_templates=rooms.list_templates,
        on_read_resource=rooms.read_resource,
    )
