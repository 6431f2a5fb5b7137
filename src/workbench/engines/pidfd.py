"""Waiting for the end of a process by its descriptor, from the event loop."""

from __future__ import annotations

import asyncio
import os


async def exited(pidfd: int) -> None:
    """Return when the process has ended; it is not reaped."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    # A descriptor of its own: the loop knows one reader a descriptor, and several may wait.
    watched = os.dup(pidfd)
    loop.add_reader(watched, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        loop.remove_reader(watched)
        os.close(watched)
