"""Ends that a sandbox still keeps are taken before it is closed, and no cell that never ran is called lost with it."""

from __future__ import annotations

import pytest
from tests.unit.core.standins import World
from tests.unit.core.test_records import MINE, ONE, begun, got, left_behind

from workbench.contracts.host import CellAddress, sandbox_gone
from workbench.core.requests import CreateSession, RunCell
from workbench.errors import Cancelled, SandboxUnavailable
from workbench.model.execution import CellResult, Outcome
from workbench.model.ids import CellId
from workbench.model.records import CellStatus


@pytest.fixture
async def world() -> World:
    made = World()
    await made.bench().create_session(CreateSession(session=ONE))
    return made


@pytest.mark.parametrize("loss_is_noticed_by", ["a lost cell", "the next cell", "the caretaker"])
async def test_what_a_sandbox_still_keeps_is_taken_before_a_loss_closes_it(
    world: World, loss_is_noticed_by: str
) -> None:
    sandbox = await begun(world)
    await left_behind(world)
    world.host.finish(sandbox, MINE)
    other = CellId("c-aa")
    if loss_is_noticed_by == "a lost cell":
        await world.bench().perform(RunCell(session=ONE, code="die", cell=other))
    elif loss_is_noticed_by == "the next cell":
        world.host.end(sandbox, "out of memory")
        await world.bench().perform(RunCell(session=ONE, code="y=1", cell=other))
    else:
        await world.bench().submit(RunCell(session=ONE, code="die", cell=other))
        await world.caretaker().look()
    assert sandbox not in world.host.sandboxes
    record = await got(world)
    assert record.result is not None
    assert (record.result.outcome, record.result.stdout.text) == (Outcome.OK, "in the end")


async def test_a_cell_that_waited_for_its_turn_is_no_loss_whoever_notices_that_of_its_sandbox(world: World) -> None:
    sandbox = await begun(world)
    await left_behind(world, key="k")
    found = world.host.sandboxes[sandbox]
    found.running.clear()
    found.gone = "out of memory"
    real = world.host.wait_cell

    async def waits(at: CellAddress, wait_s: float) -> CellResult | None:
        if at.sandbox == sandbox and sandbox in world.host.sandboxes:
            raise sandbox_gone(sandbox, "out of memory", began=False)
        return await real(at, wait_s)

    world.host.wait_cell = waits  # type: ignore[method-assign]
    await world.bench().run_cell(RunCell(session=ONE, code="y=1"))
    assert (await got(world)).status is CellStatus.PENDING
    world.clock.seconds += 60
    record = await got(world)
    assert record.problem is not None
    assert (record.status, record.problem.code) == (CellStatus.FAILED, "sandbox_unavailable")
    assert "Run it again" in record.problem.message


async def test_a_cancelled_cell_is_taken_as_that(world: World) -> None:
    sandbox = await begun(world)
    await left_behind(world)
    world.host.fail["wait"] = Cancelled("it was taken out of the queue")
    world.host.end(sandbox, "out of memory")
    await world.bench().run_cell(RunCell(session=ONE, code="y=1"))
    record = await world.cells.get(ONE, MINE)
    assert record.problem is not None
    assert record.problem.code == "cancelled"


async def test_nobody_calls_it_lost_while_its_sender_makes_the_next_sandbox(world: World) -> None:
    await begun(world)
    world.host.die()

    async def look() -> None:
        assert (await world.caretaker().settle_pending()).finished == 0
        assert (await world.cells.get(ONE, MINE)).status is CellStatus.PENDING

    world.host.meanwhile["create"] = look
    record = await world.bench().perform(RunCell(session=ONE, code="say hi", cell=MINE))
    assert record.result is not None
    assert (record.status, record.result.outcome) == (CellStatus.ENDED, Outcome.OK)


async def test_one_whose_sender_takes_very_long_is_failed_and_not_lost_and_never_runs(world: World) -> None:
    await begun(world)
    world.host.die()

    async def look() -> None:
        world.clock.seconds += 60
        await world.caretaker().settle_pending()

    world.host.meanwhile["create"] = look
    with pytest.raises(SandboxUnavailable):
        await world.bench().perform(RunCell(session=ONE, code="say hi", cell=MINE))
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.FAILED
    assert [code for _, code in world.host.ran] == ["x=1"]
