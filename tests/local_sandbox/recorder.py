"""A server that stands for the outside: it writes down what it is asked, and answers what it was told."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_END_S = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """What was sent."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One answer; `cut` ends the connection in the middle of it."""

    status: int = 200
    body: bytes | str | dict[str, Any] | list[Any] = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False

    def bytes(self) -> bytes:
        """As they are sent."""
        if isinstance(self.body, bytes):
            return self.body
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


Answering = Callable[[Asked], Told]


class _Server(ThreadingHTTPServer):
    # As many as come at once in a test.
    request_queue_size = 128


class Recorder:
    """Has what came, in its order."""

    def __init__(self, answering: Answering) -> None:
        self.asked: list[Asked] = []
        self.url = ""
        self.answering = answering


@contextlib.contextmanager
def recorder(answering: Answering) -> Iterator[Recorder]:
    """One that listens."""
    kept = Recorder(answering)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            kept.asked.append(asked)
            told = kept.answering(asked)
            content = told.bytes()
            self.send_response(told.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if told.cut:
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            else:
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = _any  # noqa: N815  their names

        def log_message(self, *_args: Any) -> None:
            """To nobody."""

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield kept
    finally:
        server.shutdown()
        thread.join(_END_S)
        server.server_close()
