"""A real HTTP service on loopback that keeps what it was asked and answers as it is told; credentials for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from workbench.contracts.service_calls import ServiceOrder
from workbench.egress.policy import AddressPolicy
from workbench.model.connection import Credential, Secret
from workbench.model.toolkit import AuthField, AuthKind, AuthScheme
from workbench.toolkits.sending import ALLOW_SETTING, Patience, ServiceCaller

HERE, ELSEWHERE, FORBIDDEN = "127.0.0.2", "127.0.0.3", "127.0.0.4"
"""the service, another host that may be reached, and one that may not"""
POLICY = AddressPolicy.parse(f"{HERE},{ELSEWHERE}", ALLOW_SETTING)
QUICK = Patience(connect_s=2, idle_s=1, whole_s=6, longest_pause_s=3)
CANARY = "sk-canary/+7f3a9c1e5b2d"


@dataclass
class Asked:
    """One request, as it came over the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    _writer: asyncio.StreamWriter = field(repr=False)

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name.lower())

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    async def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        lines = {"Content-Length": str(len(body)), **(headers or {})}
        head = "\r\n".join([f"HTTP/1.1 {status} So", *(f"{key}: {value}" for key, value in lines.items()), "", ""])
        await self.send(head.encode("latin-1") + body)

    async def json(self, text: str, status: int = 200, **headers: str) -> None:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        await self.answer(status, text.encode(), {"Content-Type": "application/json", **named})


Handler = Callable[[Asked], Awaitable[None]]


@dataclass
class Service:
    """What it was asked so far."""

    host: str
    seen: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}"


@contextlib.asynccontextmanager
async def serving(handler: Handler, address: str = HERE) -> AsyncIterator[Service]:
    """One that is gone afterwards."""
    tasks: set[asyncio.Task[None]] = set()
    told: Service | None = None

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert told is not None
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = [(name, value) for name, _, value in (line.partition(": ") for line in head[1:] if line)]
            length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            asked = Asked(method, target, headers, await reader.readexactly(length), writer)
            told.seen.append(asked)
            await handler(asked)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(visit(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(begin, address, 0)
    told = Service(f"{address}:{server.sockets[0].getsockname()[1]}")
    try:
        yield told
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


@contextlib.asynccontextmanager
async def calling(
    policy: AddressPolicy = POLICY, patience: Patience = QUICK, most_bytes: int = 2**20
) -> AsyncIterator[ServiceCaller]:
    """A caller that may reach both hosts; closed afterwards."""
    caller = ServiceCaller(policy, patience=patience, most_bytes=most_bytes)
    try:
        yield caller
    finally:
        await caller.aclose()


def key(value: str = CANARY, **scheme: str) -> Credential:
    """An API key."""
    return _credential(AuthScheme(kind=AuthKind.API_KEY, **scheme), api_key=value)  # type: ignore[arg-type]


def bearer(value: str = CANARY) -> Credential:
    """A token."""
    return _credential(AuthScheme(kind=AuthKind.BEARER_TOKEN), token=value)


def oauth(value: str = CANARY) -> Credential:
    """A token that was granted."""
    return _credential(AuthScheme(kind=AuthKind.OAUTH2), access_token=value)


def basic(username: str = "ann@example.com", password: str = CANARY) -> Credential:
    """A name and a password."""
    fields = (AuthField(name="username", label="User", is_secret=False), AuthField(name="password", label="Password"))
    return _credential(AuthScheme(kind=AuthKind.BASIC, fields=fields), username=username, password=password)


def _credential(scheme: AuthScheme, **values: str) -> Credential:
    secrets = {name: Secret(value) for name, value in values.items()}
    return Credential(kind=scheme.kind, scheme=scheme, values=secrets, account="ca_1")


def order(service: Service, path: str = "/", method: str = "GET", **more: object) -> ServiceOrder:
    """One to the service, which is the toolkit's only host."""
    given: dict[str, object] = {"hosts": (service.host,), **more}
    return ServiceOrder(method=method, url=f"{service.url}{path}", **given)  # type: ignore[arg-type]
