"""Fetcher: what lies behind a URL, streamed, through the guard. The raw bytes, and no more than was asked for.

It speaks HTTP/1.1 by a pool of httpcore2's that connects through the guard alone: that knows no proxies, follows no
redirects, unpacks nothing, and reads nothing of the environment.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass

import httpcore2
import httpx2

from workbench import __version__
from workbench.egress.guard import CONNECT_S, Guard, GuardedBackend, Resolver, SystemResolver
from workbench.egress.naming import suggested_name
from workbench.egress.policy import AddressPolicy
from workbench.egress.targets import next_target, shown, target_of
from workbench.errors import QuotaExceeded, TooLarge, UpstreamFailed, WorkbenchError

IDLE_S = 30.0
WHOLE_S = 900.0
MOST_REDIRECTS = 5
MOST_AT_ONCE = 64
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
# All others of 2xx are answers without the file, or with a part of it.
_WHOLE_FILE = frozenset((200, 203))
# May be another thing the next time, though the request is the same.
_PASSING = frozenset((408, 425, 429))


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long is waited."""

    connect_s: float = CONNECT_S
    """for the name and a connection, and as long again for its TLS"""
    idle_s: float = IDLE_S
    """for the next byte; and from a connection to the head of the answer"""
    whole_s: float = WHOLE_S
    """for everything, redirects and whoever reads it included"""


class Fetcher:
    """`contracts.fetching.Fetching` for the network. `aclose` it."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        times: Times | None = None,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._times = times or Times()
        self._own_resolver: SystemResolver | None = None
        if resolver is None:
            resolver = self._own_resolver = SystemResolver()
        self._backend = GuardedBackend(Guard(policy, resolver))
        self._tls = tls
        self._pool: httpcore2.AsyncConnectionPool | None = None

    def fetch(self, url: str, *, most_bytes: int) -> AbstractAsyncContextManager[Answer]:
        """As `Fetching` has it."""
        return self._fetching(url, most_bytes)

    async def aclose(self) -> None:
        """Also what is being read. May be called twice."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()
        if self._own_resolver is not None:
            self._own_resolver.close()

    @asynccontextmanager
    async def _fetching(self, url: str, most_bytes: int) -> AsyncIterator[Answer]:
        first = target_of(url)
        until = asyncio.get_running_loop().time() + self._times.whole_s
        last, response = await self._followed(first, until)
        body = response.aiter_stream()
        try:
            _check_status(response.status, last)
            yield _answer(response, body, _Bounds(last, most_bytes, until, self._times), first)
        finally:
            await body.aclose()
            await response.aclose()

    async def _followed(self, first: httpx2.URL, until: float) -> tuple[httpx2.URL, httpcore2.Response]:
        """The first answer that is no redirect, and where it came from."""
        url, response = first, await self._asked(first, until)
        for _ in range(MOST_REDIRECTS):
            location = _location(response)
            if not location:
                return url, response
            await response.aclose()
            # BARRIER: a public server would send us on to a private address. Each goes through the guard anew, with
            # nothing of the request before but its URL; held by tests/egress/test_redirects.py.
            with _told_from(first):
                url = next_target(url, location)
                response = await self._asked(url, until)
        if _location(response):
            await response.aclose()
            raise UpstreamFailed(f"{shown(first)} redirects more than {MOST_REDIRECTS} times", {"url": shown(first)})
        return url, response

    async def _asked(self, url: httpx2.URL, until: float) -> httpcore2.Response:
        request = httpcore2.Request(
            b"GET",
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=[
                (b"Host", url.netloc),
                (b"User-Agent", f"open-workbench/{__version__}".encode()),
                (b"Accept", b"*/*"),
                (b"Accept-Encoding", b"identity"),
                (b"Connection", b"close"),
            ],
            extensions={"timeout": self._waits()},
        )
        # The library bounds each step and each read; a head that comes byte by byte is bounded here.
        head_s = 2 * self._times.connect_s + self._times.idle_s
        head_by = min(until, asyncio.get_running_loop().time() + head_s)
        with _translated(url, self._times):
            async with asyncio.timeout_at(head_by):
                return await self._connections().handle_async_request(request)

    def _waits(self) -> dict[str, float]:
        connect, idle = self._times.connect_s, self._times.idle_s
        return {"connect": connect, "pool": connect, "read": idle, "write": idle}

    def _connections(self) -> httpcore2.AsyncConnectionPool:
        """None of them is used twice."""
        if self._pool is None:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=self._tls or httpx2.create_ssl_context(trust_env=False),
                max_connections=MOST_AT_ONCE,
                max_keepalive_connections=0,
                network_backend=self._backend,
            )
        return self._pool


@dataclass(frozen=True, slots=True)
class _Bounds:
    url: httpx2.URL
    most_bytes: int
    until: float
    times: Times

    def check(self, size: int, *, whole: bool) -> None:
        """Raises: TooLarge."""
        # BARRIER: what comes would fill the disk, whatever size was told before; held by tests/egress/test_bounds.py.
        if size > self.most_bytes:
            much = f"{size:,}" if whole else f"more than {self.most_bytes:,}"
            raise TooLarge(
                f"{shown(self.url)} has {much} bytes, and {self.most_bytes:,} may come; make room for it",
                {"url": shown(self.url), "most_bytes": str(self.most_bytes)},
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`contracts.fetching.Fetched`."""

    name: str
    content_type: str
    size: int | None
    url: str
    _chunks: AsyncIterator[bytes]

    def chunks(self) -> AsyncIterator[bytes]:
        """As `Fetched` has it."""
        return self._chunks


class _Chunks:
    """No generator: nothing has to be closed if its reader leaves half way."""

    def __init__(self, body: AsyncIterator[bytes], bounds: _Bounds) -> None:
        self._body = body
        self._bounds = bounds
        self._got = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        # That all came which was announced is seen to by the library, also for chunked answers.
        with _translated(self._bounds.url, self._bounds.times):
            async with asyncio.timeout_at(self._bounds.until):
                chunk = await anext(self._body)
        self._got += len(chunk)
        self._bounds.check(self._got, whole=False)
        return chunk


def _answer(response: httpcore2.Response, body: AsyncIterator[bytes], bounds: _Bounds, asked: httpx2.URL) -> Answer:
    size = _declared(response)
    if size is not None:
        bounds.check(size, whole=True)
    return Answer(
        # What the caller wrote names the file rather than what a redirect made of it.
        name=suggested_name(_header(response, b"content-disposition"), asked, bounds.url),
        content_type=_header(response, b"content-type").decode("latin-1").partition(";")[0].strip().lower()[:200],
        size=size,
        url=str(bounds.url),
        _chunks=_Chunks(body, bounds),
    )


def _declared(response: httpcore2.Response) -> int | None:
    told = _header(response, b"content-length")
    # With both, HTTP has the chunks count.
    return int(told) if told.isdigit() and not _header(response, b"transfer-encoding") else None


def _location(response: httpcore2.Response) -> str:
    """Where a redirect leads; empty for other answers."""
    return _header(response, b"location").decode("utf-8", "replace") if response.status in _REDIRECTS else ""


def _header(response: httpcore2.Response, name: bytes) -> bytes:
    return next((value.strip() for key, value in response.headers if key.lower() == name), b"")


def _check_status(status: int, url: httpx2.URL) -> None:
    if status not in _WHOLE_FILE:
        problem = UpstreamFailed(
            f"{shown(url)} answered with the status {status}, and not with a file; check that the URL is right and "
            "needs no login",
            {"url": shown(url), "status": str(status)},
        )
        problem.retryable = status >= 500 or status in _PASSING
        raise problem


@contextmanager
def _translated(url: httpx2.URL, times: Times) -> Iterator[None]:
    """Errors of the library in words of ours."""
    context = {"url": shown(url)}
    try:
        yield
    except httpcore2.PoolTimeout:
        crowded = QuotaExceeded(f"{MOST_AT_ONCE} URLs are being fetched; send it again when some have ended", context)
        crowded.retryable = True
        raise crowded from None
    except httpcore2.ConnectTimeout as problem:
        raise UpstreamFailed(f"{shown(url)} agreed on no TLS within {times.connect_s:g} s", context) from problem
    except httpcore2.TimeoutException as problem:
        raise UpstreamFailed(f"{shown(url)} said nothing for {times.idle_s:g} s", context) from problem
    except TimeoutError as problem:
        slow = (
            f"{shown(url)} is too slow: an answer has {times.idle_s:g} s to begin, and {times.whole_s:g} s to be whole"
        )
        raise UpstreamFailed(slow, context) from problem
    except httpcore2.ConnectError as problem:
        untrusted = UpstreamFailed(f"no TLS with {shown(url)}: {problem}", context)
        untrusted.retryable = False
        raise untrusted from problem
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as problem:
        raise UpstreamFailed(f"the answer of {shown(url)} broke off or makes no sense: {problem}", context) from problem


@contextmanager
def _told_from(first: httpx2.URL) -> Iterator[None]:
    """Who asked for `first` is told that what failed is where that redirects to."""
    try:
        yield
    except WorkbenchError as problem:
        told = type(problem)(f"{shown(first)} redirects: {problem.message}", problem.context)
        told.retryable = problem.retryable
        raise told from problem
