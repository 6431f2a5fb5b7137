"""Many sessions that wait, each with its snapshot: the memory they take, and whether each is still itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from bench.hosts import available_kib, host
from bench.kept import Kept
from bench.kernel import TRIVIAL, held_kib
from bench.table import Row
from workbench.host_client.connection import HostConnection
from workbench.settings import Settings
from workbench.wire import host as wire

MANY = 200
# Of the many, one in so many is killed: a kill of each would take longer than everything else.
_KILLED_OF = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Many sessions that wait, each after one cell and with its snapshot."""

    each_mib: float
    """what one more adds"""
    all_mib: float
    """with the host and what they share"""
    machine_mib: float
    """by what MemAvailable fell"""
    wrong: int
    """that had no snapshot, or did not answer with their own state afterwards"""


async def idle(settings: Settings, count: int) -> Idle:
    """Of all pages that the host, its zygote and its sandboxes hold, each counted once; as in the bench of kernels."""
    async with host(settings, pool_size=0) as connection:
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        for _ in range(5):
            await (await _idle(connection, 0)).close()
        before, available = held_kib(status.pid), available_kib()
        sessions = await _few_at_a_time(_idle(connection, number) for number in range(count))
        after, left = held_kib(status.pid), available_kib()
        right = await _few_at_a_time(_is_itself(session, number) for number, session in enumerate(sessions))
        await asyncio.gather(*(session.close() for session in sessions))
    return Idle(
        each_mib=(after - before) / 1024 / count,
        all_mib=after / 1024,
        machine_mib=(available - left) / 1024,
        wrong=right.count(False),
    )


async def full_mib(settings: Settings, count: int) -> float:
    """What an idle session adds that has as many snapshots as are ever kept."""
    async with host(settings, pool_size=0) as connection:
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        await (await _idle(connection, 0)).close()
        before = held_kib(status.pid)
        sessions = [await _idle(connection, number) for number in range(count)]
        for session in sessions:
            for _ in range(4):
                await session.run(TRIVIAL)
                await session.kept()
        slope = (held_kib(status.pid) - before) / 1024 / count
        await asyncio.gather(*(session.close() for session in sessions))
    return slope


async def _few_at_a_time(work: Iterable[Awaitable[T]]) -> list[T]:
    """As many as there are CPUs here: more would only wait for each other."""
    free = asyncio.Semaphore(os.cpu_count() or 1)

    async def one(what: Awaitable[T]) -> T:
        async with free:
            return await what

    return await asyncio.gather(*(one(what) for what in work))


async def _idle(connection: HostConnection, number: int) -> Kept:
    session = await Kept.begin(connection)
    await session.until_kept(f"mine = {number}\n1 + 1")
    return session


async def _is_itself(session: Kept, number: int) -> bool:
    """Whether it has a snapshot, and its own state; of some, also after their kernels have been killed."""
    if not (await session.kept()).current or await session.value("mine") != str(number):
        return False
    if number % _KILLED_OF == 0:
        await session.ended("import os; os._exit(1)")
    return await session.value("mine") == str(number)


def idle_rows(seen: Idle, full: float, count: int) -> list[Row]:
    """For the table."""
    gib = (seen.all_mib + seen.each_mib * (MANY - count)) / 1024
    of_fewer = f"reckoned from {count}; " if count < MANY else ""
    return [
        Row(
            what=f"memory of an idle session with its snapshot (slope over {count})",
            seen=f"{seen.each_mib:.1f} MB", must="25 MB", aim="19 MB",
            passed=seen.each_mib <= 25, aimed=seen.each_mib <= 19, fatal=True,
            notes="pages of the host, the zygote and all sandboxes, each counted once, and page tables; after "
                  f"more cells, with all snapshots that are kept for undo, {full:.1f} MB",
        ),
        Row(
            what=f"{MANY} idle sessions, with snapshots: all of their memory",
            seen=f"{gib:.2f} GB; {count - seen.wrong} of {count} answer with their own state, one in {_KILLED_OF} "
                 "after a kill as well",
            must="5 GB", aim="3.5 GB",
            passed=gib <= 5 and not seen.wrong, aimed=gib <= 3.5 and not seen.wrong, fatal=True,
            notes=f"{of_fewer}with the host and the zygote; MemAvailable fell by {seen.machine_mib / 1024:.2f} GB "
                  f"while {count} were made",
        ),
    ]  # fmt: skip
