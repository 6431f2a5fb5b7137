"""Interrupts of what a kernel runs: decided in one step, sent until it is over, and never meant for what follows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from workbench.contracts.kernel import Kernel
from workbench.host.cells.cell_run import Ladder, send_interrupts

Own = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]


class Interrupts:
    """Of one kernel; `own` keeps the work when who asked for it goes away."""

    def __init__(self, own: Own, ladder: Ladder) -> None:
        self._own = own
        self._ladder = ladder
        self._sending: dict[asyncio.Event, asyncio.Task[None]] = {}

    async def send(self, kernel: Kernel, over: asyncio.Event) -> None:
        """Until it is over, up to a few times. Those who ask meanwhile wait for the same."""
        sending = self._sending.get(over)
        if sending is None:
            sending = self._sending[over] = self._own(self._send(kernel, over), "interrupt")
            sending.add_done_callback(lambda _: self._sending.pop(over, None))
        await asyncio.shield(sending)

    async def _send(self, kernel: Kernel, over: asyncio.Event) -> None:
        await send_interrupts(kernel, over, self._ladder)

    async def arrived(self) -> None:
        """Before the next one begins: what is still on its way to the one before it must not hit the next."""
        on_their_way = [task for over, task in self._sending.items() if over.is_set()]
        if on_their_way:
            await asyncio.wait(on_their_way, timeout=self._ladder.pause_s)
