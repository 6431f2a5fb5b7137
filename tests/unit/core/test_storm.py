"""Many processes do everything to a few sessions at once while sandboxes and hosts end: nothing is left over."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.core.standins import World

from workbench.core import requests
from workbench.core.caretaker import CarePolicy
from workbench.core.workbench import Workbench
from workbench.errors import WorkbenchError
from workbench.model.execution import Outcome
from workbench.model.ids import SessionId, new_cell_id
from workbench.model.records import CellStatus
from workbench.model.session import Session
from workbench.model.tier import LARGE, STANDARD

NAMES = [SessionId(f"s{n}") for n in range(5)]
PROCESSES, STEPS = 6, 30


class Process:
    """One that does something to some session, again and again."""

    def __init__(self, world: World, luck: random.Random) -> None:
        self.world, self.luck, self.bench = world, luck, world.bench()
        self.refused: list[str] = []
        """code of which we were told that it never began"""

    async def live(self) -> None:
        ways = [self.run] * 8 + [self.create] * 5 + [self.branch] * 4 + [self.change] * 3 + [self.delete, self.end]
        ways += [self.run_once] * 6 + [self.be_killed] * 3 + [self.look_up] * 4 + [self.care] * 2
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

    async def run_once(self, name: SessionId) -> None:
        """Something that can be told from everything else."""
        code = f"say {self.luck.random()}"
        if self.luck.random() < 0.1:
            self.world.host.lose_answers_of.append("run")
        run = self.bench.perform if self.luck.random() < 0.7 else self.bench.submit
        try:
            await run(requests.RunCell(session=name, code=code))
        except WorkbenchError:
            self.refused.append(code)
            raise

    async def be_killed(self, name: SessionId) -> None:
        """At any moment between the record of a cell and its end."""
        code, cell = f"say {self.luck.random()}", new_cell_id()
        running = asyncio.create_task(self.bench.perform(requests.RunCell(session=name, code=code, cell=cell)))
        while not running.done() and (name, cell) not in self.world.records._shelves.cells:
            await asyncio.sleep(0)
        for _ in range(self.luck.randrange(12)):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def look_up(self, _: SessionId) -> None:
        """A cell that has no end, be it under way or left behind."""
        pending = await self.world.records.house.pending(None, 100)
        # By what is drawn, and not by ids, which differ from one run of a seed to the next.
        found = sorted((record for _, record in pending), key=lambda record: record.code)
        self.world.clock.seconds += self.luck.choice([0, 0, 20])
        if found:
            record = self.luck.choice(found)
            await self.bench.get_cell(requests.GetCell(session=record.session, cell=record.id))

    async def care(self, _: SessionId) -> None:
        self.world.free_percent = self.luck.choice([1.0, 100.0])
        await self.world.caretaker(CarePolicy(freeze_after_s=5, end_after_s=20)).look()

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


async def records_are_true(world: World, refused: list[str]) -> None:
    """Every cell has its end; nothing ran twice, and nothing ran of what is called failed."""
    world.clock.seconds += 60
    assert (await world.caretaker().settle_pending()).pending == frozenset()
    ran = Counter(code for _, code in world.host.ran if code.startswith("say 0."))
    assert set(ran.values()) <= {1}
    assert not set(refused) & set(ran)
    for record in world.records._shelves.cells.values():
        assert record.status is not CellStatus.PENDING
        if record.status is CellStatus.FAILED:
            assert record.code not in ran
        elif record.code.startswith("say 0.") and record.result is not None and record.result.outcome is Outcome.OK:
            assert ran[record.code] == 1


@pytest.mark.parametrize("seed", range(30))
async def test_whatever_happens_at_once_families_stay_whole_and_leave_nothing(seed: int) -> None:
    world, luck = World(), random.Random(seed)
    processes = [Process(world, random.Random(luck.random())) for _ in range(PROCESSES)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(process.live() for process in processes))
    world.host.lose_answers_of.clear()
    await records_are_true(world, [code for process in processes for code in process.refused])
    left = await records(world.bench())
    for session in left:
        if not session.ending:
            await is_whole(world, session)
    assert set(world.host.sandboxes) <= {one.sandbox for one in await records(world.bench())}
    for session in left:
        await world.bench().delete_session(requests.DeleteSession(session=session.spec.id))
    assert (world.host.sandboxes, await records(world.bench())) == ({}, [])
