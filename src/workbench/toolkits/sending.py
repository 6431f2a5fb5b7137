"""ServiceCaller: one HTTP call to a service with a credential, to the hosts of its toolkit and to nobody else."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import ipaddress
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import httpcore2
import httpx2

from workbench import __version__
from workbench.contracts.service_calls import ServiceAnswer, ServiceOrder
from workbench.egress.guard import CONNECT_S, Guard, GuardedBackend, Resolver, SystemResolver
from workbench.egress.policy import AddressPolicy, is_public
from workbench.egress.targets import next_target, shown, target_of
from workbench.errors import (
    Denied,
    InvalidRequest,
    QuotaExceeded,
    UpstreamRefused,
    UpstreamUnavailable,
    WorkbenchError,
)
from workbench.model.connection import ACCESS_TOKEN, API_KEY, PASSWORD, TOKEN, USERNAME, Credential
from workbench.model.toolkit import AuthKind
from workbench.toolkits.answers import TooMuch, read, told_headers, unpacked
from workbench.toolkits.scrubbing import Scrubber

ALLOW_SETTING = "WORKBENCH_TOOLKITS_ALLOW"
MOST_BYTES = 64 * 2**20
"""of an answer"""
MOST_AT_ONCE = 64
# Of all answers that are being read; a process that serves everybody must not be filled by one session's.
_MOST_HELD = 4 * MOST_BYTES
# What is read and scrubbed before anybody notices.
_AT_ONCE_BYTES = 64 * 1024
_MOST_SENT = 64 * 2**20
_MOST_REDIRECTS = 5
_MOST_TRIES = 3
_LIMITED, _UNAVAILABLE = 429, 503
_HARMLESS = frozenset(("GET", "HEAD", "OPTIONS"))
# Sent twice they do what they do once.
_REPEATABLE = _HARMLESS | {"PUT", "DELETE"}
_SAME_METHOD = frozenset((307, 308))
_REDIRECTS = frozenset((301, 302, 303)) | _SAME_METHOD
_WITH_PORT = re.compile(r"(\[[0-9a-f:.]+\]|[^:]+):([0-9]{1,5})")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,16384}")
# Of the connection, or ours to say.
_OURS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
     "proxy-authorization", "proxy-connection", "accept-encoding")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long is waited."""

    connect_s: float = CONNECT_S
    idle_s: float = 60.0
    """for the next byte"""
    whole_s: float = 240.0
    """for everything, redirects and repetitions included"""
    longest_pause_s: float = 30.0
    """that a service may ask for before it is asked again"""


class ServiceCaller:
    """`contracts.service_calls.ServiceCalls`. `aclose` it."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        patience: Patience | None = None,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        most_bytes: int = MOST_BYTES,
        most_held: int = _MOST_HELD,
    ) -> None:
        self._policy = policy
        self._patience = patience or Patience()
        self._own_resolver: SystemResolver | None = None
        if resolver is None:
            resolver = self._own_resolver = SystemResolver()
        self._backend = GuardedBackend(Guard(policy, resolver))
        self._outside = GuardedBackend(Guard(AddressPolicy(setting=policy.setting), resolver))
        self._tls = tls
        self._pools: dict[bool, httpcore2.AsyncConnectionPool] = {}
        self._most_bytes = most_bytes
        self._most_held = most_held
        self._held = 0

    async def call(self, order: ServiceOrder) -> ServiceAnswer:
        """As `ServiceCalls` has it."""
        scrubber = Scrubber(order.credential)
        until = asyncio.get_running_loop().time() + self._patience.whole_s
        try:
            first = self._checked(order)
            for tried in range(1, _MOST_TRIES + 1):
                answer, pause_s = await self._tried(order, first, until, scrubber)
                left_s = until - asyncio.get_running_loop().time()
                if pause_s is None or tried == _MOST_TRIES or pause_s > min(self._patience.longest_pause_s, left_s):
                    return answer
                await asyncio.sleep(pause_s)
            raise AssertionError
        except WorkbenchError as problem:
            # BARRIER: an address may have the key in it, and errors are read by agents and in logs; held by
            # tests/toolkits/test_secrets.py.
            raise _scrubbed(problem, scrubber) from None

    async def aclose(self) -> None:
        """Also what is under way. May be called twice."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()
        if self._own_resolver is not None:
            self._own_resolver.close()

    def _checked(self, order: ServiceOrder) -> httpx2.URL:
        url = target_of(order.url)
        if not is_among(url, order.hosts):
            known = ", ".join(order.hosts) or "none"
            raise Denied(
                f"{shown(url)} is not at a host of this toolkit, whose credential goes to these only: {known}",
                {"host": url.host},
            )
        self._check_private(url, order.credential)
        for name, value in order.headers:
            if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
                raise InvalidRequest(f"the header {name[:60]!r} has a name or a value that cannot be sent")
            if name.lower() in _OURS:
                raise InvalidRequest(f"the header {name[:60]!r} is not to be set: it is of the connection")
        if order.body is not None and len(order.body) > _MOST_SENT:
            raise InvalidRequest(f"the body has {len(order.body):,} bytes, and {_MOST_SENT:,} may be sent")
        return url

    def _check_private(self, url: httpx2.URL, credential: Credential | None) -> None:
        # BARRIER: a credential would be read by everybody on the way; held by tests/toolkits/test_sending.py.
        is_secret = credential is not None and credential.kind is not AuthKind.NO_AUTH
        if is_secret and url.scheme != "https" and not self._policy.is_named(url.host):
            raise Denied(
                f"{shown(url)} is not https, and a credential is not sent in the clear; use https, or name the host in "
                f"{ALLOW_SETTING} if it is one of your own network",
                {"host": url.host, "setting": ALLOW_SETTING},
            )

    async def _tried(
        self, order: ServiceOrder, first: httpx2.URL, until: float, scrubber: Scrubber
    ) -> tuple[ServiceAnswer, float | None]:
        """What came, and after how many seconds it may be tried again; None for never."""
        sent = _Sent()
        try:
            async with self._followed(order, first, until, sent, scrubber) as (url, response), self._holding() as held:
                headers = told_headers(response.headers, scrubber)
                body = await self._body(response, until, held)
                pause_s = _pause_s(order, response.status, _header(response, b"retry-after"))
                packed = _header(response, b"content-encoding").decode("latin-1")
                path = scrubber.text(url.path)

                def understood() -> ServiceAnswer:
                    plain = unpacked(body, packed, self._most_bytes)
                    return read(response.status, headers, plain, scrubber, path)

                # Others are served meanwhile.
                is_small = len(body) <= _AT_ONCE_BYTES and not packed
                return understood() if is_small else await asyncio.to_thread(understood), pause_s
        except TooMuch:
            words = (
                f"the answer of {first.host} has more than {self._most_bytes:,} bytes and was not read to its end; "
                "the call was carried out: ask for less, by a filter, a page or fewer fields"
            )
            return _broken(words, sent), None
        except _Broke as problem:
            # BARRIER: what may have happened must not be told as if it had not, and must not happen twice; held by
            # tests/toolkits/test_sending.py.
            again = " It may have been carried out: look before you send it again." if _acts(order) else ""
            return _broken(scrubber.text(f"{problem}.{again}"), sent), None
        except ValueError as problem:
            return _broken(f"the answer of {first.host} cannot be read: {problem}", sent), None

    @asynccontextmanager
    async def _followed(
        self, order: ServiceOrder, first: httpx2.URL, until: float, sent: _Sent, scrubber: Scrubber
    ) -> AsyncIterator[tuple[httpx2.URL, httpcore2.Response]]:
        """The first answer that is no redirect that may be followed, and where it came from."""
        url, method, body, is_home, is_public = first, order.method, order.body, True, False
        for _ in range(_MOST_REDIRECTS + 1):
            with _sent_already(url, sent):
                to_all = is_home or not is_public
                response = await self._asked(order, url, method, body, is_home=is_home, until=until, to_all=to_all)
            is_public = is_public or answered_in_public(response)
            sent.status = response.status
            try:
                step = self._step(order, url, method, response, scrubber)
            except BaseException:
                await response.aclose()
                raise
            if step is None:
                try:
                    yield url, response
                finally:
                    await response.aclose()
                return
            await response.aclose()
            url, method, step_home = step
            # Once it was led away, somebody else says where it goes.
            is_home = is_home and step_home
            body = body if method == order.method else None
        raise _Broke(f"{shown(first)} redirects more than {_MOST_REDIRECTS} times")

    def _step(
        self, order: ServiceOrder, url: httpx2.URL, method: str, response: httpcore2.Response, scrubber: Scrubber
    ) -> tuple[httpx2.URL, str, bool] | None:
        location = _header(response, b"location").decode("utf-8", "replace")
        if response.status not in _REDIRECTS or not location:
            return None
        if response.status == 303 and method not in _HARMLESS:
            method = "GET"
        elif method not in _HARMLESS and response.status not in _SAME_METHOD:
            return None
        try:
            there = next_target(url, location)
        except WorkbenchError as problem:
            raise _Broke(f"{shown(url)} redirects to where nobody may go: {problem.message}") from None
        is_home = is_among(there, order.hosts)
        # BARRIER: a redirect would take the credential, or what is sent, to whoever it leads to; held by
        # tests/toolkits/test_redirects.py.
        if not is_home and method not in _HARMLESS:
            raise _Broke(f"{shown(url)} redirects to {there.host}, which is not of this toolkit; that is not followed")
        if not is_home and scrubber.text(location) != location:
            raise _Broke(f"{shown(url)} redirects to {there.host} with the credential in the address")
        return there, method, is_home

    async def _asked(
        self,
        order: ServiceOrder,
        url: httpx2.URL,
        method: str,
        body: bytes | None,
        *,
        is_home: bool,
        until: float,
        to_all: bool,
    ) -> httpcore2.Response:
        headers: list[tuple[str, str]] = [("User-Agent", f"open-workbench/{__version__}"), ("Accept", "*/*")]
        if is_home:
            self._check_private(url, order.credential)
            given = {name.lower() for name, _ in order.headers}
            headers = [(name, value) for name, value in headers if name.lower() not in given]
            headers += [(name, value) for name, value in order.headers if body is not None or not _of_body(name)]
            url = _with_credential(url, headers, order.credential)
        if body is not None or method in ("POST", "PUT", "PATCH"):
            headers.append(("Content-Length", str(len(body or b""))))
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        request = httpcore2.Request(
            method.encode("ascii"),
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=[
                (b"Host", url.netloc),
                *raw,
                (b"Accept-Encoding", b"identity"),
                (b"Connection", b"close"),
            ],
            content=body or b"",
            extensions={"timeout": self._waits()},
        )
        with _translated(url, self._patience):
            async with asyncio.timeout_at(until):
                # BARRIER: what the operator allows is for toolkits that are there: a service of the outside world would
                # lead calls to them by a redirect; held by tests/toolkits/test_redirects.py.
                return await self._connections(to_all=to_all).handle_async_request(request)

    @asynccontextmanager
    async def _holding(self) -> AsyncIterator[_Held]:
        """Until an answer is read and understood, which others wait for a thread with."""
        held = _Held()
        try:
            yield held
        finally:
            self._held -= held.size

    async def _body(self, response: httpcore2.Response, until: float, held: _Held) -> bytes:
        declared = _header(response, b"content-length")
        if declared.isdigit() and int(declared) > self._most_bytes:
            raise TooMuch
        body = bytearray()
        with _translated(None, self._patience):
            async with asyncio.timeout_at(until):
                async for chunk in response.aiter_stream():
                    body += chunk
                    held.size += len(chunk)
                    self._held += len(chunk)
                    # BARRIER: what comes would fill the memory of a process that serves everybody; held by
                    # tests/toolkits/test_sending.py.
                    if len(body) > self._most_bytes:
                        raise TooMuch
                    if self._held > self._most_held:
                        raise _Broke("too many large answers are being read at once; ask for less, or later")
        return bytes(body)

    def _waits(self) -> dict[str, float]:
        connect, idle = self._patience.connect_s, self._patience.idle_s
        return {"connect": connect, "pool": connect, "read": idle, "write": idle}

    def _connections(self, *, to_all: bool) -> httpcore2.AsyncConnectionPool:
        """To all that is allowed, or to public addresses only. None of them is used twice: one that the other side has
        just closed would leave a call in doubt.
        """
        if to_all not in self._pools:
            self._pools[to_all] = httpcore2.AsyncConnectionPool(
                ssl_context=self._tls or httpx2.create_ssl_context(trust_env=False),
                max_connections=MOST_AT_ONCE,
                max_keepalive_connections=0,
                network_backend=self._backend if to_all else self._outside,
            )
        return self._pools[to_all]


class _Broke(Exception):
    """It was sent, and there is no whole answer: no error of the tree, as something may have been done."""


@dataclass
class _Held:
    size: int = 0


@dataclass
class _Sent:
    status: int | None = None


def answered_in_public(response: httpcore2.Response) -> bool:
    """Whether who answered is at an address that anybody may be at."""
    stream = response.extensions.get("network_stream")
    place = stream.get_extra_info("server_addr") if stream is not None else None
    try:
        return place is not None and is_public(ipaddress.ip_address(str(place[0]).partition("%")[0]))
    except ValueError:
        return False


def is_among(url: httpx2.URL, hosts: tuple[str, ...]) -> bool:
    """Whether a URL leads to one of a toolkit's hosts: `name`, `name:port` or `*.name`; without a port, the usual."""
    usual = {"https": 443, "http": 80}[url.scheme]
    port = url.port or usual
    host = url.host.lower().rstrip(".")
    return any(_is_that(host, port, usual, one.lower()) for one in hosts)


def _is_that(host: str, port: int, usual: int, one: str) -> bool:
    told = _WITH_PORT.fullmatch(one)
    name = (told[1] if told else one).strip("[]")
    if port != (int(told[2]) if told else usual):
        return False
    # The wider ones are for names: no address is below a name.
    return host == name or (name.startswith("*.") and host.endswith(name[1:]) and not _is_address(host))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _with_credential(url: httpx2.URL, headers: list[tuple[str, str]], credential: Credential | None) -> httpx2.URL:
    """Adds it to the headers, or to the URL. Raises: Denied if the credential has no value for that."""
    if credential is None or credential.kind is AuthKind.NO_AUTH or credential.scheme.place == "none":
        return url
    scheme = credential.scheme
    value = _proof(credential)
    if scheme.place == "query":
        return url.copy_merge_params({scheme.name: value})
    if not _VALUE.fullmatch(value):
        raise InvalidRequest("the credential of this account has characters that cannot be sent: connect it again")
    headers[:] = [(name, one) for name, one in headers if name.lower() != scheme.name.lower()]
    headers.append((scheme.name, value))
    return url


def _proof(credential: Credential) -> str:
    values = {name: secret.reveal() for name, secret in credential.values.items()}
    prefix, is_usual = credential.scheme.prefix, credential.scheme.name.lower() == "authorization"
    if credential.kind is AuthKind.BASIC:
        pair = f"{values.get(USERNAME, '')}:{values.get(PASSWORD, '')}".encode()
        return f"{prefix or 'Basic '}{base64.b64encode(pair).decode()}"
    name = {AuthKind.API_KEY: API_KEY, AuthKind.BEARER_TOKEN: TOKEN, AuthKind.OAUTH2: ACCESS_TOKEN}[credential.kind]
    if not values.get(name):
        known = {"account": credential.account}
        raise Denied(f"the account {credential.account} has no {name}: connect it again", known)
    if not prefix and is_usual and credential.kind is not AuthKind.API_KEY:
        prefix = "Bearer "
    return f"{prefix}{values[name]}"


def _of_body(name: str) -> bool:
    return name.lower().startswith("content-")


def _acts(order: ServiceOrder) -> bool:
    return order.method not in _HARMLESS


def _pause_s(order: ServiceOrder, status: int, told: bytes) -> float | None:
    """After a refusal that is over soon. What was refused for its number was not carried out; what is merely not
    available may have been.
    """
    may = status == _LIMITED or (status == _UNAVAILABLE and (order.method in _REPEATABLE or order.may_repeat))
    if not may or not told:
        return None
    text = told.decode("latin-1").strip()
    if text.isdigit() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _broken(words: str, sent: _Sent) -> ServiceAnswer:
    return ServiceAnswer(status=sent.status, problem=words)


def _header(response: httpcore2.Response, name: bytes) -> bytes:
    return next((value.strip() for key, value in response.headers if key.lower() == name), b"")


def _scrubbed(problem: WorkbenchError, scrubber: Scrubber) -> WorkbenchError:
    context = {name: scrubber.text(one) for name, one in problem.context.items()}
    told = type(problem)(scrubber.text(problem.message), context)
    told.retryable = problem.retryable
    return told


@contextmanager
def _sent_already(url: httpx2.URL, sent: _Sent) -> Iterator[None]:
    """What fails behind a redirect is no more an error that means that nothing was sent."""
    try:
        yield
    except WorkbenchError as problem:
        if sent.status is None:
            raise
        raise _Broke(f"a redirect leads to {shown(url)}: {problem.message}") from None


@contextmanager
def _translated(url: httpx2.URL | None, patience: Patience) -> Iterator[None]:
    """Errors of the library in words of ours: of the tree if nothing was sent."""
    where = "the service" if url is None else shown(url)
    try:
        yield
    except httpcore2.PoolTimeout:
        crowded = QuotaExceeded(f"{MOST_AT_ONCE} calls to services are under way; send it again when some have ended")
        crowded.retryable = True
        raise crowded from None
    except httpcore2.ConnectTimeout:
        raise UpstreamUnavailable(f"{where} agreed on no connection within {patience.connect_s:g} s") from None
    except httpcore2.ConnectError as problem:
        raise UpstreamRefused(f"no TLS with {where}: {problem}") from None
    except httpcore2.TimeoutException:
        raise _Broke(f"{where} said nothing for {patience.idle_s:g} s") from None
    except TimeoutError:
        raise _Broke(f"{where} gave no whole answer within {patience.whole_s:g} s") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as problem:
        raise _Broke(f"the answer of {where} broke off or makes no sense: {str(problem)[:200]}") from None
