"""Connections are bounded in time."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from tests.unit.server.stand_in import StandInService

from workbench.server import connection
from workbench.server.app import make_app
from workbench.server.connection import Connection
from workbench.server.logs import Log
from workbench.server.service import ServerOptions

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[Streams]:
    app = make_app(StandInService(), ServerOptions(log=Log("error", lambda _: None)))
    config = uvicorn.Config(app, http=Connection, ws="none", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            try:
                yield reader, writer
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        finally:
            server.should_exit = True
            await task


async def answered(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
    return head


async def test_a_connection_that_says_nothing_is_closed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_HEAD_TIMEOUT_S", 0.2)
    async with connected() as (reader, _), asyncio.timeout(10):
        assert await reader.read() == b""


@pytest.mark.parametrize("first", [b"", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"])
async def test_a_head_that_comes_too_slowly_is_refused(monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(connection, "_HEAD_TIMEOUT_S", 0.3)
    async with connected() as (reader, writer), asyncio.timeout(10):
        if first:
            writer.write(first)
            assert (await answered(reader)).startswith(b"HTTP/1.1 200 ")
        writer.write(b"\r\nGET /healthz")
        got = await reader.read()
    assert b"HTTP/1.1 408 " in got
    assert b'"code":"invalid_request"' in got
    assert b"x-request-id: req-" in got


async def test_line_ends_between_requests_do_not_hold_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_HEAD_TIMEOUT_S", 0.3)
    async with connected() as (reader, writer), asyncio.timeout(10):
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        await answered(reader)
        writer.write(b"\r\n")
        assert b" 408 " in await reader.read()


async def test_the_limit_of_open_files_is_raised_and_never_lowered() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
        connection.raise_file_limit()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised == (min(before[1], 65_536), before[1])
        connection.raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
