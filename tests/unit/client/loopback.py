"""A small real server on the loopback, which answers as a test says: also badly, late, by halves or not at all."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

KEY = "wbk_test_secret"


@dataclass(frozen=True)
class Asked:
    """What came."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """What goes back."""

    status: int = 200
    body: Any = None
    text: str | None = None
    """instead of `body`, as it is"""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[str, ...] = ()
    """sent one by one, chunked"""
    breaks_off: bool = False
    """the connection ends before the answer does"""


DROPPED = Reply(breaks_off=True)
"""The connection ends without a word."""

Script = list[Reply | Callable[[Asked], Reply]]


@dataclass
class Loopback:
    """One server with its script; every request takes the next reply, the last one stays."""

    script: Script
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return step(asked) if callable(step) else step


def refused(code: str, message: str = "no", status: int = 400, **context: str) -> Reply:
    """The envelope of an error."""
    return Reply(status, {"error": {"code": code, "message": message, "context": context, "request_id": "req-1"}})


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(*script: Reply | Callable[[Asked], Reply], port: int = 0) -> Iterator[Loopback]:
    """A server for as long as the block."""
    loopback = Loopback(list(script))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def _any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, json.loads(raw) if raw else None)
            self._send(loopback.next(asked))

        do_GET = do_POST = do_DELETE = do_PATCH = _any  # noqa: N815

        def _send(self, reply: Reply) -> None:
            if reply == DROPPED:
                self.close_connection = True
                return
            self.send_response(reply.status)
            self.send_header("content-type", reply.kind)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.pieces or reply.breaks_off:
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for piece in reply.pieces:
                    data = piece.encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()
                if reply.breaks_off:
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")
                return
            text = reply.text if reply.text is not None else "" if reply.body is None else json.dumps(reply.body)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True
        open_connections: ClassVar[list[socket.socket]] = []

        def process_request(self, request: Any, client_address: Any) -> None:
            self.open_connections.append(request)
            super().process_request(request, client_address)

    with Server(("127.0.0.1", port), Handler) as server:
        loopback.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield loopback
        finally:
            server.shutdown()
            thread.join()
            # A server that ends takes its connections with it.
            for connection in server.open_connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def session_body(name: str = "ses-1", user: str = "local") -> dict[str, Any]:
    """A session as the server shows it."""
    return {
        "id": name,
        "user_id": user,
        "project": "default",
        "sandbox": {
            "sandbox_size": "standard",
            "env_names": [],
            "start_up": "",
            "working_folder": "/home/user",
            "snapshots": True,
            "idle": {},
        },
        "state": "idle",
        "epoch": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "used_at": "2026-01-01T00:00:00Z",
        "something_new": 1,
    }


def cell_body(*, kind: str = "cell", status: str = "ended", **result: Any) -> dict[str, Any]:
    """A cell as the server shows it."""
    body: dict[str, Any] = {
        "id": "cel-1",
        "session_id": "ses-1",
        "kind": kind,
        "status": status,
        "code": "1",
        "limit_s": 180.0,
        "created_at": "2026-01-01T00:00:00Z",
    }
    if status == "ended":
        body["result"] = {"outcome": "ok", "receipt": {"epoch": 1}} | result
    if status == "failed":
        body["error"] = {"code": "quota_exceeded", "message": "no more memory; delete a session"} | result
    return body


def event(name: str, data: Any, behind: int | None = None) -> str:
    """One server-sent event."""
    head = f"id: {behind}\n" if behind is not None else ""
    return f"event: {name}\n{head}data: {json.dumps(data)}\n\n"


def printed(text: str, behind: int) -> str:
    """A piece of standard output, and the offset behind it."""
    return event("piece", {"kind": "stdout", "text": text}, behind)
