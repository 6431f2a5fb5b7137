"""Who runs the tools of the sandbox for one request: a source of tools, opened when it is first needed."""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType

from workbench.core.router.meta import META, SANDBOX_TOOLS
from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult
from workbench.server.door import Visit

_MODULE = "workbench.server.composio.remote_tools"


async def opened() -> ModuleType:
    """What they are made of. It takes a second the first time, in which others are served."""
    return await asyncio.to_thread(importlib.import_module, _MODULE)


class SandboxTools:
    """`contracts.tools.ToolSource`, for who visits."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    async def prepare(self, slug: str) -> None:
        """Before a call of this tool, so that what is wrong with it is known at once."""
        if slug.strip().upper() in SANDBOX_TOOLS:
            await opened()

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As `ToolSource` has it."""
        return (META,)

    async def tools(self) -> tuple[Tool, ...]:
        """As `ToolSource` has it."""
        found: tuple[Tool, ...] = (await opened()).described()
        return found

    async def run(self, call: ToolCall) -> ToolResult:
        """As `ToolSource` has it."""
        result: ToolResult = await (await opened()).run(self._visit, call)
        return result
