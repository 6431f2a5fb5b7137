"""One connection: what it may cost before anybody has shown a key, and answers to what is not HTTP.

The parser has no limits of its own: a head of any size would be kept in memory, and a connection without one for ever.
"""

from __future__ import annotations

import asyncio
import resource
import secrets
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from workbench.errors import InvalidRequest, TooLarge, WorkbenchError
from workbench.server.answers import refusal
from workbench.server.logs import Log

# More than any proxy sends: nginx stops at 32 KiB.
_MOST_HEAD_BYTES = 64 * 1024
_HEAD_TIMEOUT_S = 30.0
# Who was answered in the middle of a body has so long to come to its end.
_REST_TIMEOUT_S = 5.0
# Who takes nothing of an answer for so long has gone, or means to have us keep it.
_TAKES_NOTHING_S, _LOOKS = 60.0, 6
_MOST_FILES = 65_536


class _SeveralHosts(Exception):
    """In one request."""


class Connection(HttpToolsProtocol):
    """uvicorn's, with bounds. It is made and closed by uvicorn, and its timer ends with it."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        app: Any = self.config.app
        self._log: Log = app.state.door.log
        self._in_head = True
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From now on a request is expected."""
        super().connection_made(transport)
        self._expect(_HEAD_TIMEOUT_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's."""
        self._expect(None)
        if self._sending is not None:
            self._sending.cancel()
        # It forgets its own timer if the connection broke.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Piece by piece while it is a head, so that no more is parsed than a head may have."""
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        while rest and not self.transport.is_closing():
            # BARRIER: without a key one could fill the server's memory, or hold all connections it can have; held by
            # tests/server/test_connections.py.
            if not self._in_head:
                self._parse(bytes(rest))
                return
            if self._timer is None:
                self._expect(_HEAD_TIMEOUT_S)
            piece, rest = rest[: _MOST_HEAD_BYTES - self._head_bytes], rest[_MOST_HEAD_BYTES - self._head_bytes :]
            self._head_bytes += len(piece)
            self._parse(bytes(piece))
            if self._in_head and self._head_bytes >= _MOST_HEAD_BYTES:
                self._refuse(431, _head_too_large())

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # There is nothing to upgrade to; the request is answered as it is.
            pass
        except httptools.HttpParserError as problem:
            self._refuse(400, _unreadable(problem))

    def on_headers_complete(self) -> None:
        """As uvicorn's."""
        # BARRIER: a proxy in front of us may look at another one than we do; held by
        # tests/unit/server/test_connection.py.
        if sum(name == b"host" for name, _ in self.headers) > 1:
            raise _SeveralHosts
        self._in_head = False
        self._expect(None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """As uvicorn's; the next head may come."""
        self._in_head, self._head_bytes = True, 0
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """As uvicorn's, which would take what is left of a body for as long as it comes."""
        super().on_response_complete()
        self._watch_sending()
        if not self._in_head and not self.transport.is_closing():
            self._expect(_REST_TIMEOUT_S)

    def pause_writing(self) -> None:
        """As uvicorn's; what waits to be sent is memory of ours."""
        super().pause_writing()
        self._watch_sending()

    def resume_writing(self) -> None:
        """As uvicorn's; the client reads."""
        super().resume_writing()
        self._watch_sending(anew=True)

    def _watch_sending(self, *, anew: bool = False) -> None:
        if self._sending is not None and anew:
            self._sending.cancel()
            self._sending = None
        if self._sending is None:
            self._look_again(self.transport.get_write_buffer_size(), _LOOKS)

    def _look_again(self, left: int, looks: int) -> None:
        if left:
            self._sending = self.loop.call_later(_TAKES_NOTHING_S / _LOOKS, self._look, left, looks)

    def _look(self, before: int, looks: int) -> None:
        """Nothing is written while it waits: what is left changes if, and only if, the client takes some of it."""
        self._sending = None
        left = self.transport.get_write_buffer_size()
        # BARRIER: answers that nobody reads would fill the server's memory; held by
        # tests/unit/server/test_connection.py.
        if left == before and looks == 1:
            self.transport.abort()
        else:
            self._look_again(left, looks - 1 if left == before else _LOOKS)

    def _expect(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._answering():
            # The next request has begun before this one has its answer, which may take long.
            self._expect(_HEAD_TIMEOUT_S)
        elif self._in_head and self._head_bytes:
            self._refuse(408, InvalidRequest(f"the request's head did not arrive within {_HEAD_TIMEOUT_S:g} s"))
        else:
            self.transport.close()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: int, problem: WorkbenchError) -> None:
        """Tell it, if it is not taken for the answer to something else, and close."""
        if self.transport.is_closing():
            return
        if not self._answering() or (self.cycle.more_body and not self.cycle.response_started):
            name = f"req-{secrets.token_hex(8)}"
            told = refusal(problem, name, status, {"x-request-id": name, "connection": "close"})
            head = b"".join(b"%s: %s\r\n" % one for one in told.raw_headers)
            self.transport.write(STATUS_LINE[status] + head + b"\r\n" + bytes(told.body))
            self._log.event("info", "request", request_id=name, status=status, outcome=problem.code)
        self.transport.close()


def raise_file_limit() -> None:
    """As many connections as the system lets us have: the usual 1024 are used up by a few callers who hold them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _head_too_large() -> TooLarge:
    return TooLarge(
        f"request line and headers may have {_MOST_HEAD_BYTES:,} bytes at most; send what is large in the body",
        {"most_bytes": str(_MOST_HEAD_BYTES)},
    )


def _unreadable(problem: httptools.HttpParserError) -> InvalidRequest:
    if isinstance(problem.__context__, _SeveralHosts):
        why = "more than one Host"
    elif isinstance(problem, httptools.HttpParserInvalidMethodError):
        why = "no such method"
    elif isinstance(problem, httptools.HttpParserInvalidURLError):
        why = "a bad address"
    else:
        why = "a bad request line, header, length or chunk"
    return InvalidRequest(f"this cannot be read as a request of HTTP/1.1: {why}; /docs has every request")
