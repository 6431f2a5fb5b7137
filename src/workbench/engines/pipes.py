"""One process as its engine holds it: pipes that the host reads itself, and an end that its sandbox reports.

How it is started, signalled and found dead is left to the engines.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from workbench.contracts.engine import OutputChunk
from workbench.engines.limit_words import TAIL_BYTES, limits_named
from workbench.errors import Conflict, InvalidRequest
from workbench.model.process import ProcessExit, Stream

_CHUNK = 64 * 1024
# The most that an ordinary process can make a pipe hold: /proc/sys/fs/pipe-max-size, unless someone raised it.
_MOST_IN_A_PIPE = 1024 * 1024


class Pipes:
    """Three pipes; the far ends are closed here once the sandbox has them."""

    def __init__(self, *, stdin: bool) -> None:
        self.stdin: int | None = None
        self.far: list[int] = []
        self._open: dict[Stream, int] = {}
        self._pending: deque[OutputChunk] = deque()
        self._stderr_tail = b""
        self._read_by_someone = False
        self._wake: asyncio.Future[None] | None = None
        try:
            self.far.append(self._source(stdin))
            for stream in (Stream.STDOUT, Stream.STDERR):
                self._open[stream], far = os.pipe2(os.O_CLOEXEC)
                self.far.append(far)
                os.set_blocking(self._open[stream], False)
        except OSError:
            # Out of descriptors halfway: what was opened must not stay.
            self.close()
            raise

    def _source(self, stdin: bool) -> int:
        if not stdin:
            return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        source, self.stdin = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.stdin, False)
        return source

    def close_far(self) -> None:
        """After they were passed on, or were not."""
        while self.far:
            os.close(self.far.pop())

    def close(self) -> None:
        """Everything that is still ours; nobody may be reading. May be called twice."""
        self.close_far()
        self.close_stdin()
        self._close_output()

    def close_stdin(self) -> None:
        """May be called twice."""
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def _close_output(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    @property
    def is_open(self) -> bool:
        """Whether it still holds a descriptor."""
        return bool(self._open) or self.stdin is not None

    def stderr_tail(self) -> bytes:
        """The last TAIL_BYTES that were written to standard error, read by someone or not. For a process that ended."""
        self._take_in(Stream.STDERR)
        if self._pending and self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        return self._stderr_tail

    def keep_unread(self) -> None:
        """If nobody reads, take what is in the pipes into memory and close them; a reader is left to finish itself."""
        if not self._read_by_someone:
            for stream in Stream:
                self._take_in(stream)
            self._close_output()

    def _take_in(self, stream: Stream) -> None:
        """What the pipe holds now. Bounded, as somebody in the background may still be writing."""
        taken = 0
        while stream in self._open and taken < _MOST_IN_A_PIPE:
            data = _read(self._open[stream])
            if not data:
                return
            taken += len(data)
            self._pending.append(self._noted(stream, data))

    def _noted(self, stream: Stream, data: bytes) -> OutputChunk:
        if stream is Stream.STDERR:
            self._stderr_tail = (self._stderr_tail + data)[-TAIL_BYTES:]
        return OutputChunk(stream=stream, data=data)

    async def chunks(self) -> AsyncIterator[OutputChunk]:
        """Output as it comes, until both pipes are closed at the far end. Once.

        Raises:
            Conflict: someone reads already, or has.
        """
        if self._read_by_someone:
            raise Conflict("the output of this process is being read, or was")
        self._read_by_someone = True
        try:
            while self._open or self._pending:
                while self._pending:
                    yield self._pending.popleft()
                for stream, descriptor in list(self._open.items()):
                    data = _read(descriptor)
                    if data:
                        yield self._noted(stream, data)
                    elif data is not None:
                        os.close(self._open.pop(stream))
                # Others get their turn even if this process never stops writing.
                await asyncio.sleep(0)
                if self._open and not self._pending:
                    await self._something_to_read()
        finally:
            self._close_output()

    async def _something_to_read(self) -> None:
        loop = asyncio.get_running_loop()
        ready = self._wake = loop.create_future()
        descriptors = list(self._open.values())
        for descriptor in descriptors:
            loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            self._wake = None
            for descriptor in descriptors:
                loop.remove_reader(descriptor)


def _read(descriptor: int) -> bytes | None:
    """What is there; None for nothing yet, empty for never again."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


class PipedProcess:
    """Made by its sandbox, which also calls `ended`."""

    def __init__(self, pipes: Pipes, send_signal: Callable[[int], Awaitable[None]]) -> None:
        self.pipes = pipes
        self._send_signal = send_signal
        self._exit: asyncio.Future[ProcessExit] = asyncio.get_running_loop().create_future()
        self._writing = asyncio.Lock()

    def ended(self, how: ProcessExit) -> None:
        """Told once, by the sandbox; again is ignored. A failed process names the limits its last words speak of."""
        if self._exit.done():
            return
        if how.code != 0 and not how.lost:
            named = limits_named(self.pipes.stderr_tail())
            how = dataclasses.replace(how, limits=tuple(dict.fromkeys((*how.limits, *named))))
        self._exit.set_result(how)
        # A descriptor that someone waits on is closed by who waits, or its number could already mean another file.
        if not self._writing.locked():
            self.pipes.close_stdin()

    def output(self) -> AsyncIterator[OutputChunk]:
        """As the contract says."""
        return self.pipes.chunks()

    async def wait(self) -> ProcessExit:
        """As the contract says."""
        return await asyncio.shield(self._exit)

    async def write_stdin(self, data: bytes) -> None:
        """As the contract says."""
        async with self._writing:
            try:
                await self._write(memoryview(data))
            finally:
                if self._exit.done():
                    self.pipes.close_stdin()

    async def _write(self, left: memoryview) -> None:
        while True:
            descriptor = self.pipes.stdin
            if descriptor is None or self._exit.done():
                raise Conflict("the process takes no input: it was started without stdin, closed it, or has ended")
            if not left:
                return
            try:
                left = left[os.write(descriptor, left[:_CHUNK]) :]
            except BlockingIOError:
                await self._until_writable_or_over(descriptor)
            except BrokenPipeError as problem:
                raise Conflict("the process has closed its input") from problem

    async def _until_writable_or_over(self, descriptor: int) -> None:
        writable = asyncio.ensure_future(_writable(descriptor))
        either: list[asyncio.Future[Any]] = [writable, self._exit]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            writable.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writable

    async def close_stdin(self) -> None:
        """As the contract says."""
        async with self._writing:
            self.pipes.close_stdin()

    async def signal(self, number: int) -> None:
        """As the contract says."""
        if number not in signal.valid_signals():
            raise InvalidRequest(f"not a signal: {number}; use 1 to {signal.NSIG - 1}")
        if not self._exit.done():
            await self._send_signal(number)
