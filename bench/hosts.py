"""Hosts of a bench's own, what is asked of them, and the machine's memory while they work."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from bench.table import p50
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.settings import Settings
from workbench.wire import host as wire

# Several times what a kernel of Node needs on a quiet machine.
_STARTING_S = 0.5


@asynccontextmanager
async def host(settings: Settings, pool_size: int = 4, folder: Path | None = None) -> AsyncIterator[HostConnection]:
    """A host process of its own, in a folder of its own; whoever gives one may put files of mounts there before."""
    folder = folder or Path(tempfile.mkdtemp(prefix="wb-bench-"))
    mine = replace(settings, data_dir=folder, pool_size=pool_size)
    connection = await connect_or_start(mine, os.environ)
    try:
        yield connection
    finally:
        await connection.ask(wire.Stop(), wire.Done)
        await connection.aclose()
        await until(lambda: not any((folder / "hosts").iterdir()))
        shutil.rmtree(folder)


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for it, within bounds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(0.02)


async def close(connection: HostConnection, sandbox: str) -> None:
    """End it."""
    await connection.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)


async def until_pooled(connection: HostConnection, settle_s: float = 0.05) -> None:
    """Wait until the pool is full, and then a little: what filled it is still tidying up."""
    for _ in range(500):
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        if status.pooled >= 2:
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(settle_s)


async def until_ahead(connection: HostConnection, count: int) -> None:
    """Wait until so many kernels wait, started; what they do to be up cannot be seen from here, so give it its time."""
    for _ in range(500):
        if (await connection.ask(wire.Status(), wire.StatusAnswer)).ahead >= count:
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(_STARTING_S)


def available_kib() -> int:
    """MemAvailable."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise AssertionError("no MemAvailable")


async def slope_mib(make_one: Callable[[], Awaitable[None]], count: int) -> float:
    """What one more of them costs, by the slope of MemAvailable while `count` are made."""
    points: list[tuple[int, float]] = []
    step = max(1, count // 10)
    for index in range(count + 1):
        if index % step == 0:
            await asyncio.sleep(0.5)
            points.append((index, available_kib() / 1024))
        await make_one()
    return _middle_slope(points)


def _middle_slope(points: Sequence[tuple[int, float]]) -> float:
    """The median of all pairs: another program that starts or ends in between moves one step, and not the line."""
    return p50([(y1 - y2) / (x2 - x1) for (x1, y1), (x2, y2) in itertools.combinations(points, 2)])


async def middle_of_three(measure: Callable[[], Awaitable[float]]) -> float:
    """MemAvailable is the whole machine's: a slope that cannot be is measured again."""
    slopes: list[float] = []
    for _ in range(9):
        if (slope := await measure()) > 0:
            slopes.append(slope)
        if len(slopes) == 3:
            return p50(slopes)
    raise AssertionError("the machine is too busy to measure memory on")
