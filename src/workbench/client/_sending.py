"""Sending requests, sync and async. What is sent, when again, and what an answer means is decided by others."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import httpx2

from workbench import __version__
from workbench.client import _answers
from workbench.client._links import CONNECT_S, HERE, AsyncLinks, Links
from workbench.client._requests import Request
from workbench.client._retries import Attempts, Connection
from workbench.errors import InvalidRequest, Unauthenticated

Answer = TypeVar("Answer")

URL_VARIABLE, KEY_VARIABLE = "OPEN_WORKBENCH_URL", "OPEN_WORKBENCH_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8787"
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_RETRY_FOR_S = 30.0
# Below the time after which the server closes idle connections itself: a request and a goodbye do not cross.
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0)
# One rich output is one event, and a figure may be large.
_LARGEST_EVENT = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Where values are looked for that were not given; the first that is set is taken. An address and a key that stand
    at the same place belong together.
    """

    url: tuple[str, ...]
    key: tuple[str, ...]


OURS = Variables(url=(URL_VARIABLE,), key=(KEY_VARIABLE,))


class Target:
    """Where requests go, and with what key."""

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retry_for_s: float = DEFAULT_RETRY_FOR_S,
        variables: Variables = OURS,
    ) -> None:
        """Given values first, then the environment's.

        Raises:
            InvalidRequest: an address or a time that cannot be used.
            Unauthenticated: there is no key, or one that cannot be sent.
        """
        if not base_url:
            variables = _of_one_server(variables)
        self.url = _checked_url(base_url or _from_environment(variables.url) or DEFAULT_URL)
        self.key = _checked_key(api_key or _from_environment(variables.key), self.url, variables)
        if not timeout_s > 0 or not retry_for_s >= 0:
            raise InvalidRequest(f"timeout_s must be above 0 and retry_for_s at least 0: {timeout_s}, {retry_for_s}")
        self.timeout_s = timeout_s
        self.retry_for_s = retry_for_s
        self.through_proxy = httpx2.URL(self.url).host not in HERE
        """proxies of the environment are used; no proxy leads to this machine"""

    def headers(self) -> dict[str, str]:
        """What every request says."""
        return {
            "Authorization": f"Bearer {self.key}",
            "Accept": "application/json",
            "User-Agent": f"open-workbench/{__version__}",
        }

    def connection(self) -> Connection:
        """What its calls know together."""
        return Connection(server=self.url, retry_for_s=self.retry_for_s)

    def timeout(self, request: Request[Answer]) -> httpx2.Timeout:
        """The longest silence, not the longest call: white space keeps a long cell's connection alive."""
        silence = self.timeout_s + request.silence_s
        return httpx2.Timeout(self.timeout_s, connect=min(CONNECT_S, self.timeout_s), read=silence, pool=silence)


class Sender:
    """Sends, one thread per call."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.links = Links(target.timeout_s)
        self._connection = target.connection()
        self._http = httpx2.Client(
            base_url=target.url, headers=target.headers(), limits=_LIMITS, trust_env=target.through_proxy
        )

    def watch(self, lost: Callable[[], str]) -> None:
        """For a server of this program's own: what tells that it has ended."""
        self._connection.lost = lost

    def close(self) -> None:
        """Its connections."""
        self.links.close()
        self._http.close()

    def attempts(self, request: Request[Answer]) -> Attempts:
        """At one request."""
        return Attempts(request=request, connection=self._connection)

    def send(self, request: Request[Answer]) -> Answer:
        """To an answer, over lost connections where that is safe.

        Raises:
            WorkbenchError: the server refused, or cannot be reached.
        """
        attempts = self.attempts(request)
        while True:
            try:
                got = self._http.send(_built(self._http, self.target, request))
            except httpx2.TransportError as problem:
                time.sleep(attempts.pause_s(problem))
                continue
            if request.again and _answers.is_away(got.status_code, got.content):
                time.sleep(attempts.pause_s(_answers.why_away(got.status_code, got.content)))
                continue
            attempts.got_through()
            return _answers.read(request, self.target.url, got.status_code, got.content)

    @contextmanager
    def events(self, request: Request[None]) -> Iterator[Iterator[httpx2.ServerSentEvent]]:
        """Events of one connection, which may be lost: an `httpx2.TransportError`."""
        got = self._http.send(_built(self._http, self.target, request), stream=True)
        try:
            if got.status_code != httpx2.codes.OK:
                got.read()
                _refuse(self.target, got)
            yield iter(httpx2.EventSource(got, max_event_size=_LARGEST_EVENT))
        finally:
            got.close()


class AsyncSender:
    """Sends, one task per call."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.links = AsyncLinks(target.timeout_s)
        self._connection = target.connection()
        self._http = httpx2.AsyncClient(
            base_url=target.url, headers=target.headers(), limits=_LIMITS, trust_env=target.through_proxy
        )

    def watch(self, lost: Callable[[], str]) -> None:
        """For a server of this program's own: what tells that it has ended."""
        self._connection.lost = lost

    async def close(self) -> None:
        """Its connections."""
        await self.links.close()
        await self._http.aclose()

    def attempts(self, request: Request[Answer]) -> Attempts:
        """At one request."""
        return Attempts(request=request, connection=self._connection)

    async def send(self, request: Request[Answer]) -> Answer:
        """As `Sender.send`."""
        attempts = self.attempts(request)
        while True:
            try:
                got = await self._http.send(_built(self._http, self.target, request))
            except httpx2.TransportError as problem:
                await asyncio.sleep(attempts.pause_s(problem))
                continue
            if request.again and _answers.is_away(got.status_code, got.content):
                await asyncio.sleep(attempts.pause_s(_answers.why_away(got.status_code, got.content)))
                continue
            attempts.got_through()
            return _answers.read(request, self.target.url, got.status_code, got.content)

    @asynccontextmanager
    async def events(self, request: Request[None]) -> AsyncIterator[AsyncIterator[httpx2.ServerSentEvent]]:
        """As `Sender.events`."""
        got = await self._http.send(_built(self._http, self.target, request), stream=True)
        try:
            if got.status_code != httpx2.codes.OK:
                await got.aread()
                _refuse(self.target, got)
            yield aiter(httpx2.EventSource(got, max_event_size=_LARGEST_EVENT))
        finally:
            await got.aclose()


def _built(http: httpx2.Client | httpx2.AsyncClient, target: Target, request: Request[Answer]) -> httpx2.Request:
    headers = dict(request.headers)
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    return http.build_request(
        request.method,
        request.path,
        params=request.query or None,
        content=request.body,
        headers=headers,
        timeout=target.timeout(request),
    )


def _refuse(target: Target, got: httpx2.Response) -> NoReturn:
    if _answers.is_away(got.status_code, got.content):
        raise httpx2.ReadError(f"status {got.status_code}", request=got.request)
    raise _answers.refusal(target.url, got.status_code, got.content)


def _checked_url(text: str) -> str:
    try:
        url = httpx2.URL(text.rstrip("/"))
    except (httpx2.InvalidURL, TypeError):
        url = httpx2.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidRequest(f"base_url must be like {DEFAULT_URL}, not {text!r}", {"base_url": text})
    return str(url).rstrip("/").removesuffix("/v1")


def _from_environment(names: tuple[str, ...]) -> str:
    return next((told for name in names if (told := os.environ.get(name))), "")


def _of_one_server(variables: Variables) -> Variables:
    """BARRIER: a key of one server would be sent to the address of another; held by
    tests/unit/client/test_sending.py.
    """
    for url, key in zip(variables.url, variables.key, strict=True):
        if _from_environment((url,)):
            return Variables(url=(url,), key=(key,))
    return variables


def _checked_key(key: str, url: str, variables: Variables) -> str:
    named, addresses = " or ".join(variables.key), " or ".join(variables.url)
    if not key:
        raise Unauthenticated(
            f"no key for {url}: give api_key=…, or set {named} (and {addresses} for a server elsewhere); "
            "`workbench keys create` makes one, and Workbench.local() needs none"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Unauthenticated(f"api_key or {named} is not a key: it has characters that no key has")
    return key
