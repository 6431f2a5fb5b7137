"""The address of links. What is wrong with one is told before a byte of a body is read."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from workbench.errors import InternalError, MethodNotAllowed, ServerUnavailable, WorkbenchError
from workbench.model.access import Caller
from workbench.model.mounts import LinkAction
from workbench.server.answers import refusal
from workbench.server.connection import CONNECTION, Connection
from workbench.server.door import Door, Note
from workbench.server.files import downloads, resumable, uploads
from workbench.server.files.links import ADDRESS, METHODS, PREFIX, arrived
from workbench.server.files.transfers import Transfers
from workbench.server.files.visit import FileVisit, Refused

_ALLOWED = ", ".join((*METHODS, "OPTIONS"))
_LEFT = "client_left"


class FilesDoor:
    """The endpoint of links. Owned by the app."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._transfers = Transfers()
        self.aclose = self._transfers.aclose

    def route(self) -> Route:
        """For the app."""
        return _FilesRoute(ADDRESS, self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        out = _Out(send)
        try:
            await self._serve(scope, receive, out)
        except (downloads.Changed, downloads.TooSlow):
            await _break_off(scope)
        except asyncio.CancelledError:
            if not self._door.stopping.is_set():
                raise
            await self._cut(scope, receive, out)
        except (WorkbenchError, Refused) as problem:
            if out.started:
                raise
            await _refuse(scope, receive, send, problem)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        note: Note = scope["workbench.note"]
        method = scope["method"]
        if method not in METHODS:
            if method != "OPTIONS":
                told = f"{method[:20]} is not for links, which take {_ALLOWED}"
                raise Refused(MethodNotAllowed(told, {"allow": _ALLOWED}), 405, {"allow": _ALLOWED})
            await send({"type": "http.response.start", "status": 204, "headers": _raw(resumable.OPTIONS)})
            await send({"type": "http.response.body"})
            return
        found = await arrived(self._door, scope)
        note.session = found.link.session
        visit = FileVisit(
            door=self._door,
            note=note,
            arrived=found,
            headers=Headers(scope=scope),
            scope=scope,
            receive=receive,
            send=send,
            transfers=self._transfers,
        )
        if method == "HEAD":
            await (resumable.reached if found.link.action is LinkAction.UPLOAD else downloads.describe)(visit)
            return
        if method == "DELETE":
            await resumable.drop(visit)
            return
        with self._transfers.one(found.link, found.signature):
            await self._transferred(visit)

    async def _transferred(self, visit: FileVisit) -> None:
        """Written down when it is over; a piece of a file only if it was the last."""
        method, outcome = visit.scope["method"], InternalError.code
        action = "file.download" if method == "GET" else "file.upload"
        try:
            if method == "GET":
                await downloads.download(visit)
            elif method == "PUT":
                await uploads.upload(visit)
            elif await resumable.go_on(visit) is None:
                action = ""
            outcome = "ok"
        except ClientDisconnect:
            outcome = _LEFT
            raise
        except asyncio.CancelledError:
            outcome = ServerUnavailable.code
            raise
        except downloads.Changed:
            outcome = visit.note.outcome = "changed"
            raise
        except downloads.TooSlow:
            outcome = visit.note.outcome = "too_slow"
            raise
        except (WorkbenchError, Refused) as problem:
            outcome = (problem.error if isinstance(problem, Refused) else problem).code
            raise
        finally:
            if action:
                await self._note(visit, action, outcome)

    async def _note(self, visit: FileVisit, action: str, outcome: str) -> None:
        """Without a key: who has a link needs none. Never the path."""
        caller = Caller(project=visit.link.project, scopes=frozenset())
        try:
            await self._door.service.access.note(
                caller, action, session=visit.link.session, outcome=outcome, detail="by link"
            )
        except WorkbenchError as problem:
            self._door.log.event("error", "audit.lost", request_id=visit.note.request_id, outcome=problem.code)

    async def _cut(self, scope: Scope, receive: Receive, out: _Out) -> None:
        """The server has no more time for it."""
        if out.started:
            await _break_off(scope)
            return
        # What was half done is given up, or goes on where it was: to send it once more does no harm.
        problem = ServerUnavailable("the server stops, and the file may not have come; send it again in a moment")
        await _refuse(scope, receive, out, problem)


class _Out:
    """The way to the client, and whether something went it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)


class _FilesRoute(Route):
    """Every address below, whatever it looks like: names of files may have anything in them."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As the framework's, for its log and counts."""
        if scope["type"] == "http" and scope["path"].startswith(PREFIX):
            return Match.FULL, {"endpoint": self.endpoint, "path_params": {}, "route": self}
        return Match.NONE, {}


async def _refuse(scope: Scope, receive: Receive, send: Send, problem: WorkbenchError | Refused) -> None:
    note: Note = scope["workbench.note"]
    error, status, headers = (
        (problem.error, problem.status, problem.headers) if isinstance(problem, Refused) else (problem, None, {})
    )
    note.outcome = error.code
    if note.body_left:
        headers = {**headers, "connection": "close"}
    await refusal(error, note.request_id, status, headers)(scope, receive, send)


async def _break_off(scope: Scope) -> None:
    connection: Connection | None = scope.get(CONNECTION)
    if connection is None:
        raise InternalError("an answer broke off")
    await connection.break_off()


def _raw(headers: dict[str, str]) -> list[Any]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
