"""The one guard of connections to the outside: names are looked up here, once, and what is connected to is what was
checked. HTTP and its redirects are left to others, who ask again for every connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore2

from workbench.egress.policy import Address, AddressPolicy
from workbench.errors import Denied, UpstreamFailed

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""from a name and a port to addresses, the best first; raises OSError if there are none"""

CONNECT_S = 10.0
# A name may have hundreds; all are checked, and so many are tried.
_MOST_TRIED = 6
# Lookups cannot be given up: one that hangs holds its thread for as long as the system's library waits.
_LOOKUPS_AT_ONCE = 16


class SystemResolver:
    """As this machine looks names up. Owned by who made it."""

    def __init__(self) -> None:
        # BARRIER: names whose servers do not answer would take the threads that everything else in this process needs;
        # held by tests/unit/egress/test_guard.py.
        self._threads = ThreadPoolExecutor(_LOOKUPS_AT_ONCE, thread_name_prefix="names")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Its addresses. Raises: OSError."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _look_up, host, port)

    def close(self) -> None:
        """Without waiting for lookups that still run. May be called twice."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except UnicodeError as problem:
        raise OSError(f"not a name that can be looked up: {problem}") from None
    return [_with_scope(str(place[0]), place[3] if len(place) == 4 else 0) for *_, place in found]


def _with_scope(address: str, scope: int | str) -> str:
    return f"{address}%{scope}" if scope and "%" not in address else address


class Guard:
    """Which addresses a name may be reached at, now. For everything that connects on somebody's word."""

    def __init__(self, policy: AddressPolicy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver

    def is_named(self, host: str) -> bool:
        """Whether the operator allowed this very host."""
        return self._policy.is_named(host)

    async def addresses(self, host: str, port: int, within_s: float) -> tuple[Address, ...]:
        """All of them were checked; connect to one of these, and do not look the name up again.

        Raises:
            Denied: one of them is not to be connected to.
            UpstreamFailed: it has none, or none was found in time.
        """
        literal = _literal(host)
        if literal is not None:
            self._policy.check(literal, host)
            return (literal,)
        found = await self._resolved(host, port, within_s)
        # BARRIER: who owns a name puts a public address beside a private one, and has the second tried; held by
        # tests/unit/egress/test_guard.py.
        for address in found:
            self._policy.check(address, host)
        return found

    async def _resolved(self, host: str, port: int, within_s: float) -> tuple[Address, ...]:
        try:
            async with asyncio.timeout(within_s):
                told = await self._resolver(host, port)
        except TimeoutError:
            raise UpstreamFailed(
                f"the name {host} could not be looked up within {within_s:g} s", {"host": host}
            ) from None
        except OSError as problem:
            why = problem.strerror or str(problem)
            raise UpstreamFailed(
                f"the name {host} could not be looked up: {why}; check how it is written", {"host": host}
            ) from None
        found = tuple(dict.fromkeys(_literal(one) for one in told))
        checked = tuple(one for one in found if one is not None)
        if not checked or len(checked) != len(found):
            raise UpstreamFailed(f"the name {host} has no address that can be read", {"host": host})
        return checked


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """What an HTTP client connects with. TLS goes by the name, as ever: the certificate is checked against it."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._network = httpcore2.AnyIOBackend()

    def is_named(self, host: str) -> bool:
        """Whether the operator allowed this very host."""
        return self._guard.is_named(host)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is the library's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """The first that answers of those it may connect to; all within the time.

        Raises:
            Denied: the guard says no.
            UpstreamFailed: nobody answers there.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + (CONNECT_S if timeout is None else timeout)
        # BARRIER: a second lookup could say something else than the one that was checked; so the address is handed on,
        # and never the name; held by tests/egress/test_connecting.py.
        addresses = (await self._guard.addresses(host, port, until - loop.time()))[:_MOST_TRIED]
        why: Exception | None = None
        for tried, address in enumerate(addresses):
            # One that never answers leaves its share to the others.
            share = (until - loop.time()) / (len(addresses) - tried)
            try:
                stream = await self._network.connect_tcp(
                    str(address), port, max(share, 0.0), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as problem:
                why = problem
            else:
                return _ClosedOnFailure(stream)
        where = ", ".join(map(str, addresses))
        raise UpstreamFailed(
            f"nobody answers at port {port} of {host} ({where}): {_reason(why)}", {"host": host, "port": str(port)}
        ) from why

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        """Never. Raises: Denied."""
        # BARRIER: such sockets are other programs of this machine; held by tests/unit/egress/test_guard.py.
        raise Denied(f"unix sockets are not connected to: {path}")

    async def sleep(self, seconds: float) -> None:
        """Between tries of the client."""
        await asyncio.sleep(seconds)


class _ClosedOnFailure(httpcore2.AsyncNetworkStream):
    """A connection that does not stay open when its TLS is given up half way, as the library's own does."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """As the library has it."""
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """As the library has it."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """As the library has it."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """From here on by TLS."""
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            await asyncio.shield(self._stream.aclose())
            raise

    def get_extra_info(self, info: str) -> Any:
        """As the library has it."""
        return self._stream.get_extra_info(info)


def _literal(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _reason(problem: BaseException | None) -> str:
    """The system's words, which the libraries wrap several times."""
    while problem is not None:
        if isinstance(problem, TimeoutError | httpcore2.TimeoutException):
            return "no answer in time"
        if isinstance(problem, OSError) and problem.errno:
            return os.strerror(problem.errno)
        problem = problem.__cause__ or problem.__context__
    return "no connection"
