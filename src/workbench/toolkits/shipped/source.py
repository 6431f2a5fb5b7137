"""ShippedTools: the toolkits that come with the workbench, as a source. Nothing is read before somebody asks."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workbench.contracts.service_calls import ServiceCalls
from workbench.errors import NotConfigured, NotFound, WorkbenchError
from workbench.model.toolkit import Json, Tool, ToolCall, Toolkit, ToolResult
from workbench.toolkits.compiling.compiler import host_of
from workbench.toolkits.openapi import carried_out
from workbench.toolkits.operations import Operation
from workbench.toolkits.shipped import peculiar
from workbench.toolkits.shipped.adapted.adaptation import Adaptation, Given
from workbench.toolkits.shipped.adapted.gmail import GMAIL
from workbench.toolkits.shipped.adapted.google import GOOGLE_SERVICES
from workbench.toolkits.shipped.adapted.notion import NOTION
from workbench.toolkits.shipped.adapted.others import OTHERS
from workbench.toolkits.shipped.adapted.sheets import SHEETS
from workbench.toolkits.shipped.identities import IDENTITIES
from workbench.toolkits.shipped.packing import Packed
from workbench.toolkits.shipped.terms import TERMS

ARCHIVE = Path(__file__).parent / "catalogue.zip"
ADAPTATIONS: Mapping[str, Adaptation] = {
    one.tool.slug: one for one in (*GMAIL, *SHEETS, *GOOGLE_SERVICES, *NOTION, *OTHERS)
}


@functools.cache
def _shipped() -> Packed:
    """The same for all of a process."""
    return Packed(ARCHIVE)


class ShippedTools:
    """`contracts.tools.ToolSource`. Owns nothing."""

    def __init__(
        self, calls: ServiceCalls, *, moved: Mapping[str, str] | None = None, chosen: frozenset[str] | None = None
    ) -> None:
        """`moved` are toolkits that are at another address here: a server of one's own. `chosen` are those that there
        are to be; all with None.
        """
        self._calls = calls
        self._chosen = chosen
        self._moved = dict(moved or {})
        self._opening = asyncio.Lock()
        self._packed: Packed | None = None
        self._toolkits: dict[str, Toolkit] = {}
        self._tools: dict[str, Tool] = {}
        # Told again as they are: who asks knows by that that nothing has changed.
        self._told: tuple[tuple[Toolkit, ...], tuple[Tool, ...]] = ((), ())

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As `ToolSource` has it."""
        await self._opened()
        return self._told[0]

    async def tools(self) -> tuple[Tool, ...]:
        """As `ToolSource` has it."""
        await self._opened()
        return self._told[1]

    async def run(self, call: ToolCall) -> ToolResult:
        """As `ToolSource` has it."""
        await self._opened()
        adaptation = ADAPTATIONS.get(call.slug)
        if adaptation is not None and call.slug in self._tools:
            given = Given(arguments=call.arguments, files=call.files)
            return await adaptation.run(_Steps(self, call), given)
        return await self.one(call)

    async def one(self, call: ToolCall) -> ToolResult:
        """A generated tool: one request."""
        packed = await self._opened()
        tool = self._tools.get(call.slug)
        if tool is None or call.slug in ADAPTATIONS:
            raise NotFound(f"no tool {call.slug[:100]!r} here", {"tool": call.slug[:100]})
        operation = self._placed(tool, packed.operation(call.slug), call)
        credential = peculiar.proved(tool.toolkit, call.credential)
        arguments = peculiar.known(tool.toolkit, operation, call.arguments, call.credential)
        sent = replace(call, arguments={**_usual(tool, operation), **arguments}, credential=credential)
        result = await carried_out(self._toolkits[tool.toolkit], tool, operation, sent, self._calls)
        return peculiar.judged(tool.toolkit, result)

    async def _opened(self) -> Packed:
        if self._packed is None:
            async with self._opening:
                if self._packed is None:
                    packed = await asyncio.to_thread(_shipped)
                    self._choose(packed)
                    self._told = (tuple(self._toolkits.values()), tuple(self._tools.values()))
                    self._packed = packed
        return self._packed

    def _choose(self, packed: Packed) -> None:
        known = {one.slug for one in packed.toolkits}
        chosen = known if self._chosen is None else self._chosen
        if unknown := sorted(chosen - known):
            raise NotConfigured(
                f"no toolkit {unknown[0][:60]!r} comes with this workbench; there are: {', '.join(sorted(known))}"
            )
        self._toolkits = {one.slug: self._here(one) for one in packed.toolkits if one.slug in chosen}
        adapted = [one.tool for one in ADAPTATIONS.values()]
        self._tools = {one.slug: one for one in (*adapted, *packed.tools) if one.toolkit in chosen}

    def _here(self, toolkit: Toolkit) -> Toolkit:
        toolkit = replace(toolkit, terms=TERMS.get(toolkit.slug, {}))
        moved = self._moved.get(toolkit.slug)
        if moved is not None:
            return replace(toolkit, base_url=moved, hosts=(host_of(moved),))
        return replace(toolkit, identity=IDENTITIES.get(toolkit.slug))

    def _placed(self, tool: Tool, operation: Operation, call: ToolCall) -> Operation:
        moved = self._moved.get(tool.toolkit)
        if moved is not None:
            return replace(operation, base_url=moved)
        return peculiar.placed(tool.toolkit, operation, call.credential)


class _Steps:
    """`adaptation.Step` for one call. Once something was sent, what fails is told as a result."""

    def __init__(self, source: ShippedTools, call: ToolCall) -> None:
        self._source = source
        self._call = call
        self._has_sent = False

    async def __call__(self, slug: str, arguments: Json, more: Mapping[str, bytes] | None = None) -> ToolResult:
        files = {**self._call.files, **(more or {})}
        try:
            result = await self._source.one(replace(self._call, slug=slug, arguments=arguments, files=files))
        except WorkbenchError as problem:
            if not self._has_sent:
                raise
            return ToolResult(data={}, error=problem.message)
        self._has_sent = True
        return result


def _usual(tool: Tool, operation: Operation) -> Json:
    """What parts of the path are if nobody says: `me`."""
    holes = [one.argument or one.name for one in operation.parameters if one.place == "path"]
    if not holes:
        return {}
    described = tool.input_schema.get("properties", {})
    return {name: described[name]["default"] for name in holes if "default" in described.get(name, {})}
