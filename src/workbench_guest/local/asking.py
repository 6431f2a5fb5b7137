"""One request to the workbench over HTTP, by Python's own library: its TLS, and the proxies of the environment.

The credential goes to the workbench's own address and nowhere else, and into no message.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import IO, Any

URL_VARIABLE, SESSION_VARIABLE = "BACKEND_URL", "COMPOSIO_TOOLROUTER_SESSION_ID"
# With which a call is allowed; the first one that is there is sent, by the name beside it.
CREDENTIALS = (("COMPOSIO_WORKBENCH_ACCESS_KEY", "x-session-access-key"), ("COMPOSIO_API_KEY", "x-api-key"))
# The longest silence; a server that is at work says so by white space.
SILENCE_S = 120.0
# More than the other side takes for the slowest of its own calls, so that its word on a failure comes first.
ANSWER_TIMEOUT_S = 290.0
MOST_ANSWER_BYTES = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_MOST_SAID = 500

# Codes that are given on this side.
NOT_CONNECTED, CUT_OFF, TIMED_OUT = "not_connected", "cut_off", "timed_out"
TOO_LARGE, BAD_ANSWER = "too_large", "bad_answer"
_MAYBE = "it may have been carried out"


class MissingCredential(RuntimeError):
    """There is nothing to call the workbench with. Says which variable is missing."""


class Unanswered(Exception):
    """There is no answer. Says why, and with which code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Reply:
    """What the other side answered."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.text = body.decode("utf-8", "replace")
        self.value: Any = None
        """the JSON in it; None if it is none"""
        self.problem = ""
        """why it is none"""
        try:
            self.value = json.loads(self.text)
        except (ValueError, RecursionError) as problem:
            self.problem = str(problem)

    @property
    def said(self) -> str:
        """What an error says for people; empty if it says nothing."""
        error = self.value.get("error") if isinstance(self.value, dict) else None
        said = error.get("message") if isinstance(error, dict) else error
        fix = error.get("suggested_fix") if isinstance(error, dict) else None
        words = [one for one in (said, fix) if isinstance(one, str) and one]
        return "; ".join(words)[:_MOST_SAID]


def session_path(prefix: str = "/api/v3/tool_router/session") -> str:
    """Below the workbench's address.

    Raises:
        MissingCredential: no session is named.
    """
    session = os.environ.get(SESSION_VARIABLE, "").strip()
    if not session:
        raise MissingCredential(f"{SESSION_VARIABLE} is not set: {_WHENCE}")
    return f"{prefix}/{urllib.parse.quote(session, safe='')}"


def post(path: str, body: dict[str, Any], silence_s: float = SILENCE_S) -> Reply:
    """Ask once. Never twice: a call that got no answer may have been carried out.

    Raises:
        MissingCredential: address or credential are not set, or cannot be used.
        Unanswered: nobody answered, or not in time.
    """
    return _asked("POST", path, json.dumps(body, ensure_ascii=False).encode(), silence_s)


def get(path: str) -> Reply:
    """The same for what changes nothing."""
    return _asked("GET", path, None, SILENCE_S)


def put(link: str, source: IO[bytes], size: int, headers: dict[str, str]) -> Reply:
    """Send a file to a link, which is all that it needs: no credential goes there.

    Raises:
        Unanswered: nobody answered, or not in time.
        OSError: the file cannot be read, or has changed meanwhile.
    """
    measured = _Measured(source, size)
    request = urllib.request.Request(link, data=measured, method="PUT")  # noqa: S310  checked when it is sent
    for name, value in {**headers, "Content-Length": str(size)}.items():
        request.add_header(name, value)
    try:
        return _sent(request, SILENCE_S)
    except Unanswered:
        if measured.problem:
            raise OSError(measured.problem) from None
        raise


def _asked(method: str, path: str, body: bytes | None, silence_s: float) -> Reply:
    request = urllib.request.Request(_base_url() + path, data=body, method=method)  # noqa: S310  checked when it is sent
    name, value = _credential()
    request.add_header("Content-Type", "application/json")
    request.add_header("Accept", "application/json")
    call = str(uuid.uuid4())
    request.add_header("x-request-id", call)
    # Two calls of the same words at the same time are two calls.
    request.add_header("x-call-id", call)
    request.add_unredirected_header(name, value)
    return _sent(request, silence_s)


_WHENCE = "it is in the env that came with this helper"


def _base_url() -> str:
    url = os.environ.get(URL_VARIABLE, "").strip().rstrip("/")
    if not url:
        raise MissingCredential(f"{URL_VARIABLE} is not set: {_WHENCE}")
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise MissingCredential(f"{URL_VARIABLE} has to begin with http:// or https://")
    return url


def _credential() -> tuple[str, str]:
    for variable, header in CREDENTIALS:
        if value := os.environ.get(variable, "").strip():
            if not value.isascii() or not value.isprintable():
                # Who says what is wrong with it must not say what it is.
                raise MissingCredential(f"{variable} has characters that no credential has")
            return header, value
    raise MissingCredential(f"{CREDENTIALS[-1][0]} is not set: {_WHENCE}")


def _sent(request: urllib.request.Request, silence_s: float) -> Reply:
    where = urllib.parse.urlsplit(request.full_url)
    if where.scheme not in ("http", "https"):
        raise Unanswered(BAD_ANSWER, f"a link of the workbench leads to {where.scheme}:, and not to a web server")
    # Neither name nor password, should there be any, nor a link's signature.
    origin = f"{where.scheme}://{where.netloc.rpartition('@')[2]}"
    try:
        opener = urllib.request.build_opener(_NoRedirects, _HearingHttp, _HearingHttps)
        try:
            answer = opener.open(request, timeout=silence_s)
        except urllib.error.HTTPError as refused:
            answer = refused
        with answer:
            return Reply(answer.status, _read(answer, time.monotonic() + ANSWER_TIMEOUT_S))
    except (OSError, http.client.HTTPException, ValueError) as problem:
        raise _unanswered(origin, problem, silence_s) from None


def _read(answer: Any, deadline: float) -> bytes:
    told = bytearray()
    # By pieces as they come: a server that is at work sends white space for as long as it takes.
    while piece := answer.read1(_CHUNK):
        told += piece
        if len(told) > MOST_ANSWER_BYTES:
            raise Unanswered(TOO_LARGE, f"the answer has more than {MOST_ANSWER_BYTES:,} bytes; {_MAYBE}")
        if time.monotonic() > deadline:
            raise Unanswered(TIMED_OUT, f"no whole answer within {ANSWER_TIMEOUT_S:g} s; {_MAYBE}")
    # Of one whose length was told; others say themselves that they are cut off.
    if getattr(answer, "length", None):
        raise Unanswered(CUT_OFF, f"the answer was cut off; {_MAYBE}")
    return bytes(told)


def _unanswered(origin: str, problem: Exception, silence_s: float) -> Unanswered:
    reason = problem.reason if isinstance(problem, urllib.error.URLError) else problem
    if isinstance(reason, socket.timeout):
        return Unanswered(TIMED_OUT, f"{origin} was silent for {silence_s:g} s; {_MAYBE}")
    why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return Unanswered(NOT_CONNECTED, f"no answer from {origin}: {why}; {_MAYBE}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An answer that leads elsewhere is an answer: the call, and what is in it, is for nobody else."""

    # BARRIER: whoever answers in the workbench's place would have the credential sent on to a server of its choice;
    # held by tests/local_sandbox/test_requests.py.

    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        """Not followed."""


class _Hearing:
    """A connection that reads what was said by who did not want to hear more."""

    def send(self, data: Any) -> None:
        try:
            super().send(data)  # type: ignore[misc]  # of the connection beside it
        except (BrokenPipeError, ConnectionResetError):
            if not isinstance(data, _Measured):
                raise


class _HttpConnection(_Hearing, http.client.HTTPConnection):
    pass


class _HttpsConnection(_Hearing, http.client.HTTPSConnection):
    pass


class _HearingHttp(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_HttpConnection, req)


class _HearingHttps(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_HttpsConnection, req)


class _Measured:
    """A file of which exactly so much is sent, whatever becomes of it meanwhile."""

    def __init__(self, source: IO[bytes], size: int) -> None:
        self._source = source
        self._left = size
        self.problem = ""

    def read(self, most: int = -1) -> bytes:
        """The next piece."""
        try:
            piece = self._source.read(min(most, self._left) if most >= 0 else self._left)
        except OSError as failure:
            self.problem = failure.strerror or str(failure)
            raise
        self._left -= len(piece)
        if not piece and self._left:
            self.problem = "the file has become shorter while it was sent"
            raise OSError(self.problem)
        return piece
