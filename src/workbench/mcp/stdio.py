"""The protocol on standard input and output, of which nothing else is written or read meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from workbench.descriptor_writer import DescriptorWriter
from workbench.errors import InvalidRequest

_CHUNK = 1 << 16
# Chunks that were read and not yet looked at: a client that writes faster than we answer waits.
_CHUNKS_AHEAD = 16
# A message carries code, or a file; nobody sends as much at once by intention.
_MOST_OF_A_MESSAGE = 64 << 20


async def serve_stdio(server: Server[Any]) -> None:
    """Answer one client until it closes either side, or the task is cancelled; then its calls are called off.

    Raises:
        InvalidRequest: a message that is larger than any may be.
    """
    with _claimed() as (source, sink):
        lines, wire = _Lines(source), _Wire(sink)
        try:
            # The library's own files are read by threads that nobody can cancel: a signal would not end us.
            async with stdio_server(cast("Any", lines), cast("Any", wire)) as (read, write):
                await server.run(read, write, server.create_initialization_options())
        except BaseExceptionGroup as several:
            # Its tasks do not end in any order: one may still hand over what another no longer takes.
            if (rest := several.split((BrokenPipeError, anyio.BrokenResourceError))[1]) is not None:
                raise _first(rest) from rest


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    one = several.exceptions[0]
    return _first(one) if isinstance(one, BaseExceptionGroup) else one


@contextlib.contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """Descriptors of the client. Whoever else reads standard input finds its end; whoever else prints, prints to
    standard error.
    """
    source = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    sink = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield source, sink
    finally:
        os.dup2(source, 0)
        os.dup2(sink, 1)
        # Not closed: a thread may still wait at either, and the number must not become another file's.


class _Lines:
    """Lines of a descriptor. Read by a daemon thread, so that one who says nothing keeps us from nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(_CHUNKS_AHEAD)

    def __aiter__(self) -> AsyncIterator[str]:
        return self._lines()

    async def _lines(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), daemon=True, name="reader of the client").start()
        begun = bytearray()
        while chunk := await self._chunks.get():
            first, *more = chunk.split(b"\n")
            begun += first
            for next_one in more:
                if line := begun.decode("utf-8", "replace").strip():
                    yield line
                begun = bytearray(next_one)
            if len(begun) > _MOST_OF_A_MESSAGE:
                raise InvalidRequest(f"the client sent a message of more than {_MOST_OF_A_MESSAGE >> 20} MiB")

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        chunk = b"..."
        while chunk:
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                select.select([self._descriptor], [], [])
                continue
            except OSError:
                # A terminal that was hung up.
                chunk = b""
            putting = self._chunks.put(chunk)
            try:
                asyncio.run_coroutine_threadsafe(putting, loop).result()
            except (RuntimeError, asyncio.CancelledError):
                # The loop has ended before the client.
                putting.close()
                return


class _Wire:
    """What the protocol's library writes its lines to."""

    def __init__(self, descriptor: int) -> None:
        self._writer = DescriptorWriter(descriptor)

    async def write(self, text: str) -> None:
        """Return when it is written."""
        await self._writer.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        """Nothing is held back."""
