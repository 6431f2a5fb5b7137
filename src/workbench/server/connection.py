"""One connection: what it may cost before anybody has shown a key, and answers to what is not HTTP.

The parser has no limits of its own: a head of any size would be kept in memory, and a connection without one for ever.
"""

from __future__ import annotations

import asyncio
import os
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
CONNECTION = "workbench.connection"
"""by which the scope of a request has it"""


class _Unfit(Exception):
    """A head that can be read, but must not be answered as it is."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


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
        self._gone = asyncio.Event()
        self._has_ended = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From now on a request is expected."""
        super().connection_made(transport)
        self._expect(_HEAD_TIMEOUT_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's."""
        self._gone.set()
        self._expect(None)
        if self._sending is not None:
            self._sending.cancel()
        # It forgets its own timer if the connection broke.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Piece by piece while it is a head, so that no more is parsed than a head may have."""
        if self._has_ended:
            return
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        while rest and not self.transport.is_closing():
            # BARRIER: without a key one could fill the server's memory, or hold all connections it can have; held by
            # tests/server/test_connections.py.
            if not self._in_head:
                self._parse(rest)
                return
            if self._timer is None:
                self._expect(_HEAD_TIMEOUT_S)
            piece, rest = rest[: _MOST_HEAD_BYTES - self._head_bytes], rest[_MOST_HEAD_BYTES - self._head_bytes :]
            self._head_bytes += len(piece)
            self._parse(piece)
            if self._in_head and self._head_bytes >= _MOST_HEAD_BYTES:
                self._refuse(431, _head_too_large())

    def _parse(self, data: memoryview) -> None:
        try:
            while data:
                try:
                    self.parser.feed_data(data)
                    return
                except httptools.HttpParserUpgrade as stopped:
                    data = data[stopped.args[0] :]
                    self._read_again()
        except httptools.HttpParserError as problem:
            self._refuse(*_unreadable(problem))

    def _read_again(self) -> None:
        """There is nothing to upgrade to: the request is taken as if nobody had asked for it.

        BARRIER: this parser takes a message that asks for it to end with its head, and what is announced as its body
        for the next request; held by tests/unit/server/test_connection.py.
        """
        version, method = self.parser.get_http_version(), self.parser.get_method()
        lines = [b"%s: %s\r\n" % one for one in self.headers if one[0] != b"upgrade"]
        first = b"%s %s HTTP/%s\r\n" % (method, self.url, version.encode())
        self._parse_anew()
        self.parser.feed_data(first + b"".join(lines) + b"\r\n")

    def _parse_anew(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def on_message_begin(self) -> None:
        """As uvicorn's; what large files need of us beyond it is found here."""
        super().on_message_begin()
        more: dict[str, Any] = self.scope  # type: ignore[assignment]
        more[CONNECTION] = self

    def on_headers_complete(self) -> None:
        """As uvicorn's."""
        # BARRIER: a proxy in front of us may look at another one than we do; held by
        # tests/unit/server/test_connection.py.
        if sum(name == b"host" for name, _ in self.headers) > 1:
            raise _Unfit("more than one Host")
        codings = b",".join(value for name, value in self.headers if name == b"transfer-encoding")
        # BARRIER: what is behind another one would be kept as if it were the file itself; held by
        # tests/unit/server/test_connection.py.
        if codings and codings.strip().lower() != b"chunked":
            raise _Unfit("a Transfer-Encoding other than chunked", 501)
        if self.parser.get_method() == b"CONNECT":
            raise _Unfit("CONNECT, and this is no proxy")
        if self.parser.should_upgrade():
            return  # read again in a moment
        self._in_head = False
        self._expect(None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """As uvicorn's; the next head may come."""
        if self.parser.should_upgrade():
            return
        self._in_head, self._head_bytes = True, 0
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """As uvicorn's, which would take what is left of a body for as long as it comes."""
        super().on_response_complete()
        self._watch_sending()
        if not self._in_head and not self.transport.is_closing():
            self._expect(_REST_TIMEOUT_S)

    def take_body(self) -> int | None:
        """A descriptor of the socket, from which the caller reads the rest of the body, and which it closes. None if
        that does not come as it is, over TLS, or has been read in part.
        """
        if self.scheme != "http" or self.transport.is_closing() or self.cycle.body or not self.cycle.more_body:
            return None
        held = self.transport.get_extra_info("socket")
        if held is None:
            return None
        self.flow.pause_reading()
        return os.dup(held.fileno())

    def body_taken(self) -> None:
        """All of it. Another parser reads on: this one still waits for what it has not seen."""
        self._parse_anew()
        self.on_message_complete()

    async def sent(self) -> None:
        """Until the client has taken what was written, or all but a little, or is gone."""
        await self.flow.drain()

    async def break_off(self) -> None:
        """So that nobody takes what was sent for whole."""
        self.transport.abort()
        await self._gone.wait()

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
        if self._answering() and not self.cycle.more_body:
            # What came before was whole, and has its answer; what this was is lost.
            self._has_ended = True
            self.cycle.keep_alive = False
            self._expect(None)
            return
        # One that waits for its turn would be told in the middle of another's answer.
        if not self._answering() or (not self.pipeline and not self.cycle.response_started):
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


def _unreadable(problem: httptools.HttpParserError) -> tuple[int, InvalidRequest]:
    status = 400
    if isinstance(problem.__context__, _Unfit):
        why, status = problem.__context__.why, problem.__context__.status
    elif isinstance(problem, httptools.HttpParserInvalidMethodError):
        why = "no such method"
    elif isinstance(problem, httptools.HttpParserInvalidURLError):
        why = "a bad address"
    else:
        why = "a bad request line, header, length or chunk"
    return status, InvalidRequest(f"this cannot be read as a request of HTTP/1.1: {why}; /docs has every request")
