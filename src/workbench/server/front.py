"""What every request goes through first, and every answer last: its id, its key, its body, the log and the counts."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workbench.errors import InternalError, ServerUnavailable, TooLarge, WorkbenchError
from workbench.server.auth import authenticated
from workbench.server.door import Door, Note
from workbench.server.in_flight import InFlight
from workbench.server.limits import has_body, read_body
from workbench.server.refusals import API, told

# What a proxy or a client may call a request. Anything else would be foreign words in our log.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"})
# Everything of REST, of the sessions API, and of MCP.
_GUARDED = re.compile(r"/v1/|/api/|/mcp(/|$)|/tool_router/")
_REST = ("/v1/", API)
# Where a link stands for a key, and bodies are as large as files.
_FILES = "/files/"
# Where a link stands for a key too, and a person fills in a form.
_CONNECT = "/connect/"
_ASKING = frozenset({"GET", "HEAD", "OPTIONS"})
# What has no use for a body. If one comes all the same, it is not read.
_WITHOUT_BODY = _ASKING | {"DELETE", "TRACE"}
# What nginx calls a client that left before the answer.
_CLIENT_LEFT = 499

Hold = Callable[[int], None]


class Front:
    """The outermost part of the app."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._in_flight = InFlight()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = Headers(scope=scope)
        note = Note(_request_id(headers))
        scope["workbench.note"] = note
        out = _Out(send, note.request_id)
        try:
            await self._pass(scope, headers, receive, out)
        except ClientDisconnect:
            out.status = out.status or _CLIENT_LEFT
        except asyncio.CancelledError:
            # Nobody cancels requests but a server that has no more time for them.
            if out.status or not self._door.stopping.is_set():
                raise
            await self._failed(scope, receive, out, _leaving(scope, headers))
        except Exception as problem:  # noqa: BLE001  (whatever it is, the caller gets an answer)
            await self._failed(scope, receive, out, problem)
        finally:
            self._written_down(scope, note, out.status or _CLIENT_LEFT, time.perf_counter() - began)

    async def _pass(self, scope: Scope, headers: Headers, receive: Receive, out: _Out) -> None:
        note: Note = scope["workbench.note"]
        # BARRIER: who has no good link is refused there before a byte of their body is read; held by
        # tests/server/test_files_links.py.
        if scope["path"].startswith((_FILES, _CONNECT)):
            await self._app(scope, receive, out)
            return
        # BARRIER: below this address nobody gets in without a key, and no body is read of who has none; held by
        # tests/server/test_refusals.py.
        if not _GUARDED.match(scope["path"]):
            if has_body(headers):
                note.body_left = True
                raise TooLarge("nothing at this address takes a body; ask without one", {"most_bytes": "0"})
            await self._app(scope, _Replayed(b"", receive), out)
            return
        note.caller = await authenticated(self._door, headers)
        with self._in_flight.one(f"{note.caller.project}/{note.caller.key}") as request:
            note.counted = request
            await self._serve(scope, headers, receive, out, request.hold)

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, out: _Out, hold: Hold) -> None:
        body = await self._body(scope, headers, receive, hold)
        if body and scope["path"].startswith(_REST):
            # It was checked here. FastAPI gives a body without a type to its reader as it is, and ours reads bytes.
            scope["headers"] = [one for one in scope["headers"] if one[0] != b"content-type"]
        await self._app(scope, _Replayed(body, receive), out)

    async def _body(self, scope: Scope, headers: Headers, receive: Receive, hold: Hold) -> bytes:
        if scope["method"] in _WITHOUT_BODY:
            return b""
        note: Note = scope["workbench.note"]
        note.body_left = True
        body = await read_body(headers, receive, self._door.options.max_body_bytes, hold)
        note.body_left = False
        return body

    async def _failed(self, scope: Scope, receive: Receive, out: _Out, problem: Exception) -> None:
        note: Note = scope["workbench.note"]
        if not isinstance(problem, WorkbenchError):
            self._door.log.defect("defect", problem, note.request_id)
            problem = InternalError(
                f"the server has a defect here; tell who runs it the request id {note.request_id}, which its log has"
            )
        note.outcome = problem.code
        if out.status:
            # The headers are gone. An answer that breaks off is at least not read as a whole one.
            raise problem
        headers = {"connection": "close"} if note.body_left else {}
        await told(scope, problem, note.request_id, headers)(scope, receive, out)

    def _written_down(self, scope: Scope, note: Note, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "") or "unmatched"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._door.metrics.request(route, method, status, seconds)
        caller = note.caller
        self._door.log.event(
            "warning" if status >= 500 else "info",
            "request",
            request_id=note.request_id,
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 2),
            project=caller.project if caller else None,
            key=caller.key if caller else None,
            session=note.session,
            outcome=note.outcome,
        )


class _Out:
    """The way to the client: every answer carries the request's id."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._headers = [(b"x-request-id", request_id.encode()), (b"cache-control", b"no-store")]
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._headers]
        await self._send(message)


class _Replayed:
    """The way from the client, after its body was read."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else f"req-{secrets.token_hex(8)}"


def _leaving(scope: Scope, headers: Headers) -> ServerUnavailable:
    """For what has no answer when the server has to go."""
    # In the sessions API such a key tells calls apart, and nothing is kept under it.
    is_kept = "idempotency-key" in headers and not scope["path"].startswith(API)
    if scope["method"] in _ASKING or is_kept:
        return ServerUnavailable("the server stops; ask again in a moment")
    problem = ServerUnavailable("the server stops, and whether this was done is not known; look before you ask again")
    problem.retryable = False
    return problem
