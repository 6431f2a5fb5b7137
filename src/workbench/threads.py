"""Work on a thread that is waited for in any case: nothing is taken away under it, and nothing it made is lost."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")

# None for those that all share.
_threads: contextvars.ContextVar[Executor | None] = contextvars.ContextVar("threads", default=None)


@contextlib.contextmanager
def apart(threads: Executor) -> Iterator[None]:
    """What is begun within goes to these threads: work that may be slow for a client's sake keeps nobody else's from
    those that all share.
    """
    before = _threads.set(threads)
    try:
        yield
    finally:
        _threads.reset(before)


async def to_its_end(
    work: Callable[..., T],
    *arguments: object,
    undo: Callable[[T], None] | None = None,
    leave: Callable[[], None] | None = None,
) -> T:
    """What the work gives. A thread cannot be cancelled: who is waits for its end, and what it gave is undone then.

    A descriptor that is closed while a thread still writes to it may be another file by the next write. `leave` asks
    work that may take for ever to end soon.
    """
    job = functools.partial(contextvars.copy_context().run, work, *arguments)
    running = asyncio.get_running_loop().run_in_executor(_threads.get(), job)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if leave is not None:
            leave()
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                # Once more, by somebody with less patience; the thread has no less to do.
                continue
        if not running.cancelled() and running.exception() is None and undo is not None:
            undo(running.result())
        raise
