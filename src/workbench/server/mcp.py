"""MCP's addresses: `/mcp`, and a session's own. Who may come in is decided here; what they are told, in the rooms."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from workbench.errors import WorkbenchError
from workbench.server.door import Door, Note
from workbench.server.mcp_arrival import arrived
from workbench.server.mcp_refusals import told
from workbench.server.mcp_wires import Outward

if TYPE_CHECKING:
    from workbench.server.mcp_rooms import Rooms

_ROOMS = "workbench.server.mcp_rooms"
_METHODS = ("GET", "POST", "DELETE")
# With a slash at the end too: many clients are configured so.
_ADDRESSES = ("/mcp", "/mcp/", "/tool_router/{session_id}/mcp", "/tool_router/{session_id}/mcp/")
_CLOSE_S = 15.0


class McpDoor:
    """The endpoint of both addresses. Owned by the app, and closed with it."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._opening: asyncio.Task[Rooms] | None = None

    def routes(self) -> list[Route]:
        """For the app."""
        return [_McpRoute(path, self, methods=_METHODS) for path in _ADDRESSES]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        outward = Outward(send)
        try:
            await self._serve(scope, receive, outward)
        except WorkbenchError as problem:
            if outward.status:
                raise
            note: Note = scope["workbench.note"]
            note.outcome = problem.code
            await told(scope, problem, note.request_id)(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The parser leaves blanks at the end of values; the protocol compares some of them with the message.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        scope["workbench.mcp"] = await arrived(self._door, Request(scope))
        rooms = await self._rooms()
        await rooms.serve(scope, receive, send)

    async def _rooms(self) -> Rooms:
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.create_task(self._open(), name="opening MCP")
        # Whoever came first may leave; the others still wait.
        return await asyncio.shield(self._opening)

    async def _open(self) -> Rooms:
        # The library takes a second and 30 MB. Servers that no client of MCP ever asks, such as those that programs
        # start for themselves, do without; and others are served meanwhile, so in a thread.
        module = await asyncio.to_thread(importlib.import_module, _ROOMS)
        rooms: Rooms = module.Rooms(self._door)
        await rooms.start()
        return rooms

    async def aclose(self) -> None:
        """End every connection, and nothing that runs."""
        if self._opening is None:
            return
        await asyncio.wait((self._opening,), timeout=_CLOSE_S)
        if self._opening.done() and not self._opening.cancelled() and self._opening.exception() is None:
            await self._opening.result().aclose()
        self._opening.cancel()


class _McpRoute(Route):
    """One that the log and the counts know by its name, as they do those of REST."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As the framework's."""
        match, found = super().matches(scope)
        return match, {**found, "route": self} if match is not Match.NONE else found
