"""The door of one sandbox: what runs inside connects, asks one thing, and is answered.

Whoever connects is known by the kernel's word for its process; what it says of itself is not listened to.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
from collections.abc import Callable

from workbench.errors import HostUnavailable, InvalidRequest, QuotaExceeded, WorkbenchError
from workbench.host.calls.desk import Call, CallDesk
from workbench.host.calls.pace import Pace
from workbench.host.calls.room import Room
from workbench.host.calls.tally import CallTally
from workbench.model.calls import MAX_CALL_BYTES, CallAnswer, Caller

_log = logging.getLogger(__name__)
_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("3i")
# Of one sandbox, together: calls are in the host's memory until they are answered, and answers until they are read.
_MOST_AT_ONCE = 128
_MOST_BYTES = 32 * 1024 * 1024
# For a call to arrive, and for its answer to be read.
_MOVED_WITHIN_S = 30.0
# What the host does for one sandbox in a second; a connection is one, and each piece of a call costs by its size.
_A_SECOND, _AT_ONCE = 250.0, 300.0
_A_PIECE, _A_BYTE = 0.1, 1 / (64 * 1024)
_PIECE_BYTES = 256 * 1024
# When the host has no descriptor left for a connection.
_NO_ROOM_PAUSE_S = 0.5


class CallDoor:
    """Opened and closed by the sandbox's record in the host. `whose` names who asks, by its pid on this machine."""

    def __init__(self, name: str, desk: CallDesk, tally: CallTally, whose: Callable[[int], Caller]) -> None:
        self._name = name
        self._desk = desk
        self._tally = tally
        self._whose = whose
        self._accepting: asyncio.Task[None] | None = None
        self._callers: set[asyncio.Task[None]] = set()
        self._room = Room(desk.room, _MOST_BYTES)
        self._pace = Pace(a_second=_A_SECOND, at_once=_AT_ONCE)

    async def open(self, listening: int) -> None:
        """Accept from here on. The descriptor stays its owner's."""
        accepting = socket.socket(fileno=os.dup(listening))
        accepting.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(accepting), name=f"door of {self._name}")

    async def aclose(self) -> None:
        """Answer nobody any more. May be called twice."""
        # First: it adds to the others.
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait((self._accepting,))
        for task in list(self._callers):
            task.cancel()
        if self._callers:
            await asyncio.wait(self._callers)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                # BARRIER: who connects all the time takes the host's time from others; those who are too fast wait in
                # the machine's queue of this sandbox; held by tests/helpers/test_attacks.py.
                await self._pace.take(1)
                try:
                    line, _ = await loop.sock_accept(listening)
                except OSError as problem:
                    _log.warning("no connection from %s: %s", self._name, problem)
                    await asyncio.sleep(_NO_ROOM_PAUSE_S)
                    continue
                task = asyncio.create_task(self._serve(line), name=f"call from {self._name}")
                self._callers.add(task)
                task.add_done_callback(self._callers.discard)

    async def _serve(self, line: socket.socket) -> None:
        # Closed with all that nobody read of it.
        with line:
            try:
                await self._answer(line)
            except (OSError, EOFError, TimeoutError):
                pass
            except Exception:  # noqa: BLE001  a fault of ours costs this call, not the sandbox
                _log.exception("a call from %s failed", self._name)

    async def _answer(self, line: socket.socket) -> None:
        with self._room.held() as more:
            try:
                if len(self._callers) > _MOST_AT_ONCE:
                    raise QuotaExceeded(f"{_MOST_AT_ONCE} calls of this sandbox are under way; wait for some of them")
                async with asyncio.timeout(_MOVED_WITHIN_S):
                    body = await self._read(line, more)
                answer = await self._ask(Call(self._whose(_pid_of(line)), body), line)
            except WorkbenchError as problem:
                answer = refusal(problem)
            if answer is None:
                return
            # BARRIER: what a guest does not read is held in the host's memory; held by
            # tests/unit/host/calls/test_door.py.
            if not more(len(answer.body)):
                answer = refusal(
                    QuotaExceeded("too much is on its way into this sandbox at once; read some answers first")
                )
            async with asyncio.timeout(_MOVED_WITHIN_S):
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(line, _LENGTH.pack(len(answer.body)))
                await loop.sock_sendall(line, answer.body)

    async def _read(self, line: socket.socket, more: Callable[[int], bool]) -> bytes:
        (length,) = _LENGTH.unpack(await self._exactly(line, _LENGTH.size))
        # BARRIER: what a guest sends is held in the host's memory; held by tests/host/test_calls.py.
        if length > MAX_CALL_BYTES:
            raise InvalidRequest(f"a call has at most {MAX_CALL_BYTES} bytes, not {length}; pass large data by a file")
        if not more(length):
            raise QuotaExceeded("too much is on its way out of this sandbox at once; make fewer large calls at a time")
        return await self._exactly(line, length)

    async def _exactly(self, line: socket.socket, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        told = bytearray()
        while len(told) < size:
            piece = await loop.sock_recv(line, min(size - len(told), _PIECE_BYTES))
            if not piece:
                raise EOFError
            told += piece
            # BARRIER: a call that comes byte by byte wakes the host for each; held by tests/helpers/test_attacks.py.
            await self._pace.take(_A_PIECE + len(piece) * _A_BYTE)
        return bytes(told)

    async def _ask(self, call: Call, line: socket.socket) -> CallAnswer | None:
        """The answer; None if the caller has left."""
        asking = asyncio.ensure_future(self._desk.ask(call))
        leaving = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(line, 1))
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return None
            answer = await asking
            self._tally.add(call.caller.cell, answer)
            return answer
        except HostUnavailable:
            self._tally.add(call.caller.cell, CallAnswer(body=b"", failed=True))
            raise
        finally:
            for task in (asking, leaving):
                task.cancel()
            await asyncio.gather(asking, leaving, return_exceptions=True)


def refusal(problem: WorkbenchError) -> CallAnswer:
    """What the caller reads of an error of ours."""
    code = "rate_limited" if isinstance(problem, QuotaExceeded) else problem.code
    words = {"result": None, "error": problem.message, "code": code}
    return CallAnswer(body=json.dumps(words).encode(), failed=True)


def _pid_of(line: socket.socket) -> int:
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[0])
