"""Connections are bounded in time."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
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


async def test_a_request_with_two_hosts_is_refused() -> None:
    async with connected() as (reader, writer), asyncio.timeout(10):
        writer.write(b"POST /mcp HTTP/1.1\r\nhost: x\r\nHost: y\r\ncontent-length: 2\r\n\r\n{}")
        got = await reader.read()
    assert got.startswith(b"HTTP/1.1 400 ")
    assert got.count(b"HTTP/1.1 ") == 1
    assert b"more than one Host" in got


SMUGGLED = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize(
    "asks", [b"connection: Upgrade\r\nupgrade: h2c\r\n", b"Upgrade: x\r\nConnection: close, upgrade\r\n"]
)
@pytest.mark.parametrize("apart", [False, True])
async def test_the_body_of_one_that_asks_to_upgrade_is_its_body(asks: bytes, apart: bool) -> None:
    """And not the next request."""
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
    for said, body in (
        (b"content-length: %d\r\n" % len(SMUGGLED), SMUGGLED),
        (b"transfer-encoding: chunked\r\n", chunks),
    ):
        async with connected() as (reader, writer), asyncio.timeout(10):
            writer.write(b"PUT /v1/nothing HTTP/1.1\r\nhost: x\r\n" + asks + said + b"\r\n")
            if apart:
                await writer.drain()
                await asyncio.sleep(0.1)
            writer.write(body)
            if b"close" not in asks:
                writer.write(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            got = await reader.read()
        assert got.startswith(b"HTTP/1.1 401 "), got
        assert got.count(b"HTTP/1.1 ") == (1 if b"close" in asks else 2), got
        assert b"HTTP/1.1 200 " not in got


async def test_many_that_ask_to_upgrade_are_answered_one_by_one() -> None:
    one = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    async with connected() as (reader, writer), asyncio.timeout(20):
        writer.write(one * 50 + b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).count(b"HTTP/1.1 200 ") == 51


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip", b"chunked\r\ntransfer-encoding: chunked"])
async def test_a_coding_that_nobody_undoes_is_refused(coding: bytes) -> None:
    async with connected() as (reader, writer), asyncio.timeout(10):
        writer.write(
            b"PUT /files/x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: " + coding + b"\r\n\r\n0\r\n\r\n" + SMUGGLED
        )
        got = await reader.read()
    assert got.startswith(b"HTTP/1.1 501 " if b"gzip, " in coding else (b"HTTP/1.1 501 ", b"HTTP/1.1 400 ")), got
    assert got.count(b"HTTP/1.1 ") == 1


async def test_nobody_is_connected_elsewhere() -> None:
    async with connected() as (reader, writer), asyncio.timeout(10):
        writer.write(b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n" + SMUGGLED)
        got = await reader.read()
    assert got.startswith(b"HTTP/1.1 400 ")
    assert got.count(b"HTTP/1.1 ") == 1


async def test_what_was_whole_has_its_answer_whatever_follows() -> None:
    async with connected() as (reader, writer), asyncio.timeout(10):
        writer.write(SMUGGLED + b"this is no request\r\n")
        got = await reader.read()
    assert got.startswith(b"HTTP/1.1 200 "), got
    assert got.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in got


ANSWER = 32 * 1024 * 1024


class _Answering:
    """An app with one large answer, whole or in pieces."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces
        self.sent = False
        app = make_app(StandInService(), ServerOptions(log=Log("error", lambda _: None)))
        self.state = app.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        assert scope["type"] == "http"
        length = (b"content-length", str(ANSWER).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        for left in reversed(range(self.pieces)):
            await send({"type": "http.response.body", "body": bytes(ANSWER // self.pieces), "more_body": left > 0})
        await scope[connection.CONNECTION].sent()
        self.sent = True


@contextlib.asynccontextmanager
async def asked_for_much(pieces: int) -> AsyncIterator[tuple[socket.socket, uvicorn.Server]]:
    config = uvicorn.Config(
        _Answering(pieces), http=Connection, ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as client:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(client, listening.getsockname())
            await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            yield client, server
        finally:
            client.close()
            server.should_exit = True
            await task


@pytest.mark.parametrize("pieces", [1, 32])
async def test_who_takes_nothing_of_an_answer_is_left(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    monkeypatch.setattr(connection, "_TAKES_NOTHING_S", 0.6)
    async with asked_for_much(pieces) as (_, server), asyncio.timeout(10):
        while not server.server_state.connections:
            await asyncio.sleep(0.01)
        while server.server_state.connections:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("pieces", [1, 32])
async def test_who_reads_slowly_gets_all_of_it(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    monkeypatch.setattr(connection, "_TAKES_NOTHING_S", 0.6)
    loop = asyncio.get_running_loop()
    async with asked_for_much(pieces) as (client, server), asyncio.timeout(30):
        got, began = 0, loop.time()
        while got < ANSWER:
            app: Any = server.config.app
            assert got > ANSWER // 4 or not app.sent, "what nobody has read is told as sent"
            piece = await loop.sock_recv(client, 1024 * 1024)
            assert piece, got
            got += len(piece)
            if loop.time() - began < 2:
                await asyncio.sleep(0.0005)
