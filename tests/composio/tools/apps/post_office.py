"""A service with accounts, on this machine: it knows its keys, and remembers every letter that it was given."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jsonschema import validate

LETTER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "description": "Whom to."},
        "text": {"type": "string"},
        "copies": {"type": "integer", "minimum": 1},
    },
    "required": ["to", "text"],
    "additionalProperties": False,
}


def document(url: str) -> dict[str, Any]:
    """What it is, in the words of OpenAPI."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Post office", "version": "1", "description": "Letters to and from people."},
        "servers": [{"url": url}],
        "security": [{"key": []}],
        "paths": {
            "/letters": {
                "get": {
                    "operationId": "listLetters",
                    "summary": "List letters",
                    "parameters": [{"name": "to", "in": "query", "schema": {"type": "string"}}],
                    "responses": {"200": {"description": "All of them."}},
                },
                "post": {
                    "operationId": "sendLetter",
                    "summary": "Send a letter",
                    "requestBody": {"required": True, "content": {"application/json": {"schema": LETTER}}},
                    "responses": {"201": {"description": "Sent."}},
                },
            }
        },
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-post-key"}}},
    }


@dataclass
class PostOffice:
    """One that listens."""

    url: str = ""
    keys: set[str] = field(default_factory=set)
    letters: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """method, path and key of every request"""


@contextlib.contextmanager
def open_post_office() -> Iterator[PostOffice]:
    """Until the end of the block."""
    office = PostOffice()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self._is_known():
                self._say(200, {"letters": office.letters, "next": None})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            if self._is_known():
                validate(body, LETTER)
                office.letters.append(body)
                self._say(201, {"id": f"l-{len(office.letters)}", "sent": True})

        def _is_known(self) -> bool:
            key = self.headers.get("x-post-key", "")
            office.asked.append((self.command, self.path, key))
            if key not in office.keys:
                self._say(401, {"error": f"no such key: {key}"})
            return key in office.keys

        def _say(self, status: int, value: dict[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    office.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield office
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
