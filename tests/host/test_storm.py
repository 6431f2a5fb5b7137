"""Sandboxes made and killed at random moments, hosts killed with -9 among them: nothing may be left."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from dataclasses import replace

import pytest
from tests.host.support import alive, assert_nothing_left, descendants, run_code, stop

from workbench.errors import HostUnavailable, NotFound, SandboxUnavailable
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.model.ids import new_sandbox_id
from workbench.settings import Settings
from workbench.wire import host as wire

_LANES = 8


async def test_a_short_storm_leaves_nothing(settings: Settings) -> None:
    await storm(settings, sandboxes=60, host_kills=2)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_thousand_sandboxes_and_ten_host_kills_leave_nothing(settings: Settings) -> None:
    await storm(settings, sandboxes=1000, host_kills=10)


async def storm(settings: Settings, *, sandboxes: int, host_kills: int) -> None:
    dice = random.Random(os.urandom(8))
    each = sandboxes // (host_kills + 1) + 1
    hosts: list[str] = []
    seen: set[int] = set()
    wrong: list[str] = []
    made = 0
    for round_ in range(host_kills + 1):
        connection = await connect_or_start(replace(settings, pool_size=dice.choice((0, 2))), os.environ)
        async with connection as host:
            hosts.append(host.greeting.host)
            pid = (await host.ask(wire.Status(), wire.StatusAnswer)).pid
            watch = asyncio.create_task(_collect(pid, seen))
            lanes = [asyncio.create_task(_lane(host, each // _LANES + 1, dice, wrong)) for _ in range(_LANES)]
            if round_ < host_kills:
                # In the middle of everything: some lanes are creating, some running, some closing.
                while (await _count(lanes)) < each // 2:
                    await asyncio.sleep(0.005)
                os.kill(pid, signal.SIGKILL)
            made += sum(await asyncio.gather(*lanes))
            if round_ == host_kills:
                await stop(host)
            watch.cancel()
            await asyncio.wait([watch])
    assert not wrong, wrong
    assert_nothing_left(settings, hosts, sorted(seen))
    print(f"{made} sandboxes, {len(hosts)} hosts, {len(seen)} processes seen")


async def _count(lanes: list[asyncio.Task[int]]) -> int:
    return sum(_progress.get(lane, 0) for lane in lanes)


_progress: dict[asyncio.Task[int], int] = {}


async def _lane(host: HostConnection, times: int, dice: random.Random, wrong: list[str]) -> int:
    me = asyncio.current_task()
    assert me is not None
    for n in range(times):
        try:
            await _one_life(host, dice, wrong)
        except HostUnavailable:
            _progress[me] = times
            return n
        _progress[me] = n + 1
    return times


async def _one_life(host: HostConnection, dice: random.Random, wrong: list[str]) -> None:
    sandbox = new_sandbox_id()
    number = dice.randrange(10**6)
    life = asyncio.create_task(_use(host, sandbox, number, wrong))
    try:
        if dice.random() < 0.6:
            await asyncio.wait([life], timeout=dice.random() * 0.05)
            await host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
        await life
        await host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
    finally:
        # Also when the host went away under the closing: the other one has heard of it too.
        await asyncio.wait([life])
        life.exception()


async def _use(host: HostConnection, sandbox: str, number: int, wrong: list[str]) -> None:
    """A right answer, or an error that says that the sandbox is gone; never a wrong answer."""
    try:
        await host.ask(wire.CreateSandbox(sandbox=sandbox), wire.SandboxReport)
        said = await run_code(host, sandbox, f"print({number} * 2)")
    except (NotFound, SandboxUnavailable):
        return
    # A sandbox that was closed under its code may have said nothing yet.
    if said not in (b"", b"%d\n" % (number * 2)):
        wrong.append(f"{number}: {said!r}")


async def _collect(pid: int, seen: set[int]) -> None:
    """Every process that ever was below this host."""
    seen.add(pid)
    while alive(pid):
        seen.update(descendants(pid))
        await asyncio.sleep(0.05)
