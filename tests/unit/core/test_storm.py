"""Many processes do everything to a few sessions at once while sandboxes and hosts end: nothing is left over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.core.standins import World

from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.errors import WorkbenchError
from workbench.model.ids import SessionId
from workbench.model.session import Session
from workbench.model.tier import LARGE, STANDARD

NAMES = [SessionId(f"s{n}") for n in range(5)]
PROCESSES, STEPS = 6, 30


class Process:
    """One that does something to some session, again and again."""

    def __init__(self, world: World, luck: random.Random) -> None:
        self.world, self.luck, self.bench = world, luck, world.bench()

    async def live(self) -> None:
        ways = [self.run] * 8 + [self.create] * 5 + [self.branch] * 4 + [self.change] * 3 + [self.delete, self.end]
        for _ in range(STEPS):
            for _ in range(self.luck.randrange(6)):
                await asyncio.sleep(0)
            try:
                await self.luck.choice(ways)(self.luck.choice(NAMES))
            except WorkbenchError:
                # Any error of ours is a fair answer here; what counts is what is left in the end.
                continue

    async def run(self, name: SessionId) -> None:
        code = self.luck.choice(["x=1", "say a", "crash", "die"])
        await self.bench.run_cell(requests.RunCell(session=name, code=code))

    async def create(self, name: SessionId) -> None:
        await self.bench.create_session(requests.CreateSession(session=name, eager=self.luck.random() < 0.5))

    async def branch(self, name: SessionId) -> None:
        other, copy = self.luck.choice(NAMES), self.luck.random() < 0.2
        await self.bench.branch(requests.BranchSession(session=name, branch=other, copy=copy))

    async def change(self, name: SessionId) -> None:
        tier, on = self.luck.choice([STANDARD, LARGE]), self.luck.random() < 0.5
        ways: list[Callable[[], Awaitable[object]]] = [
            lambda: self.bench.change_tier(requests.ChangeTier(session=name, tier=tier)),
            lambda: self.bench.set_snapshots(requests.SetSnapshots(session=name, on=on)),
            lambda: self.bench.undo(requests.UndoCells(session=name)),
            lambda: self.bench.restart_kernel(requests.RestartKernel(session=name)),
        ]
        await self.luck.choice(ways)()

    async def delete(self, name: SessionId) -> None:
        await self.bench.delete_session(requests.DeleteSession(session=name))

    async def end(self, _: SessionId) -> None:
        """Of a sandbox, or of the host."""
        sandboxes = list(self.world.host.sandboxes)
        if sandboxes and self.luck.random() < 0.5:
            self.world.host.end(self.luck.choice(sandboxes), "disk full")
        else:
            self.world.host.die()


async def records(bench: Workbench) -> list[Session]:
    return [one.session for one in (await bench.list_sessions(requests.ListSessions())).sessions]


async def is_whole(world: World, session: Session) -> None:
    """It can be used, and what it has is what its record says."""
    await world.bench().run_cell(requests.RunCell(session=session.spec.id, code="x=1"))
    now = await world.store.get(session.spec.id)
    sandbox = world.host.sandboxes[now.sandbox]
    assert (sandbox.tier, sandbox.order.mount) == (now.spec.tier, now.mount)
    assert sandbox.kernels[now.kernel].snapshots == now.spec.snapshots
    assert {one.sandbox for one in await world.store.family(now.mount)} == {now.sandbox}
    assert set(sandbox.kernels) <= {one.kernel for one in await world.store.family(now.mount)}


@pytest.mark.parametrize("seed", range(30))
async def test_whatever_happens_at_once_families_stay_whole_and_leave_nothing(seed: int) -> None:
    world, luck = World(), random.Random(seed)
    async with asyncio.timeout(60):
        await asyncio.gather(*(Process(world, random.Random(luck.random())).live() for _ in range(PROCESSES)))
    left = await records(world.bench())
    for session in left:
        if not session.ending:
            await is_whole(world, session)
    assert set(world.host.sandboxes) <= {one.sandbox for one in await records(world.bench())}
    for session in left:
        await world.bench().delete_session(requests.DeleteSession(session=session.spec.id))
    assert (world.host.sandboxes, await records(world.bench())) == ({}, [])
