"""An HTTP client for one server: it connects through the guard, and its headers go to that server alone."""

from __future__ import annotations

import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping

import httpcore2
import httpx2

from workbench import __version__
from workbench.egress.guard import CONNECT_S, GuardedBackend
from workbench.egress.targets import shown
from workbench.errors import Denied, UpstreamBadAnswer, WorkbenchError

_WRITE_S = 30.0
_MOST_CONNECTIONS = 32
_PACKED = b"content-encoding"


class OneServer(httpx2.AsyncBaseTransport):
    """What httpx2 sends by. `problem` is the last error of the tree, which the protocol's library swallows."""

    def __init__(self, url: httpx2.URL, backend: GuardedBackend, most_bytes: int) -> None:
        self._origin = _origin(url)
        self._most_bytes = most_bytes
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_trusting() if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            max_connections=_MOST_CONNECTIONS,
            network_backend=backend,
        )
        self.problem: WorkbenchError | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One exchange; redirects are the library's to follow, within the server."""
        # BARRIER: a redirect would carry the key of one server to another; held by tests/toolkits/test_one_server.py.
        if _origin(request.url) != self._origin:
            self.problem = Denied(f"{request.url.host} is not the server that this toolkit was added for")
            raise self.problem
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with self.told():
            answer = await self._pool.handle_async_request(asked)
            # BARRIER: a few packed bytes unpack to gigabytes; held by tests/toolkits/test_one_server.py.
            if packed := _packed_by(answer):
                await answer.aclose()
                raise UpstreamBadAnswer(f"the answer is packed by {packed[:20]!r}, which it was asked not to be")
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            # A stream of events may go on for long: what it holds is bounded event by event.
            stream=_Bounded(answer, self, None if request.method == "GET" else self._most_bytes),
            extensions=answer.extensions,
        )

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Errors of the library below, as those of the one above."""
        try:
            yield
        except WorkbenchError as problem:
            self.problem = problem
            raise httpx2.ConnectError(problem.message) from problem
        except httpcore2.TimeoutException as problem:
            raise httpx2.ReadTimeout(str(problem)) from problem
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as problem:
            raise httpx2.ReadError(str(problem)) from problem

    async def aclose(self) -> None:
        """All connections."""
        await self._pool.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response, server: OneServer, most_bytes: int | None) -> None:
        self._answer = answer
        self._server = server
        self._most_bytes = most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        got = 0
        with self._server.told():
            async for chunk in self._answer.aiter_stream():
                got += len(chunk)
                # BARRIER: an answer without an end would fill the memory of the server; held by
                # tests/toolkits/test_one_server.py.
                if self._most_bytes is not None and got > self._most_bytes:
                    raise UpstreamBadAnswer(f"the answer has more than {self._most_bytes:,} bytes")
                yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


def client_for(server: OneServer, headers: Mapping[str, str], idle_s: float) -> httpx2.AsyncClient:
    """With these headers in each request."""
    return httpx2.AsyncClient(
        transport=server,
        headers={"User-Agent": f"open-workbench/{__version__}", **headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(_WRITE_S, connect=CONNECT_S, read=idle_s),
        follow_redirects=False,
        trust_env=False,
    )


@functools.cache
def _trusting() -> ssl.SSLContext:
    """Whom to trust, read once: it takes a twentieth of a second, in which nobody else is served."""
    return httpx2.create_ssl_context(trust_env=False)


def check_private(url: httpx2.URL, backend: GuardedBackend) -> None:
    """Before a key goes there. Raises: Denied."""
    # BARRIER: a key would be read by everybody on the way; held by tests/toolkits/test_one_server.py.
    if url.scheme != "https" and not backend.is_named(url.host):
        raise Denied(
            f"{shown(url)} is not https, and a key is not sent in the clear; use https, or name the host in "
            "WORKBENCH_TOOLKITS_ALLOW if it is one of your own network",
            {"host": url.host, "setting": "WORKBENCH_TOOLKITS_ALLOW"},
        )


def _packed_by(answer: httpcore2.Response) -> str:
    told = [value.decode("latin-1").strip().lower() for name, value in answer.headers if name.lower() == _PACKED]
    return ", ".join(one for one in told if one not in ("", "identity"))


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
