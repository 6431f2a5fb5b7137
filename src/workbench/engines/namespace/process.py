"""One process in a sandbox: its pipes, which the host reads itself, and its end, which pid 1 reports."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable

from workbench.contracts.engine import OutputChunk
from workbench.errors import Conflict
from workbench.model.process import ProcessExit, Stream

_CHUNK = 64 * 1024


class Pipes:
    """Three pipes; the far ends are closed here once the sandbox has them."""

    def __init__(self, *, stdin: bool) -> None:
        self._stdout, out = os.pipe2(os.O_CLOEXEC)
        self._stderr, err = os.pipe2(os.O_CLOEXEC)
        self.stdin: int | None = None
        if stdin:
            source, self.stdin = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self.stdin, False)
        else:
            source = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        self.far = [source, out, err]
        self._open = {Stream.STDOUT: self._stdout, Stream.STDERR: self._stderr}
        for descriptor in self._open.values():
            os.set_blocking(descriptor, False)

    def close_far(self) -> None:
        """After they were passed on, or were not."""
        while self.far:
            os.close(self.far.pop())

    def close(self) -> None:
        """Everything that is still ours. May be called twice."""
        self.close_far()
        self.close_stdin()
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def close_stdin(self) -> None:
        """May be called twice."""
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    async def chunks(self) -> AsyncIterator[OutputChunk]:
        """Output as it comes, until both pipes are closed at the far end."""
        while self._open:
            for stream, descriptor in list(self._open.items()):
                try:
                    data = os.read(descriptor, _CHUNK)
                except BlockingIOError:
                    continue
                if data:
                    yield OutputChunk(stream=stream, data=data)
                elif self._open.pop(stream, None) is not None:
                    os.close(descriptor)
            if self._open:
                await _any_readable(list(self._open.values()))


async def _any_readable(descriptors: list[int]) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    for descriptor in descriptors:
        loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


class NamespaceProcess:
    """Made by its sandbox, which also settles `exit`."""

    def __init__(self, pipes: Pipes, send_signal: Callable[[int], Awaitable[None]]) -> None:
        self._pipes = pipes
        self._send_signal = send_signal
        self.exit: asyncio.Future[ProcessExit] = asyncio.get_running_loop().create_future()
        self._writing = asyncio.Lock()

    async def output(self) -> AsyncIterator[OutputChunk]:
        """As the contract says."""
        try:
            async for chunk in self._pipes.chunks():
                yield chunk
        finally:
            self._pipes.close()

    async def wait(self) -> ProcessExit:
        """As the contract says."""
        return await asyncio.shield(self.exit)

    async def write_stdin(self, data: bytes) -> None:
        """As the contract says."""
        async with self._writing:
            view = memoryview(data)
            while view:
                if self._pipes.stdin is None or self.exit.done():
                    raise Conflict("the process takes no input: it was started without stdin, closed it, or has ended")
                try:
                    view = view[os.write(self._pipes.stdin, view[:_CHUNK]) :]
                except BlockingIOError:
                    await self._until_writable_or_over(self._pipes.stdin)
                except BrokenPipeError as problem:
                    raise Conflict("the process has closed its input") from problem

    async def _until_writable_or_over(self, descriptor: int) -> None:
        writable = asyncio.ensure_future(_writable(descriptor))
        try:
            await asyncio.wait([writable, self.exit], return_when=asyncio.FIRST_COMPLETED)
        finally:
            writable.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writable

    async def close_stdin(self) -> None:
        """As the contract says."""
        async with self._writing:
            self._pipes.close_stdin()

    async def signal(self, number: int) -> None:
        """As the contract says."""
        if not self.exit.done():
            await self._send_signal(number)
