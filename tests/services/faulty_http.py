"""An HTTP server that tells what it was asked, and answers wrongly when the request says so. Standard library alone.

A request names its fault by a word `fault:NAME` in what it asks; `fault:NAME#TAG` is the same with a count of its own,
for those that happen once.
"""

from __future__ import annotations

import email.utils
import gzip
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

SEEN, FORGET = "/_seen", "/_forget"
LARGE_BYTES = 50 * 2**20
_FAULT = re.compile(r"fault:([a-z-]+)(#[\w-]+)?")
_CHUNK = b" " * 65_536


@dataclass
class Answer:
    """What a good server says."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def said(value: Any, status: int = 200) -> Answer:
    """The value as JSON."""
    return Answer(json.dumps(value).encode(), status)


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    def json(self) -> Any:
        """Of a body that is JSON."""
        return json.loads(self.body)


class FaultyHandler(BaseHTTPRequestHandler):
    """Subclass it with `answer`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seen: ClassVar[list[Asked]] = []
    counts: ClassVar[Counter[str]] = Counter()
    lock: ClassVar[threading.Lock] = threading.Lock()

    def answer(self, asked: Asked) -> Answer:
        """As the real one would."""
        raise NotImplementedError

    def words(self, asked: Asked) -> str:
        """Where a fault may be named."""
        return f"{asked.path} {asked.body}"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name
        """Nobody reads it."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        if self.path in (SEEN, FORGET):
            self._tell()
            return
        asked = Asked(method, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        found = _FAULT.search(self.words(asked))
        with self.lock:
            self.seen.append(asked)
            self.counts[found[0] if found else ""] += 1
            count = self.counts[found[0] if found else ""]
        if found is None:
            self.send(self.answer(asked))
        else:
            FAULTS[found[1]](self, asked, count)

    def _tell(self) -> None:
        with self.lock:
            told = [vars(one) for one in self.seen]
            if self.path == FORGET:
                self.seen.clear()
                self.counts.clear()
        self.send(said(told))

    def send(self, answer: Answer) -> None:
        """The whole of it."""
        self.head(answer.status, {**answer.headers, "Content-Length": str(len(answer.body))})
        self.wfile.write(answer.body)

    def head(self, status: int, headers: dict[str, str]) -> None:
        """Status and headers alone."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def hang_up(self) -> None:
        """End the connection."""
        self.close_connection = True


Fault = Callable[[FaultyHandler, Asked, int], None]


def _refusal(status: int, words: str, **headers: str) -> Answer:
    answer = said({"error": {"message": words, "type": "fault"}}, status)
    answer.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
    return answer


def _once(refusal: Callable[[], Answer]) -> Fault:
    def fault(handler: FaultyHandler, asked: Asked, count: int) -> None:
        handler.send(refusal() if count == 1 else handler.answer(asked))

    return fault


def _always(refusal: Callable[[], Answer]) -> Fault:
    return lambda handler, _asked, _count: handler.send(refusal())


def _in_a_second() -> str:
    # Dates have whole seconds: one and a bit from now.
    return email.utils.formatdate(time.time() + 1.5, usegmt=True)


def _hang(handler: FaultyHandler, _asked: Asked, _count: int) -> None:
    # Until the other side leaves.
    handler.rfile.read(1)
    handler.hang_up()


def _drip(handler: FaultyHandler, _asked: Asked, _count: int) -> None:
    """A byte now and then, so that no single read is late."""
    handler.head(200, {"Content-Length": "1000000"})
    try:
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.05)
    except OSError:
        handler.hang_up()


def _cut(handler: FaultyHandler, asked: Asked, _count: int) -> None:
    answer = handler.answer(asked)
    handler.head(200, {**answer.headers, "Content-Length": str(len(answer.body))})
    handler.wfile.write(answer.body[: len(answer.body) // 2])
    handler.hang_up()


def _drop(handler: FaultyHandler, _asked: Asked, _count: int) -> None:
    handler.hang_up()


def _first(fault: Fault) -> Fault:
    """This once, and then well."""

    def both(handler: FaultyHandler, asked: Asked, count: int) -> None:
        if count == 1:
            fault(handler, asked, count)
        else:
            handler.send(handler.answer(asked))

    return both


def _large(*, declared: bool, status: int = 200) -> Fault:
    def fault(handler: FaultyHandler, _asked: Asked, _count: int) -> None:
        framing = {"Content-Length": str(LARGE_BYTES)} if declared else {"Connection": "close"}
        handler.head(status, {"Content-Type": "application/json", **framing})
        try:
            for _ in range(LARGE_BYTES // len(_CHUNK)):
                handler.wfile.write(_CHUNK)
        except OSError:
            pass
        handler.hang_up()

    return fault


def _packed() -> Answer:
    return Answer(gzip.compress(b" " * LARGE_BYTES), headers={"Content-Encoding": "gzip"})


def _echo_key(handler: FaultyHandler, asked: Asked, _count: int) -> None:
    sent = {name: asked.headers[name] for name in KEY_HEADERS if name in asked.headers}
    words = f"Incorrect API key provided: {json.dumps(sent)}; find yours elsewhere \x1b[31m"
    handler.send(_refusal(401, words + "!" * 999))


KEY_HEADERS = ("authorization", "x-api-key", "x-subscription-token")
FAULTS: dict[str, Fault] = {
    "limited-once": _once(lambda: _refusal(429, "slow down", Retry_After="1")),
    "limited-date": _once(lambda: _refusal(429, "slow down", Retry_After=_in_a_second())),
    "limited": _always(lambda: _refusal(429, "slow down")),
    "limited-for-hours": _always(lambda: _refusal(429, "slow down", Retry_After="7200")),
    "failed-once": _once(lambda: _refusal(500, "oh")),
    "failed": _always(lambda: _refusal(503, "overloaded")),
    "hang": _hang,
    "drip": _drip,
    "cut": _cut,
    "cut-once": _first(_cut),
    "drop": _drop,
    "drop-once": _first(_drop),
    "large": _large(declared=True),
    "large-undeclared": _large(declared=False),
    "large-refusal": _large(declared=False, status=400),
    "packed": _always(_packed),
    "not-json": _always(lambda: Answer(b"<html><h1>Welcome</h1> to the <b>proxy</b></html>", headers={})),
    "wrong-shape": _always(lambda: said({"results": {"choices": 7}, "choices": "none", "content": 3, "query": 1})),
    "redirect": _always(lambda: Answer(b"", 307, {"Location": f"http://127.0.0.1:9{SEEN}?key=1"})),
    "refused": _always(lambda: _refusal(400, "no such thing as this")),
    "gone": _always(lambda: _refusal(404, "no such model")),
    "echo-key": _echo_key,
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave in the middle are what is tested."""


def serve(handler: type[FaultyHandler]) -> None:
    """Until it is killed; its port is on the first line of standard output."""
    with _Server(("127.0.0.1", 0), handler) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
