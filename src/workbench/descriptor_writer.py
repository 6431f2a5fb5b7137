"""Writing to a descriptor whose reader may be slow, or stand still, without waiting for it anywhere else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import select
import threading


class DescriptorWriter:
    """One descriptor, written to by a thread of its own.

    A daemon, and without Python's buffers: a reader that stands still must keep neither Ctrl-C, nor a time limit, nor
    our own end from working.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._orders: queue.SimpleQueue[tuple[bytes, asyncio.AbstractEventLoop, asyncio.Future[None]]] = (
            queue.SimpleQueue()
        )
        self._thread: threading.Thread | None = None

    async def write(self, data: bytes) -> None:
        """Return when it is written.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True, name=f"writer of {self._descriptor}")
            self._thread.start()
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._orders.put((data, loop, written))
        await written

    def _serve(self) -> None:
        while True:
            data, loop, written = self._orders.get()
            problem: OSError | None = None
            try:
                _write_all(self._descriptor, data)
            except OSError as failed:
                problem = failed
            # Nobody may wait any more, and the loop may be closed.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell, written, problem)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            # Someone who shares the terminal has made it non-blocking.
            waiting = select.poll()
            waiting.register(descriptor, select.POLLOUT)
            waiting.poll()


def _tell(written: asyncio.Future[None], problem: OSError | None) -> None:
    if written.done():
        return
    if problem is None:
        written.set_result(None)
    else:
        written.set_exception(problem)
