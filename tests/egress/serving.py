"""Servers on loopback that answer as they are told, and names that lead to them.

127.0.0.2 is what the fetchers of these tests may connect to, as the whole world is in earnest; 127.0.0.3 is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from workbench.egress.fetch import Fetcher, Times
from workbench.egress.policy import AddressPolicy

GOOD, BAD = "127.0.0.2", "127.0.0.3"
POLICY = AddressPolicy.parse(GOOD)
QUICK = Times(connect_s=2, idle_s=2, whole_s=10)
Handler = Callable[["Visitor"], Awaitable[None]]


@dataclass
class Visitor:
    """A request that has come, and the way back to who sent it."""

    head: str
    _writer: asyncio.StreamWriter

    @property
    def path(self) -> str:
        return self.head.split(" ")[1]

    def header(self, name: str) -> str | None:
        lines = (line.partition(": ") for line in self.head.split("\r\n")[1:])
        return next((value for key, _, value in lines if key.lower() == name.lower()), None)

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    async def answer(self, status: str, body: bytes = b"", **headers: str) -> None:
        headers.setdefault("Content_Length", str(len(body)))
        lines = [f"HTTP/1.1 {status}", *(f"{key.replace('_', '-')}: {value}" for key, value in headers.items())]
        await self.send("\r\n".join([*lines, "", ""]).encode("utf-8") + body)

    async def until_gone(self) -> None:
        """Until the other side has left."""
        await self._writer.wait_closed()


@dataclass
class Server:
    """What it was asked, and how many came."""

    address: str
    port: int
    seen: list[Visitor] = field(default_factory=list)
    connections: int = 0
    open_now: int = 0

    async def all_gone(self) -> None:
        """Every connection has ended."""
        async with asyncio.timeout(5):
            while self.open_now:
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def serving(
    handler: Handler, address: str = GOOD, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """One that is gone afterwards, with all connections to it."""
    told: Server | None = None
    tasks: set[asyncio.Task[None]] = set()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert told is not None
        told.connections += 1
        told.open_now += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            visitor = Visitor(head.decode("latin-1").removesuffix("\r\n\r\n"), writer)
            told.seen.append(visitor)
            # Whoever hangs up ends what it is answered.
            answering = asyncio.ensure_future(handler(visitor))
            leaving = asyncio.ensure_future(reader.read())
            try:
                await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                answering.cancel()
                leaving.cancel()
                await asyncio.gather(answering, leaving, return_exceptions=True)
        except (OSError, EOFError):
            pass
        finally:
            told.open_now -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(visit(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(begin, address, port, ssl=tls)
    told = Server(address, server.sockets[0].getsockname()[1])
    try:
        yield told
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


class Names:
    """Looks names up by a table. A list of answers is given one after the other; the last stays."""

    def __init__(self, **names: list[Sequence[str]]) -> None:
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._names.get(host)
        if answers is None:
            raise OSError(f"no such name: {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@contextlib.asynccontextmanager
async def fetching(
    names: Names | None = None, times: Times = QUICK, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Fetcher]:
    """One that may go to 127.0.0.2, and knows a.example and b.example there and bad.example at 127.0.0.3."""
    names = names or Names(a_example=[[GOOD]], b_example=[[GOOD]], bad_example=[[BAD]])
    # As it is used by those who do not know the class.
    fetcher = Fetcher(POLICY, times=times, resolver=names, tls=tls)
    try:
        yield fetcher
    finally:
        await fetcher.aclose()


async def whole(fetcher: Fetcher, url: str, most_bytes: int = 10_000_000) -> bytes:
    """All bytes behind it."""
    async with fetcher.fetch(url, most_bytes=most_bytes) as fetched:
        return b"".join([chunk async for chunk in fetched.chunks()])
