"""Zygotes that have imported more than the image's preload, for sandboxes that will need it.

Each is grown from the plain zygote when it is first asked for, shares that one's memory, and ends when nobody has asked
for a while. Whoever does not ask for one never waits for it; whoever does is served by the plain one if there is none.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.engines.namespace.zygote import Zygote
from workbench.errors import SandboxUnavailable
from workbench.model.image import Image, WarmSet

# For a person who comes back after a pause; after that its memory is worth more to others.
WARM_IDLE_S = 900.0
# What could not be imported once is not tried again for this long: those who ask meanwhile do not wait for it in vain.
_AFTER_A_FAILURE_S = 60.0
# A grown zygote takes some 200 MB; where that is much, sandboxes need it more.
LEAST_FREE_BYTES = 768 * 2**20
# As long as an import takes on a busy machine; who has waited this long is served by the plain one.
_MOST_WAIT_S = 45.0
_MEMORY = Path("/proc/meminfo")

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Grown:
    zygote: Zygote
    used: float


class WarmZygotes:
    """Those of one engine, by the name of their warm set."""

    def __init__(
        self,
        plain: Callable[[], Awaitable[Zygote]],
        *,
        idle_s: float = WARM_IDLE_S,
        free_bytes: Callable[[], int] | None = None,
    ) -> None:
        """`plain` gives the zygote that serves now."""
        self._plain = plain
        self._idle_s = idle_s
        self._free_bytes = free_bytes or available_bytes
        self._grown: dict[str, _Grown] = {}
        self._growing: dict[str, asyncio.Task[Zygote | None]] = {}
        self._not_before = 0.0

    @property
    def pids(self) -> dict[str, int]:
        """Of those that live, by name."""
        return {name: one.zygote.pid for name, one in self._grown.items() if one.zygote.check()}

    async def get(self, name: str) -> Zygote | None:
        """The one that has imported the warm set of this name; None if the plain one has to serve."""
        plain = await self._plain()
        warm = plain.image.warm_set(name)
        if warm is None or not _has_arrived(plain.image):
            return None
        found = self._grown.get(name)
        if found is not None and found.zygote.check() and found.zygote.grown_from is plain:
            found.used = time.monotonic()
            return found.zygote
        growing = self._growing.get(name)
        if growing is None:
            if time.monotonic() < self._not_before or self._free_bytes() < LEAST_FREE_BYTES:
                return None
            growing = asyncio.create_task(self._grow(plain, warm), name=f"grow a zygote with {name}")
            self._growing[name] = growing
            growing.add_done_callback(lambda _: self._growing.pop(name, None))
        # Not cancelled with whoever waits: the next one has it.
        done, _ = await asyncio.wait([growing], timeout=_MOST_WAIT_S)
        return growing.result() if done and not growing.cancelled() else None

    async def _grow(self, plain: Zygote, warm: WarmSet) -> Zygote | None:
        try:
            zygote = await plain.grow(warm.modules)
        except SandboxUnavailable as problem:
            self._not_before = time.monotonic() + _AFTER_A_FAILURE_S
            _log.warning("no zygote could be made that has %s imported: %s", warm.name, problem.message)
            return None
        before = self._grown.get(warm.name)
        self._grown[warm.name] = _Grown(zygote, time.monotonic())
        if before is not None:
            before.zygote.end()
        return zygote

    def retire(self, plain: Zygote, is_old: Callable[[Zygote], bool]) -> None:
        """End those that nobody has asked for, or that are as old as one may be. What they made lives on."""
        for name, one in list(self._grown.items()):
            unused = time.monotonic() - one.used > self._idle_s
            if unused or one.zygote.grown_from is not plain or is_old(one.zygote) or not one.zygote.check():
                del self._grown[name]
                one.zygote.end()

    async def aclose(self) -> None:
        """End all. Nobody may ask any more."""
        for growing in list(self._growing.values()):
            growing.cancel()
            await asyncio.wait([growing])
        for one in self._grown.values():
            one.zygote.end()
        self._grown.clear()


def _has_arrived(image: Image) -> bool:
    return not image.late or os.path.exists(image.late)


def available_bytes() -> int:
    """What the machine could still give."""
    for line in _MEMORY.read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return LEAST_FREE_BYTES
