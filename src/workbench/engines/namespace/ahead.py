"""Slots in which a runtime's kernel has been started before anybody has them: one for each that was asked for lately.

Whoever does not ask for one never waits for it; whoever does is served by the plain pool if there is none.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from workbench.contracts.engine import Ahead, HeadStart
from workbench.engines.namespace.channel import ChannelClosed
from workbench.engines.namespace.slot import Slot
from workbench.engines.namespace.warm import LEAST_FREE_BYTES, WARM_IDLE_S, available_bytes
from workbench.engines.namespace.zygote import Zygote
from workbench.errors import IsolationTooWeak, SandboxUnavailable
from workbench_guest.messages import Prepare

# Whoever has just taken one is about to use it, and a program that starts takes a processor for that long.
_DELAY_S = 0.25
# What ends while it waits may do so each time.
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.5, 60.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Wanted:
    used: float
    slot: Slot | None = None
    not_before: float = 0.0
    pause_s: float = _FIRST_PAUSE_S


class AheadSlots:
    """Those of one engine. `prepare` makes a slot, `env` says what every process of one has before it is claimed."""

    def __init__(
        self,
        prepare: Callable[[], Awaitable[Slot]],
        env: Callable[[Slot, HeadStart], dict[str, str]],
        *,
        idle_s: float = WARM_IDLE_S,
        free_bytes: Callable[[], int] = available_bytes,
    ) -> None:
        self._prepare = prepare
        self._env = env
        self._idle_s = idle_s
        self._free_bytes = free_bytes
        self._wanted: dict[Ahead, _Wanted] = {}
        self._filling: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the first process of each."""
        return tuple(one.slot.pid for one in self._wanted.values() if one.slot is not None)

    async def get(self, ahead: Ahead | None) -> Slot | None:
        """The one that waits, if it can still be used; another one will be made."""
        if ahead is None:
            return None
        wanted = self._wanted.setdefault(ahead, _Wanted(0.0))
        wanted.used = time.monotonic()
        slot, wanted.slot = wanted.slot, None
        if slot is None or _is_well(slot):
            return slot
        await slot.end()
        return None

    def fill_soon(self) -> None:
        """In the background: one for each that has none."""
        busy = self._filling is not None and not self._filling.done()
        if self._closed or busy or not any(_lacks(one) for one in self._wanted.values()):
            return
        self._filling = asyncio.create_task(self._fill(), name="start what may be wanted ahead")

    async def _fill(self) -> None:
        await asyncio.sleep(_DELAY_S)
        for ahead, wanted in list(self._wanted.items()):
            if self._closed or not _lacks(wanted) or self._free_bytes() < LEAST_FREE_BYTES:
                continue
            try:
                slot = await self._begin(ahead)
            except (SandboxUnavailable, IsolationTooWeak, ChannelClosed, OSError) as problem:
                _log.warning("nothing could be started ahead: %s", problem)
                _put_off(wanted)
                continue
            if self._closed or self._wanted.get(ahead) is not wanted:
                await slot.end()
            else:
                wanted.slot = slot

    async def _begin(self, ahead: Ahead) -> Slot:
        slot = await self._prepare()
        try:
            begun = slot.head_start = ahead.begin()
            told = os.memfd_create("payload", os.MFD_CLOEXEC)
            try:
                os.write(told, begun.payload)
                os.lseek(told, 0, os.SEEK_SET)
                order = Prepare(entry=begun.entry, env=self._env(slot, begun))
                await slot.channel.send(order, (told, *begun.passed))
            finally:
                os.close(told)
        except BaseException:
            await asyncio.shield(slot.end())
            raise
        return slot

    async def retire(self, current: Zygote) -> None:
        """End what is not wanted any more, or cannot be used; what is still wanted is made again."""
        short = self._free_bytes() < LEAST_FREE_BYTES
        for ahead, wanted in list(self._wanted.items()):
            unused = time.monotonic() - wanted.used > self._idle_s
            if unused:
                del self._wanted[ahead]
            slot = wanted.slot
            if slot is None:
                continue
            if not _is_well(slot):
                _put_off(wanted)
            elif not (unused or short or slot.zygote is not current):
                continue
            wanted.slot = None
            await slot.end()
        self.fill_soon()

    async def aclose(self) -> None:
        """End all. Nobody may ask any more."""
        self._closed = True
        if self._filling is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait([self._filling])
        for wanted in self._wanted.values():
            if wanted.slot is not None:
                await wanted.slot.end()
        self._wanted.clear()


def _is_well(slot: Slot) -> bool:
    """A slot that nobody has says one thing: that what was begun in it has ended."""
    return slot.usable and not slot.channel.has_said


def _lacks(wanted: _Wanted) -> bool:
    return wanted.slot is None and time.monotonic() >= wanted.not_before


def _put_off(wanted: _Wanted) -> None:
    wanted.not_before = time.monotonic() + wanted.pause_s
    wanted.pause_s = min(wanted.pause_s * 2, _MOST_PAUSE_S)
