"""A source of tools that does what a test wants, and sessions to call them for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from workbench.errors import NotFound
from workbench.model.configuration import SessionConfig
from workbench.model.ids import MountId, SandboxId, SessionId
from workbench.model.session import Session, SessionSpec
from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult


async def _echo(call: ToolCall) -> ToolResult:
    return ToolResult(data={"echo": call.arguments})


class Source:
    """`contracts.tools.ToolSource`."""

    def __init__(
        self,
        toolkits: tuple[Toolkit, ...],
        tools: tuple[Tool, ...],
        does: Callable[[ToolCall], Awaitable[ToolResult]] = _echo,
    ) -> None:
        self._toolkits = toolkits
        self._tools = tools
        self._does = does
        self.calls: list[ToolCall] = []

    async def toolkits(self) -> tuple[Toolkit, ...]:
        return self._toolkits

    async def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def run(self, call: ToolCall) -> ToolResult:
        if all(one.slug != call.slug for one in self._tools):
            raise NotFound(f"no tool {call.slug}")
        self.calls.append(call)
        return await self._does(call)


def tool(slug: str, toolkit: str) -> Tool:
    """That takes anything."""
    return Tool(slug=slug, name=slug.title(), description="", toolkit=toolkit, input_schema={"type": "object"})


def session(config: SessionConfig | None = None, name: str = "one") -> Session:
    """A record of one."""
    return Session(
        spec=SessionSpec(id=SessionId(name), user="ann", config=config or SessionConfig()),
        created_at="2026-01-01T00:00:00.000000Z",
        used_at="2026-01-01T00:00:00.000000Z",
        mount=MountId(name),
        principal=SessionId(name),
        sandbox=SandboxId("sb-1"),
    )
