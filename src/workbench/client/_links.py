"""Requests to links, sync and async: without the key, and to nowhere but where the link says."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator

import httpx2

from workbench import __version__
from workbench.client._requests import SLOW_S
from workbench.client._transfers import Exchange, Got
from workbench.threads import to_its_end

# Addresses of this machine: no proxy leads there.
HERE = frozenset({"127.0.0.1", "::1", "localhost"})
CONNECT_S = 10.0
_CHUNK = 1024 * 1024
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30.0)
# BARRIER: a key in these headers would be with whoever a link leads to; held by tests/unit/client/test_links.py.
# Nothing may be packed on the way: places in a file are counted in its own bytes.
_HEADERS = {"User-Agent": f"open-workbench/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}


class Links:
    """May be used by many threads at once. Made without a connection; closed by who made it."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._clients: dict[bool, httpx2.Client] = {}
        self._lock = threading.Lock()

    def exchange(self, step: Exchange) -> Got:
        """One request, to the end of its answer.

        Raises:
            httpx2.TransportError: the connection broke.
        """
        http = self._client(_through_proxy(step.url))
        content = step.body() if step.body is not None else None
        got = http.send(_built(http, self._timeout_s, step, content), stream=True)
        try:
            if step.into is None or not got.is_success:
                return Got(status=got.status_code, headers=got.headers, body=got.read())
            step.into.begin(got.status_code, got.headers)
            for chunk in got.iter_raw(_CHUNK):
                step.into.write(chunk)
            return Got(status=got.status_code, headers=got.headers, body=b"")
        finally:
            got.close()

    def _client(self, through_proxy: bool) -> httpx2.Client:
        with self._lock:
            if through_proxy not in self._clients:
                self._clients[through_proxy] = httpx2.Client(headers=_HEADERS, limits=_LIMITS, trust_env=through_proxy)
            return self._clients[through_proxy]

    def close(self) -> None:
        """Its connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()


class AsyncLinks:
    """As `Links`; what reads and writes files of this machine is done in threads."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._clients: dict[bool, httpx2.AsyncClient] = {}

    async def exchange(self, step: Exchange) -> Got:
        """As `Links.exchange`."""
        http = self._client(_through_proxy(step.url))
        content = _read_in_threads(step.body, step.leave) if step.body is not None else None
        got = await http.send(_built(http, self._timeout_s, step, content), stream=True)
        try:
            if step.into is None or not got.is_success:
                return Got(status=got.status_code, headers=got.headers, body=await got.aread())
            await to_its_end(step.into.begin, got.status_code, got.headers)
            async for chunk in got.aiter_raw(_CHUNK):
                await to_its_end(step.into.write, chunk)
            return Got(status=got.status_code, headers=got.headers, body=b"")
        finally:
            await got.aclose()

    def _client(self, through_proxy: bool) -> httpx2.AsyncClient:
        if through_proxy not in self._clients:
            self._clients[through_proxy] = httpx2.AsyncClient(headers=_HEADERS, limits=_LIMITS, trust_env=through_proxy)
        return self._clients[through_proxy]

    async def close(self) -> None:
        """Its connections."""
        for client in self._clients.values():
            await client.aclose()


async def _read_in_threads(body: Callable[[], Iterator[bytes]], leave: Callable[[], None]) -> AsyncIterator[bytes]:
    chunks = await to_its_end(body)
    while chunk := await to_its_end(next, chunks, b"", leave=leave):
        yield chunk


def _through_proxy(url: str) -> bool:
    return httpx2.URL(url).host not in HERE


def _built(
    http: httpx2.Client | httpx2.AsyncClient,
    timeout_s: float,
    step: Exchange,
    content: Iterator[bytes] | AsyncIterator[bytes] | None,
) -> httpx2.Request:
    # After the last byte the server puts the file in its place, which can mean another store far away.
    silence_s = timeout_s + (SLOW_S if step.body is not None else 0.0)
    timeout = httpx2.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s), read=silence_s)
    url = httpx2.URL(step.url)
    # BARRIER: addresses of requests are written to the program's log, and who can read that would have the file; held
    # by tests/unit/client/test_links.py. So what makes a link good is in what is sent, and not in the address.
    return http.build_request(
        step.method,
        url.copy_with(query=None),
        headers=dict(step.headers),
        content=content,
        timeout=timeout,
        extensions={"target": url.raw_path},
    )
