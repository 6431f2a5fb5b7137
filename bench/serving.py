"""Servers of a bench's own, and a client that costs next to nothing: what is measured is the server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httptools

from workbench.settings import Settings

_START_S, _STOP_S, _ANSWER_S = 60.0, 60.0, 180.0
_READY = re.compile(r"is ready at (http://\S+)")
_KEY = re.compile(r"\bkey +(wbk_\S+)")
_LAST_LINE = "Ctrl-C ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that runs, with its host."""

    settings: Settings
    url: str
    key: str
    pid: int

    async def client(self) -> Client:
        """A new connection, kept alive until it is closed."""
        where = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        return Client(reader, writer, self.key)

    def memory_kib(self) -> int:
        """What the server's process holds by itself, without files that are mapped."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


@asynccontextmanager
async def serving(settings: Settings, pool_size: int = 4) -> AsyncIterator[Serving]:
    """`workbench serve --with-host` with its usual settings, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="wb-bench-"))
    mine = replace(settings, data_dir=folder / "data", pool_size=pool_size, listen_host="127.0.0.1", listen_port=0)
    try:
        with (folder / "server.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "workbench", "serve", "--with-host",
                env={**os.environ, **mine.to_env()},
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log,
            )  # fmt: skip
        try:
            async with asyncio.timeout(_START_S):
                url, key = await _greeting(process)
            yield Serving(settings=mine, url=url, key=key, pid=process.pid)
        finally:
            await _stop(process)
    finally:
        shutil.rmtree(folder)


async def _greeting(process: asyncio.subprocess.Process) -> tuple[str, str]:
    assert process.stdout is not None
    said = ""
    while _LAST_LINE not in said:
        line = (await process.stdout.readline()).decode()
        if not line:
            raise AssertionError(f"the server ended: {said}")
        said += line
    ready, key = _READY.search(said), _KEY.search(said)
    assert ready is not None
    assert key is not None
    return ready[1], key[1]


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_STOP_S):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one request."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    def json(self) -> Any:
        """Its value."""
        return json.loads(self.body)


class Client:
    """One connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader = reader
        self._writer = writer
        # By a name that MCP's door takes for its own: it refuses others.
        self._head = f"host: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"

    async def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        """To its whole answer."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self._head}"
        if body is not None:
            head += "content-type: application/json\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self._writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        collected = _Collected()
        parser = httptools.HttpResponseParser(collected)
        async with asyncio.timeout(_ANSWER_S):
            while not collected.complete:
                some = await self._reader.read(65_536)
                if not some:
                    raise ConnectionError("the server closed the connection in the middle of an answer")
                parser.feed_data(some)
        return Answer(parser.get_status_code(), b"".join(collected.pieces), collected.headers)

    async def close(self) -> None:
        """The connection."""
        self._writer.close()
        await self._writer.wait_closed()


class _Collected:
    """What the parser calls."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.headers: dict[str, str] = {}
        self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of them."""
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        """A part of it."""
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        """All of it."""
        self.complete = True


def end_of_stream(answer: Answer) -> Any:
    """The data of the event `end`."""
    for event in answer.body.decode().split("\n\n"):
        lines = event.split("\n")
        if lines[0] == "event: end":
            return json.loads(lines[-1].removeprefix("data: "))
    raise AssertionError("a stream without an end")
