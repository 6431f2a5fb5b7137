"""MCP over streamable HTTP: connections that clients keep, and those that outlived the server they were made with.

It imports the library of the protocol, which takes a second: `mcp` does so when the first client comes.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from typing import Any, NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from workbench.errors import MethodNotAllowed, NotFound, Unauthenticated, WorkbenchError
from workbench.mcp.server import Context, make_server
from workbench.mcp.visit import Tooling, Visit
from workbench.model.access import Scope as AccessScope
from workbench.server.addresses import links_lead_to
from workbench.server.answers import JSON, refusal
from workbench.server.door import Door
from workbench.server.mcp_around import Around
from workbench.server.mcp_arrival import Arrival, could_be_ours
from workbench.server.mcp_connections import Connections, Noticing, NumberTaken
from workbench.server.mcp_refusals import told
from workbench.server.mcp_wires import Held, Inward, Outward
from workbench.server.sweeping import connection_ended

ARRIVAL = "workbench.mcp"
# Whoever comes back later does not notice: its connection is made up again from its id.
_IDLE_S = 300.0
_MOST_ENDED = 10_000
_KEY_CHECK_EVERY_S = 5.0
_CLOSE_S = 5.0
# Clients of the official library take no event of a stream that is over 1 MiB; the message around it is small.
_MOST_ANSWER_BYTES = 900_000
_VERSION_HEADER = "mcp-protocol-version"

InFlight = tuple[str | None, str, str | int]


class Rooms:
    """Owns every connection. Started once, closed by who started it."""

    def __init__(self, door: Door) -> None:
        self._door = door
        server = make_server(self._receive)
        most = door.options.max_body_bytes
        self._kept = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=_IDLE_S,
            max_request_body_size=most,
            max_sessions=door.options.mcp_connections,
        )
        self._passing = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most)
        self._ended: OrderedDict[tuple[str | None, str], None] = OrderedDict()
        self._connections = Connections(_IDLE_S)
        self._calls: dict[InFlight, asyncio.Event] = {}
        self._open = asyncio.Event()
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Until requests can be served."""
        # One task enters and leaves: the groups of tasks inside insist on it.
        self._running = asyncio.create_task(self._run(), name="MCP")
        opened = asyncio.create_task(self._open.wait())
        await asyncio.wait((opened, self._running), return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if self._running.done():
            self._running.result()

    async def _run(self) -> None:
        async with self._kept.run(), self._passing.run():
            self._open.set()
            await self._closing.wait()

    async def aclose(self) -> None:
        """Whoever still waits is told that the server leaves; nothing is interrupted by it."""
        # First, so that what is cancelled next is not taken for called off by its client.
        self._door.leaving.set()
        self._closing.set()
        if self._running is not None:
            await asyncio.wait((self._running,), timeout=_CLOSE_S)
            self._running.cancel()

    async def _receive(self, context: Context) -> Visit:
        assert context.request is not None, "there is one behind every message"
        arrival: Arrival = context.request.scope[ARRIVAL]
        return Visit(
            bench=self._door.service.workbench(arrival.caller.project),
            around=Around(self._door, arrival),
            default_session=arrival.default_session,
            own_session=arrival.own_session,
            has_sandbox=arrival.has_sandbox,
            families=arrival.families,
            user=arrival.user,
            most_answer_bytes=_MOST_ANSWER_BYTES,
            address=links_lead_to(context.request.scope, self._door.options),
            tooling=Tooling(
                router=self._door.service.router,
                key=arrival.caller.key,
                may_proxy=arrival.caller.may(AccessScope.PROXY),
                for_code=arrival.caller.session is not None,
            ),
        )

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, whose arrival is in its scope.

        Raises:
            NotFound: it is of a connection that there is not.
        """
        arrival: Arrival = scope[ARRIVAL]
        # BARRIER: who learns the id of a connection could read what it is told; held by tests/mcp/http/test_access.py.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=arrival.caller.key or "", scopes=[]))
        body: bytes = (await receive()).get("body", b"")
        # What only listens has nothing to wait for when the server stops.
        over = asyncio.Event() if scope["method"] == "GET" else None
        inward, outward = Inward(body, receive, over=over), Outward(send)
        watch = asyncio.create_task(self._watch(scope, inward, outward, over), name="watching a request")
        try:
            if _is_older(scope):
                await self._serve_connection(scope, body, inward, outward)
            else:
                await self._kept.handle_request(scope, inward, outward)
        finally:
            watch.cancel()
        await outward.finish()

    async def _watch(self, scope: Scope, inward: Inward, outward: Outward, over: asyncio.Event | None) -> None:
        """Ends what only listens when the server stops, and everything when its key is good no more."""
        arrival: Arrival = scope[ARRIVAL]
        while True:
            try:
                async with asyncio.timeout(_KEY_CHECK_EVERY_S):
                    await (asyncio.Event() if over is None else self._door.stopping).wait()
                break
            except TimeoutError:
                pass
            # BARRIER: who was shut out would go on reading; held by tests/mcp/http/test_access.py.
            if not await self._still_good(arrival):
                arrival.note.outcome = Unauthenticated.code
                # What runs goes on, and what becomes of it is told to those who have a key.
                inward.shut = over is None
                await self._shut_out(scope, inward, outward)
                break
        if over is not None:
            over.set()

    async def _still_good(self, arrival: Arrival) -> bool:
        try:
            return await self._door.service.access.still_good(arrival.caller)
        except WorkbenchError:
            # It is asked again in a moment.
            return True

    async def _shut_out(self, scope: Scope, inward: Inward, outward: Outward) -> None:
        if outward.status:
            await outward.finish()
            return
        outward.shut()
        problem = Unauthenticated("the key was revoked meanwhile, or has expired; use another one")
        await told(scope, problem, scope[ARRIVAL].note.request_id)(scope, inward, outward.last)

    async def _serve_connection(self, scope: Scope, body: bytes, inward: Inward, outward: Outward) -> None:
        """Of a client that keeps one, or is about to."""
        arrival: Arrival = scope[ARRIVAL]
        name = (arrival.caller.key, arrival.connection)
        if name in self._ended:
            raise _no_connection("was ended")
        key, most = arrival.caller.key or "", self._most(arrival)
        if not arrival.connection and self._connections.is_full(key, most):
            await self._serve_none(scope, inward, outward, f"this key has {most}")
            return
        said = _said(body)
        try:
            status = await self._ask(scope, key, said.number, inward, outward)
        except NumberTaken:
            await self._serve_twice(scope, inward, outward)
            return
        if status == 503:
            await self._serve_none(scope, inward, outward, f"the server has {self._door.options.mcp_connections}")
        # BARRIER: one key would take the connections of all; held by tests/unit/server/test_mcp.py.
        for surplus in self._connections.surplus(key, most):
            await self._end(scope, key, surplus)
        is_unknown = status == 404
        if is_unknown or (outward.status == 200 and scope["method"] == "DELETE"):
            self._connections.closed((key, arrival.connection))
        if is_unknown and not could_be_ours(arrival.connection):
            raise _no_connection("is none of this server's")
        if scope["method"] == "DELETE" and (is_unknown or outward.status == 200):
            self._forget(name)
            self._door.kept.start(connection_ended(self._door, arrival), "a session whose client has left")
        if is_unknown:
            await self._serve_again(scope, body, said, inward, outward)

    async def _ask(self, scope: Scope, key: str, number: str | int | None, inward: Inward, outward: Outward) -> int:
        """The library, which says 404 or 503 to us alone."""
        connection = scope[ARRIVAL].connection
        held = Held(outward, 404, 503)
        send = held if connection else Noticing(held, lambda made: self._connections.opened((key, made)))
        with self._connections.use((key, connection), listens=scope["method"] == "GET", number=number) as use:
            await self._kept.handle_request(scope, inward, send)
            use.answered = outward.ended
        return held.status

    def _most(self, arrival: Arrival) -> int:
        options = self._door.options
        return options.mcp_connections_of_key if arrival.caller.session is None else options.mcp_connections_of_token

    async def _end(self, scope: Scope, key: str, connection: str) -> None:
        """One of the caller's own, as if its client had; but that one may go on with it."""
        self._connections.closed((key, connection))
        ending = {**scope, "method": "DELETE", "headers": [(b"mcp-session-id", connection.encode())]}
        await self._kept.handle_request(ending, Inward(b"", _nothing, over=asyncio.Event(), deaf=True), _unheard)

    async def _serve_none(self, scope: Scope, inward: Inward, outward: Outward, full: str) -> None:
        """For one too many; in the words of the protocol, which is what clients show."""
        words = (
            f"{full} connections of MCP clients, and there can be no more: close those that you do not need, or come "
            f"again; one that is not used ends after {_IDLE_S / 60:g} minutes"
        )
        scope[ARRIVAL].note.outcome = "too_many_connections"
        answer = _words(503, INTERNAL_ERROR, words, {"retry-after": "30"})
        await answer(scope, inward, outward)

    async def _serve_twice(self, scope: Scope, inward: Inward, outward: Outward) -> None:
        scope[ARRIVAL].note.outcome = "number_taken"
        words = "a message with this id has no answer yet, or none that was taken; give each message an id of its own"
        await _words(400, INVALID_REQUEST, words)(scope, inward, outward)

    def _forget(self, name: tuple[str | None, str]) -> None:
        self._ended[name] = None
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)

    async def _serve_again(self, scope: Scope, body: bytes, said: _Said, inward: Inward, outward: Outward) -> None:
        """For a client whose connection this server does not know: it was made before the server was started anew, or
        was not used for long. All that counts is in the request: the id, by which its session is found.
        """
        arrival: Arrival = scope[ARRIVAL]
        if scope["method"] == "DELETE":
            await Response()(scope, inward, outward)
            return
        if scope["method"] != "POST":
            error = MethodNotAllowed("nothing is sent here unasked; go on with POST", {"allow": "POST, DELETE"})
            arrival.note.outcome = error.code
            answer = refusal(error, arrival.note.request_id, headers={"allow": "POST, DELETE"})
            await answer(scope, inward, outward)
            return
        if said.called_off is not None:
            if (call := self._calls.get((arrival.caller.key, arrival.connection, said.called_off))) is not None:
                call.set()
            await Response(status_code=202)(scope, inward, outward)
        elif (arrival.caller.key, arrival.connection, said.number) in self._calls:
            await self._serve_twice(scope, inward, outward)
        else:
            await self._serve_call(scope, body, said.number, outward)

    async def _serve_call(self, scope: Scope, body: bytes, number: str | int | None, outward: Outward) -> None:
        """One message, in a connection of its own that ends with the answer.

        The end of such a connection calls the call off, and a client that is gone has not done so: it is not told.
        """
        arrival: Arrival = scope[ARRIVAL]
        called_off = asyncio.Event()
        name = None if number is None else (arrival.caller.key, arrival.connection, number)
        if name is not None:
            self._calls[name] = called_off
        try:
            inward = Inward(body, _nothing, over=called_off, deaf=True)
            await self._passing.handle_request(scope, inward, outward)
        finally:
            if name is not None and self._calls.get(name) is called_off:
                del self._calls[name]


def _is_older(scope: Scope) -> bool:
    """Whether it speaks a version of the protocol in which clients connect first."""
    version = Headers(scope=scope).get(_VERSION_HEADER)
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def _no_connection(why: str) -> NotFound:
    return NotFound(f"this connection {why}; begin a new one with `initialize`, without Mcp-Session-Id")


class _Said(NamedTuple):
    """All that is kept of a message here: the whole of it is many times as large as its bytes."""

    number: str | int | None
    """of one that wants an answer"""
    called_off: str | int | None
    """the number of the one that it calls off"""


def _said(body: bytes) -> _Said:
    """Of a message; nothing if it is none, which the library will say."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return _Said(None, None)
    if not isinstance(message, dict) or "method" not in message:
        return _Said(None, None)
    called_off = None
    if message["method"] == "notifications/cancelled":
        params = message.get("params")
        called_off = params.get("requestId") if isinstance(params, dict) else None
    return _Said(_number(message.get("id")), _number(called_off))


def _number(value: Any) -> str | int | None:
    # True is a number to Python, and the same one as 1.
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _words(status: int, code: int, words: str, headers: dict[str, str] | None = None) -> Response:
    message = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
    return Response(json.dumps(message), status, headers, media_type=JSON)


async def _unheard(_: Message) -> None:
    """Nobody waits for this answer."""


async def _nothing() -> Any:
    raise AssertionError("nobody listens here")
