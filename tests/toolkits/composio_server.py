"""Stands in for Composio, which is outside: the three routes that are asked, on loopback, and what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "canary-composio-key-31"
TOOLS = [
    {
        "slug": f"GMAIL_{name}",
        "name": name.title(),
        "description": f"{name.title()} of mails",
        "toolkit": {"slug": "gmail", "name": "Gmail", "logo": "https://logos/gmail"},
        "input_parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        "output_parameters": {"type": "object", "properties": {}},
        "tags": ["readOnlyHint"],
        "scopes": ["mail.read"],
        "version": "20260101_00",
    }
    for name in ("FETCH_EMAILS", "LIST_LABELS", "SEARCH_PEOPLE")
]


@dataclass
class Stand:
    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    """for the next executions"""
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)


@contextlib.contextmanager
def composio() -> Iterator[Stand]:
    stand = Stand()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            stand.asked.append(("GET", self.path, dict(self.headers), None))
            if self._has_key() and "/connected_accounts/" in self.path:
                name = self.path.rpartition("/")[2]
                account = {"id": name, "user_id": "ann" if name == "ca_ann" else "bob"}
                self._say(*((200, account) if name.startswith("ca_") else (404, {"error": {"message": "none"}})))
            elif self.headers.get("x-api-key") == KEY:
                asked = parse_qs(urlsplit(self.path).query)
                found = [one for one in TOOLS if one["toolkit"]["slug"] == asked["toolkit_slug"][0]]  # type: ignore[index]
                start = int(asked.get("cursor", ["0"])[0])
                more = str(start + 2) if start + 2 < len(found) else None
                self._say(200, {"items": found[start : start + 2], "next_cursor": more, "total_items": len(found)})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stand.asked.append(("POST", self.path, dict(self.headers), body))
            if self._has_key():
                done = {"data": {"did": body}, "error": None, "successful": True, "log_id": "log_9"}
                self._say(*(stand.answers.pop(0) if stand.answers else (200, done)))

        def _has_key(self) -> bool:
            if self.headers.get("x-api-key") == KEY:
                return True
            self._say(401, {"error": {"message": "Invalid API key", "suggested_fix": "make one"}})
            return False

        def _say(self, status: int, value: Any) -> None:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            if status == 429:
                self.send_header("retry-after", "7")
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    stand.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stand
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
