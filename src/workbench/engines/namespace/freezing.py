"""A slot that stands still and goes on again; who needs it comes before who wants it to stand still."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from workbench.engines.namespace.slot import Slot

# Everything stands still within milliseconds; what does not is deep in the system, and may be for long.
_FREEZE_S, _FREEZE_PAUSE_S = 1.0, 0.002


class Freezing:
    """Of one sandbox. `is_changing` tells whether something is being started or changed inside."""

    def __init__(self, slot: Slot, is_changing: Callable[[], bool]) -> None:
        self._slot = slot
        self._is_changing = is_changing
        self._lock = asyncio.Lock()
        self._frozen = False
        self._needed = 0
        """how many wait for it to be thawed"""

    @property
    def frozen(self) -> bool:
        """Nothing inside runs."""
        return self._frozen and not self._slot.killed

    async def freeze(self) -> bool:
        """Whether it is frozen now; if not, everything runs as before."""
        async with self._lock:
            if self._frozen:
                return self.frozen
            if self._needed or self._is_changing():
                return False
            try:
                self._frozen = await self._stands_still()
            finally:
                if not self._frozen:
                    self._let_go()
            return self.frozen

    async def _stands_still(self) -> bool:
        deadline = time.monotonic() + _FREEZE_S
        with contextlib.suppress(OSError):
            while not self._slot.freeze():
                if self._needed or self._slot.killed or time.monotonic() > deadline:
                    return False
                await asyncio.sleep(_FREEZE_PAUSE_S)
            return True
        return False

    async def thaw(self) -> None:
        """Let it go on; who freezes it just now gives up. Returns without a pause in which it could be frozen again."""
        self._needed += 1
        try:
            async with self._lock:
                if self._frozen:
                    self._let_go()
        finally:
            self._needed -= 1

    def _let_go(self) -> None:
        self._frozen = False
        # A group that is gone has nobody left to thaw.
        with contextlib.suppress(FileNotFoundError):
            self._slot.group.thaw()

    def again(self) -> None:
        """For the watchdog: what is frozen and woke itself is stopped again."""
        if self.frozen:
            self._slot.freeze()
