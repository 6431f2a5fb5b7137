"""What a call cost: the sandbox measured before and after it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from workbench.contracts.engine import OverQuota, Sandbox, Usage
from workbench.errors import SandboxUnavailable, WorkbenchError

# Reading a few numbers; a machine that needs longer has other sorrows than a receipt.
_MEASURE_S = 5.0
_NOTHING = Usage(memory_bytes=0, peak_memory_bytes=0, cpu_s=0.0, processes=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """For a receipt."""

    cpu_s: float
    wall_s: float
    peak_memory_bytes: int
    over_quota: OverQuota | None
    """what /mnt/files holds after it, if that is too much"""
    gone: str
    """why the sandbox has ended by now, if it has; maybe for what /mnt/files holds"""


class Meter:
    """Of one sandbox. Knows the last numbers, for when the sandbox is gone."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._last = _NOTHING

    async def start(self) -> Running:
        """From now on."""
        return Running(self, await self.read())

    async def read(self) -> Usage:
        """Now, or as it was when it could last be measured."""
        try:
            async with asyncio.timeout(_MEASURE_S):
                self._last = await self._sandbox.usage()
        except (WorkbenchError, TimeoutError):
            pass
        return self._last

    async def over_quota(self) -> tuple[OverQuota | None, str]:
        """Now, as far as it is known; and why the sandbox is gone, if it is."""
        try:
            async with asyncio.timeout(_MEASURE_S):
                return await self._sandbox.over_quota(), ""
        except SandboxUnavailable as problem:
            return None, problem.context.get("gone", "")
        except (WorkbenchError, TimeoutError):
            return None, ""


class Running:
    """A call that is being measured."""

    def __init__(self, meter: Meter, before: Usage) -> None:
        self._meter = meter
        self._before = before
        self._since = time.monotonic()

    async def stop(self) -> Cost:
        """Until now."""
        wall_s = time.monotonic() - self._since
        after = await self._meter.read()
        over, gone = await self._meter.over_quota()
        return Cost(
            cpu_s=max(0.0, after.cpu_s - self._before.cpu_s),
            wall_s=wall_s,
            peak_memory_bytes=max(after.peak_memory_bytes, self._before.peak_memory_bytes),
            over_quota=over,
            gone=gone,
        )
