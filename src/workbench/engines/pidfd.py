"""Waiting for the end of a process by its descriptor."""

from __future__ import annotations

import asyncio
import os
import select


def has_exited(pidfd: int, *, within_s: float = 0.0) -> bool:
    """The same for who may stand still so long."""
    # Not select(), which takes no descriptor above 1023: a host with a hundred sandboxes has many.
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    return bool(ended.poll(within_s * 1000))


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
