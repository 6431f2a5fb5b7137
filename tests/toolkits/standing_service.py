"""The shop as a server that stands for a while, in threads of the test's own process: its document, and an echo."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.toolkits.documents import shop
from tests.toolkits.service import HERE

PICTURE = b"\x89PNG\r\n\x1a\n\0" * 1000


@dataclass
class Standing:
    """What it was asked, and what it waits for."""

    url: str
    seen: list[dict[str, Any]] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)

    def of(self, path: str) -> list[dict[str, Any]]:
        return [one for one in self.seen if one["target"].startswith(path)]


@contextlib.contextmanager
def standing(address: str = HERE) -> Iterator[Standing]:
    """Until the test is over."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = {
                "method": self.command,
                "target": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "body": body.decode("latin-1"),
            }
            told.seen.append(asked)
            path = self.path.partition("?")[0]
            if path == "/openapi.json":
                return self._answer(200, json.dumps(shop(told.url)).encode())
            if path == "/v1/picture":
                return self._answer(200, PICTURE, "image/png")
            if path == "/v1/away":
                return self._answer(302, b"", location="http://127.0.0.9/secrets")
            if path == "/v1/slow":
                told.go.wait(20)
            if path == "/v1/broken":
                self.close_connection = True
                return None
            status = {"/v1/teapot": 418, "/v1/forbidden": 401}.get(path, 200)
            return self._answer(status, json.dumps(asked).encode())

        def _answer(self, status: int, body: bytes, kind: str = "application/json", location: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"):
        setattr(Handler, f"do_{method}", Handler._do)
    server = ThreadingHTTPServer((address, 0), Handler)
    told = Standing(f"http://{address}:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, name="shop")
    thread.start()
    try:
        yield told
    finally:
        told.go.set()
        server.shutdown()
        thread.join()
        server.server_close()
