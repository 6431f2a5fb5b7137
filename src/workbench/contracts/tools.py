"""ToolSource: where tools come from, be it this server itself, another server, or a document that describes one.

For the author of the next one: whoever asks is not trusted, and waits. Every call is bounded in time and in size.
The credential to call with comes with the call, and a source looks none up: which account a user has, and whether
it is good, is the core's to say. None may be in a result, an error, a repr or a log. Calls may run side by side, and
are made for any number of sessions. What may be raised is any error of the tree, and means that nothing was carried
out; what was carried out and failed is a `ToolResult` with an `error`.
"""

from __future__ import annotations

from typing import Protocol

from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult


class ToolSource(Protocol):
    """Owned by who wired it. Slugs of toolkits and tools are the whole workbench's: of two the first one counts."""

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """All of its own. Asked often: what takes time is to be kept by the source."""
        ...

    async def tools(self) -> tuple[Tool, ...]:
        """All of its own, each of one of its toolkits. Asked often."""
        ...

    async def run(self, call: ToolCall) -> ToolResult:
        """Carry it out, once. Its arguments were not checked. May be cancelled; then nobody knows what became of it.

        Raises:
            InvalidRequest: the arguments are not what the tool takes, with the name of the first that is wrong.
            NotConfigured: what it needs is not set up here; the message says what to do.
            Denied: the service wants a credential, and the call has none; or it may not go where it would have to.
        """
        ...
