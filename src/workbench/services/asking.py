"""One bounded request to a service, tried again where that helps. What is asked and what it means is left to others.

It speaks through a transport of httpx2's alone, without its client: that would log every URL with what is searched for,
follow redirects if told to, unpack answers without a bound, and read proxies from the environment.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx2

from workbench import __version__
from workbench.errors import (
    UpstreamBadAnswer,
    UpstreamError,
    UpstreamLimited,
    UpstreamRefused,
    UpstreamUnavailable,
)
from workbench.services.excerpts import excerpt
from workbench.services.retries import LIMITED, PASSING, Policy, asked_for_s

MOST_ANSWER_BYTES = 8 * 2**20
"""far more than a model writes or an engine finds"""
CONNECT_S = 10.0
MOST_AT_ONCE = 64
# Of an answer that only says what was wrong.
_MOST_REFUSAL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long is waited, and for how much."""

    whole_s: float
    """for all attempts and the pauses between them"""
    attempt_s: float
    """for one: connecting, sending, and the last byte of its answer"""
    connect_s: float = CONNECT_S
    most_bytes: int = MOST_ANSWER_BYTES
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request that has no effect but its answer, so that it can be sent twice."""

    url: str = field(repr=False)
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Whom we ask, in the words of our errors."""

    name: str
    """such as `the language model`"""
    url: str
    """where all its addresses begin"""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """that must not be quoted"""
    url_setting: str = ""
    """what says where it is; empty if nothing does"""
    hints: Mapping[int, str] = field(default_factory=dict)
    """what to look at after a status"""

    def __str__(self) -> str:
        host = httpx2.URL(self.url)
        return f"{self.name} at {host.host}" + (f":{host.port}" if host.port else "")


class _Passing(Exception):
    """It may be otherwise the next time."""

    def __init__(self, problem: UpstreamError, asked_for_s: float | None = None) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.asked_for_s = asked_for_s


class Asking:
    """Requests to one service. Connections are kept for the next. `aclose` it."""

    def __init__(
        self,
        service: Service,
        bounds: Bounds,
        *,
        socket_path: str = "",
        tls: ssl.SSLContext | None = None,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._service = service
        self._bounds = bounds
        self._socket_path = socket_path
        self._tls = tls
        self._spread = spread
        self._transport: httpx2.AsyncHTTPTransport | None = None

    async def ask(self, ask: Ask) -> bytes:
        """The body of a good answer. Raises: UpstreamError, one of its leaves."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._bounds.whole_s
        failures = 0
        while True:
            try:
                # Also a POST: that to a model or an engine changes nothing there, it only costs once more.
                return await self._attempt(ask, min(self._bounds.attempt_s, until - clock()))
            except _Passing as passing:
                failures += 1
                pause = self._bounds.policy.pause_s(failures, passing.asked_for_s, self._spread(), until - clock())
                if pause is None:
                    raise _last(passing.problem, failures) from passing.__cause__
            await asyncio.sleep(pause)

    async def aclose(self) -> None:
        """Also what is under way. May be called twice."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _attempt(self, ask: Ask, within_s: float) -> bytes:
        request = self._request(ask, within_s)
        with self._translated(within_s):
            async with asyncio.timeout(within_s):
                response = await self._connections().handle_async_request(request)
                try:
                    return await self._read(response)
                finally:
                    await response.aclose()

    def _request(self, ask: Ask, within_s: float) -> httpx2.Request:
        waits = {
            "connect": min(self._bounds.connect_s, within_s),
            "read": within_s,
            "write": within_s,
            "pool": within_s,
        }
        headers = {
            "User-Agent": f"open-workbench/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **ask.headers,
        }
        return httpx2.Request(ask.method, ask.url, headers=headers, content=ask.body, extensions={"timeout": waits})

    async def _read(self, response: httpx2.Response) -> bytes:
        status, good = response.status_code, 200 <= response.status_code < 300
        most = self._bounds.most_bytes if good else _MOST_REFUSAL_BYTES
        body, more = await _body(response, most)
        if not good:
            self._refuse(status, response.headers, bytes(body))
        if more:
            raise UpstreamBadAnswer(
                f"the answer of {self._service} has more than {most:,} bytes and was not read to its end",
                self._context(most_bytes=str(most)),
            )
        # BARRIER: a few packed bytes unpack to gigabytes; held by tests/services/test_bounds.py.
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise UpstreamBadAnswer(
                f"{self._service} sent a packed answer, which it was asked not to do", self._context()
            )
        return bytes(body)

    def _refuse(self, status: int, headers: httpx2.Headers, body: bytes) -> None:
        said = excerpt(body, self._service.secrets)
        words = f"{self._service} answered with the status {status}" + (f": {said}" if said else "")
        context = self._context(status=str(status))
        if status in PASSING:
            wait = asked_for_s(headers.get("retry-after", ""), time.time())
            if wait is not None:
                context["retry_after_s"] = f"{wait:.0f}"
                words += f"; it asks to wait {wait:,.0f} s"
            raise _Passing((UpstreamLimited if status == LIMITED else UpstreamUnavailable)(words, context), wait)
        hint = self._service.hints.get(status, "")
        # BARRIER: the key would go along to wherever a redirect leads; held by tests/services/test_faults.py.
        if 300 <= status < 400 and self._service.url_setting:
            hint = f"redirects are not followed: set {self._service.url_setting} to where it really is"
        raise UpstreamRefused(f"{words}; {hint}" if hint else words, context)

    @contextmanager
    def _translated(self, within_s: float) -> Iterator[None]:
        """Errors of the library in words of ours."""
        try:
            yield
        except (TimeoutError, httpx2.TimeoutException) as problem:
            slow = f"{self._service} gave no whole answer within {within_s:.3g} s"
            raise _Passing(UpstreamUnavailable(slow, self._context())) from problem
        except httpx2.ConnectError as problem:
            if _is_about_tls(problem):
                raise UpstreamRefused(f"no TLS with {self._service}: {_said(problem)}", self._context()) from problem
            away = f"{self._service} cannot be reached: {_said(problem)}"
            if self._service.url_setting:
                away += f"; check {self._service.url_setting}"
            raise _Passing(UpstreamUnavailable(away, self._context())) from problem
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as problem:
            raise UpstreamRefused(f"{self._service} cannot be asked: {_said(problem)}", self._context()) from problem
        except (httpx2.TransportError, OSError) as problem:
            broke = f"the answer of {self._service} broke off or makes no sense: {_said(problem)}"
            raise _Passing(UpstreamUnavailable(broke, self._context())) from problem

    def _context(self, **more: str) -> dict[str, str]:
        return {"service": self._service.name, **more}

    def _connections(self) -> httpx2.AsyncHTTPTransport:
        if self._transport is None:
            self._transport = httpx2.AsyncHTTPTransport(
                verify=self._tls or self._made_tls(),
                trust_env=False,
                limits=httpx2.Limits(max_connections=MOST_AT_ONCE, max_keepalive_connections=8, keepalive_expiry=30.0),
                uds=self._socket_path or None,
            )
        return self._transport

    def _made_tls(self) -> ssl.SSLContext:
        if self._service.url.startswith("https:"):
            return httpx2.create_ssl_context(trust_env=False)
        # To read whom everybody trusts takes a tenth of a second, and here nobody is to be trusted.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _body(response: httpx2.Response, most: int) -> tuple[bytearray, bool]:
    """No more than `most` of it, and whether there is more."""
    # One piece: a service that sends its answer byte by byte would have a list cost forty times as much.
    got = bytearray()
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most and response.is_success:
        return got, True
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    chunks = aiter(response.stream)
    try:
        async for chunk in chunks:
            # BARRIER: whatever comes would be held in memory, whatever size was told before; held by
            # tests/services/test_bounds.py.
            if len(got) + len(chunk) > most:
                got += chunk[: most - len(got)]
                return got, True
            got += chunk
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
    return got, False


def _last(problem: UpstreamError, failures: int) -> UpstreamError:
    if failures > 1:
        problem.message = f"{problem.message} ({failures} attempts)"
        problem.args = (problem.message,)
    return problem


def _is_about_tls(problem: BaseException) -> bool:
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _said(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
