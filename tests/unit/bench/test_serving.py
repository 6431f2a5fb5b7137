"""A bench of the server that finds no fault must be one that could have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from bench.server import Crowd
from bench.serving import Answer, Client, end_of_stream


@asynccontextmanager
async def answering(*parts: bytes) -> AsyncIterator[tuple[Client, list[bytes]]]:
    """A client of somebody who gives this answer, and what was asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        asked.append(head + await reader.readexactly(length))
        for part in parts:
            writer.write(part)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        client = Client(reader, writer, "wbk_key")
        yield client, asked
        await client.close()


async def test_an_answer_in_pieces_is_read_whole() -> None:
    parts = (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n \r\n", b'8\r\n{"a": 1}\r\n', b"0\r\n\r\n")
    async with answering(*parts) as (client, asked):
        answer = await client.ask("POST", "/v1/x", {"code": "1"})
    assert (answer.status, answer.json()) == (200, {"a": 1})
    assert asked[0].startswith(b"POST /v1/x HTTP/1.1\r\n")
    assert b"authorization: Bearer wbk_key\r\n" in asked[0]
    assert asked[0].endswith(b'{"code": "1"}')


async def test_an_answer_that_breaks_off_is_an_error() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf") as (client, _):
        with pytest.raises(ConnectionError):
            await client.ask("GET", "/v1/x")


def test_the_end_of_a_stream_is_what_its_last_event_says() -> None:
    cell = {"result": {"outcome": "ok"}}
    events = f"event: piece\ndata: {{}}\n\n: still here\n\nevent: end\nid: 7\ndata: {json.dumps(cell)}\n\n"
    assert end_of_stream(Answer(200, events.encode())) == cell
    with pytest.raises(AssertionError):
        end_of_stream(Answer(200, b": nothing\n\n"))


def test_growth_is_told_per_thousand_cells() -> None:
    assert Crowd(growth_kib=2048.0, counted=4000).growth_mib_per_thousand == 0.5
