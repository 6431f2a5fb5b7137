"""Waiting for the end of a process by its descriptor, from the event loop."""

from __future__ import annotations

import asyncio
import os


async def exited(pidfd: int, *, within_s: float | None) -> bool:
    """Whether the process ended in that time; it is not reaped. None is for one that may run as long as it likes."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    # A descriptor of its own: the loop knows one reader a descriptor, and several may wait.
    watched = os.dup(pidfd)
    loop.add_reader(watched, lambda: None if over.done() else over.set_result(None))
    try:
        async with asyncio.timeout(within_s):
            await over
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(watched)
        os.close(watched)
    return True
