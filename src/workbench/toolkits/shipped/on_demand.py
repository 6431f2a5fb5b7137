"""The shipped tools, read when they are first asked for: most commands never do, and it takes a moment."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from workbench.contracts.service_calls import ServiceCalls
from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult

if TYPE_CHECKING:
    from workbench.toolkits.shipped.source import ShippedTools


class ShippedOnDemand:
    """`contracts.tools.ToolSource`. Owns nothing."""

    def __init__(self, calls: ServiceCalls, chosen: str = "all") -> None:
        """`chosen` is `all`, `none`, or slugs of toolkits, by commas."""
        self._calls = calls
        self._chosen = None if chosen == "all" else frozenset(filter(None, chosen.split(","))) - {"none"}
        self._source: ShippedTools | None = None

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As `ToolSource` has it."""
        return () if self._is_nothing else await (await self._opened()).toolkits()

    async def tools(self) -> tuple[Tool, ...]:
        """As `ToolSource` has it."""
        return () if self._is_nothing else await (await self._opened()).tools()

    async def run(self, call: ToolCall) -> ToolResult:
        """As `ToolSource` has it."""
        return await (await self._opened()).run(call)

    @property
    def _is_nothing(self) -> bool:
        return self._chosen is not None and not self._chosen

    async def _opened(self) -> ShippedTools:
        if self._source is None:
            module = await asyncio.to_thread(importlib.import_module, "workbench.toolkits.shipped.source")
            # Somebody else may have waited as well.
            self._source = self._source or module.ShippedTools(self._calls, chosen=self._chosen)
        return self._source
