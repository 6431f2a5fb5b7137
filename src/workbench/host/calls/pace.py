"""How fast one sandbox may go on: who is ahead of it waits, and nobody else does."""

from __future__ import annotations

import asyncio


class Pace:
    """So much in a second on average, and `at_once` without waiting after a rest."""

    def __init__(self, *, a_second: float, at_once: float) -> None:
        self._a_second = a_second
        self._ahead_s = at_once / a_second
        self._paid_until = 0.0

    async def take(self, amount: float) -> None:
        """In the order in which it is asked for. Who gives up waiting has taken it all the same."""
        now = asyncio.get_running_loop().time()
        self._paid_until = max(self._paid_until, now) + amount / self._a_second
        wait_s = self._paid_until - now - self._ahead_s
        if wait_s > 0:
            await asyncio.sleep(wait_s)
