"""The door: what one sandbox can make the host hold, and for how long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import select
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from workbench.host.calls import door as door_module
from workbench.host.calls.desk import CallDesk
from workbench.host.calls.door import CallDoor
from workbench.host.calls.tally import CallTally
from workbench.model.calls import CallAnswer, Caller
from workbench.model.ids import SandboxId

SOON_S = 10.0
LARGE = b"x" * 4_000_000


class Guest:
    """What is on the other side of the door."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def connected(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.setblocking(False)
        await asyncio.get_running_loop().sock_connect(line, self._address)
        return line

    async def asking(self, body: bytes = b"{}") -> socket.socket:
        line = await self.connected()
        await asyncio.get_running_loop().sock_sendall(line, struct.pack(">I", len(body)) + body)
        return line


async def whole(line: socket.socket) -> bytes:
    """All that comes until the other side has closed, or broken off."""
    loop, told = asyncio.get_running_loop(), b""
    with contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(SOON_S):
            while more := await loop.sock_recv(line, 2**20):
                told += more
    return told


async def until_left(line: socket.socket) -> None:
    """The other side has closed, whatever it said before that is still to be read."""
    looking = select.poll()
    looking.register(line, 0)
    async with asyncio.timeout(SOON_S):
        while not looking.poll(0):
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def opened(desk: CallDesk) -> AsyncIterator[Guest]:
    address = f"\0workbench-test-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(128)
        door = CallDoor("sb", desk, CallTally(), lambda _: Caller(sandbox=SandboxId("sb")))
        await door.open(listening.fileno())
        try:
            yield Guest(address)
        finally:
            await door.aclose()


@contextlib.asynccontextmanager
async def answered(desk: CallDesk, body: bytes) -> AsyncIterator[None]:
    """Every call, with the same."""

    async def serve() -> None:
        while True:
            for call in (await desk.take("server", rank=0, wait_s=SOON_S))[0]:
                desk.answer("server", call.id, CallAnswer(body=body))

    serving = asyncio.create_task(serve())
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait([serving])


async def test_an_answer_that_is_not_read_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_MOVED_WITHIN_S", 0.3)
    desk = CallDesk()
    async with opened(desk) as guest, answered(desk, LARGE):
        line = await guest.asking()
        await until_left(line)
        # What the machine's own buffers hold is there; the rest is gone with the connection.
        assert 0 < len(await whole(line)) < len(LARGE)
        line.close()


async def test_an_answer_that_is_read_late_arrives() -> None:
    desk = CallDesk()
    async with opened(desk) as guest, answered(desk, LARGE):
        line = await guest.asking()
        await asyncio.sleep(0.3)
        assert await whole(line) == struct.pack(">I", len(LARGE)) + LARGE
        line.close()


async def test_answers_that_are_not_read_are_bounded_together() -> None:
    desk = CallDesk()
    async with opened(desk) as guest, answered(desk, LARGE):
        lines = [await guest.asking() for _ in range(12)]
        codes = []
        for line in lines[8:]:
            told = await whole(line)
            codes.append(json.loads(told[4:])["code"] if len(told) < 1000 else "")
            line.close()
        assert codes == ["rate_limited"] * 4
        assert await whole(lines[0]) == struct.pack(">I", len(LARGE)) + LARGE
        for line in lines[:8]:
            line.close()


async def test_a_call_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_MOVED_WITHIN_S", 0.3)
    desk = CallDesk()
    async with opened(desk) as guest:
        line = await guest.connected()
        line.send(struct.pack(">I", 100) + b"x")
        assert await whole(line) == b""
        line.close()


async def test_a_door_that_is_closed_leaves_nobody_waiting() -> None:
    desk = CallDesk()
    async with opened(desk) as guest:
        half, asking = await guest.connected(), await guest.asking()
        await desk.take("server", rank=0, wait_s=SOON_S)
    for line in (half, asking):
        assert await whole(line) == b""
        line.close()
