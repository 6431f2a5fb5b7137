"""The tools of the sandbox, as MCP has them, for the sessions API.

It imports what MCP's tools are written with, which takes a second: `sandbox_tools` does so when the first call comes.
"""

from __future__ import annotations

from typing import Any

from workbench.errors import InvalidRequest, NotFound, SandboxOff, WorkbenchError
from workbench.mcp.answers import OUTCOME_KEY
from workbench.mcp.tool import Tool as McpTool
from workbench.mcp.tools.workbench import BASH, WORKBENCH
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId
from workbench.model.toolkit import META_TOOLKIT, Tool, ToolCall, ToolResult
from workbench.server import door
from workbench.server.mcp_around import Around

_TOOLS: dict[str, McpTool[Any]] = {tool.name: tool for tool in (WORKBENCH, BASH)}
_TAGS = ("destructiveHint", "openWorldHint")
# What only messages of MCP carry, and what is said here instead.
_OTHERWISE = (
    ("; pictures come back as images.", ". Save pictures as files under /mnt/files: they are not shown."),
    (" `next` is the call that gets on.", ""),
)


class _Who:
    """As the surroundings want to know it."""

    def __init__(self, visit: door.Visit, session: SessionId) -> None:
        self.note = visit.note
        self.caller = visit.caller
        self.default_session = session


def described() -> tuple[Tool, ...]:
    """As the sessions API shows them."""
    return tuple(
        Tool(
            slug=tool.name,
            name=tool.title,
            description=_words(tool.description),
            toolkit=META_TOOLKIT,
            input_schema=tool.listed().input_schema,
            output_schema=tool.output_schema,
            tags=_TAGS,
            no_auth=True,
        )
        for tool in _TOOLS.values()
    )


def _words(description: str) -> str:
    for said, here in _OTHERWISE:
        description = description.replace(said, here)
    return description


async def run(visit: door.Visit, call: ToolCall) -> ToolResult:
    """To its end, in the session of the call and in no other.

    Raises:
        NotFound: there is no such session.
        SandboxOff: it has no sandbox.
        InvalidRequest: an argument is missing, or cannot be used.
    """
    tool, session = _TOOLS[call.slug], call.session.spec.id
    # BARRIER: `session_id` among the arguments is a word of the caller's; it must not lead into another session. Held
    # by tests/composio/tools/test_execute.py.
    seen = Visit(
        bench=visit.workbench,
        around=Around(visit.door, _Who(visit, session)),
        default_session=session,
        own_session=session,
        user=call.session.spec.user,
    )
    try:
        answer = await tool.perform(seen, call.arguments)
    except (NotFound, SandboxOff, InvalidRequest):
        raise
    except WorkbenchError as problem:
        answer = await tool.refused(seen, tool, call.arguments, problem)
    told, meta = answer.structured, answer.meta
    cell = meta.get(OUTCOME_KEY, {}).get("cell", "")
    return ToolResult(data=told["data"], error=told["error"] or "", log_id=cell)
