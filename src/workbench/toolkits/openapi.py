"""OpenApiTools: tools that were compiled from descriptions, carried out by one call each."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.contracts.service_calls import ServiceCalls, ServiceOrder
from workbench.errors import Denied, NotFound
from workbench.model.connection import hosts_for
from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult
from workbench.toolkits.answers import as_result
from workbench.toolkits.building import built
from workbench.toolkits.operations import CompiledToolkit, Operation


class OpenApiTools:
    """`contracts.tools.ToolSource` for toolkits that were compiled. Owns nothing."""

    def __init__(self, compiled: Sequence[CompiledToolkit], calls: ServiceCalls) -> None:
        self._calls = calls
        self._toolkits = {one.toolkit.slug: one.toolkit for one in compiled}
        self._known = {found.tool.slug: found for one in compiled for found in one.tools}
        self._tools = tuple(one.tool for one in self._known.values())

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As `ToolSource` has it."""
        return tuple(self._toolkits.values())

    async def tools(self) -> tuple[Tool, ...]:
        """As `ToolSource` has it."""
        return self._tools

    async def run(self, call: ToolCall) -> ToolResult:
        """As `ToolSource` has it."""
        found = self._known.get(call.slug)
        if found is None:
            raise NotFound(f"no tool {call.slug[:100]!r} here", {"tool": call.slug[:100]})
        toolkit = self._toolkits[found.tool.toolkit]
        return await carried_out(toolkit, found.tool, found.operation, call, self._calls)


async def carried_out(
    toolkit: Toolkit, tool: Tool, operation: Operation, call: ToolCall, calls: ServiceCalls
) -> ToolResult:
    """One call of a tool that is one operation; for every source that has such.

    Raises:
        InvalidRequest: an argument is missing or cannot be sent; the message has its name.
        Denied: it needs a credential, and has none; or would go where it may not.
        UpstreamError: nobody answers; nothing was sent.
    """
    if call.credential is None and not (toolkit.no_auth or tool.no_auth):
        raise Denied(
            f"{tool.slug} needs a connected account of {toolkit.slug}, and the call has none: connect one first",
            {"toolkit": toolkit.slug},
        )
    made = built(
        operation,
        call.arguments,
        files=call.files,
        credential=call.credential,
        idempotency_key=call.idempotency_key,
    )
    answer = await calls.call(
        ServiceOrder(
            method=made.method,
            url=made.url,
            headers=made.headers,
            body=made.body,
            hosts=hosts_for(toolkit, call.credential),
            credential=call.credential,
            may_repeat=bool(operation.idempotency_header and call.idempotency_key),
        )
    )
    return as_result(answer, toolkit.name)
