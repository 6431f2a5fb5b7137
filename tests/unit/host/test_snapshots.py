"""When a snapshot is taken, which are kept, and what a loss or an undo goes back to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.unit.host.stand_ins import Bench, ScriptedLauncher, StandInSandbox, eventually

from workbench.contracts.kernel import KernelStart, SnapshotAnswer
from workbench.errors import Cancelled, Conflict, KernelUnavailable
from workbench.host.cells.measuring import Meter
from workbench.host.cells.snapshots import SnapshotPolicy, Snapshots
from workbench.model.execution import CellResult, MemoryState, Outcome, SnapshotState
from workbench.model.ids import KernelId
from workbench.model.process import ProcessExit
from workbench.model.tier import STANDARD
from workbench.wire import kernels as wire

POLICY = SnapshotPolicy(look_s=0.001)
GIB = STANDARD.memory_bytes


class Kept:
    """Snapshots of one stand-in kernel."""

    def __init__(self, policy: SnapshotPolicy = POLICY, *, on: bool = True) -> None:
        self.launcher = ScriptedLauncher()
        self.sandbox = StandInSandbox(self.launcher)
        self.snapshots = Snapshots(self.sandbox, KernelId("main"), Meter(self.sandbox), policy, on=on)

    async def take(self, cells: int) -> SnapshotState:
        kernel = await self.launcher.start(
            self.sandbox, KernelStart(id=KernelId("main"), generation=1, working_folder="/")
        )
        await self.snapshots.take(kernel, cells, cells)
        return self.snapshots.state(cells)


async def test_one_is_taken_after_each_cell_and_the_oldest_go() -> None:
    kept = Kept(replace(POLICY, kept=2))
    for cells in (1, 2, 3):
        assert (await kept.take(cells)).current
    assert kept.snapshots.state(3) == SnapshotState(kept=2, current=True, cost_s=0.01)
    assert kept.snapshots.reachable(3) == [1]
    assert len(kept.launcher.dormant) == 2


async def test_the_same_memory_is_not_copied_twice() -> None:
    kept = Kept()
    await kept.take(1)
    await kept.take(1)
    assert len(kept.launcher.dormant) == 1


async def test_the_room_is_what_the_tier_has_left() -> None:
    kept = Kept()
    kept.sandbox.memory_bytes = GIB // 2
    await kept.take(1)
    assert kept.launcher.asked_to_copy == [int(GIB * 0.8) - GIB // 2]


async def test_older_ones_make_room_and_a_refusal_is_told() -> None:
    kept = Kept()
    for cells in (1, 2):
        await kept.take(cells)
    kept.launcher.snapshot_answer = SnapshotAnswer(declined="900 MiB might be needed twice", declined_for_memory=True)
    state = await kept.take(3)
    assert state == SnapshotState(kept=0, current=False, reason="900 MiB might be needed twice")
    # Asked again each time one had gone.
    assert len(kept.launcher.asked_to_copy) == 2 + 3


async def test_what_a_thread_prevents_costs_no_older_one() -> None:
    kept = Kept()
    await kept.take(1)
    kept.launcher.snapshot_answer = SnapshotAnswer(declined="thread 'busy' is at work")
    assert await kept.take(2) == SnapshotState(kept=1, current=False, cost_s=0.01, reason="thread 'busy' is at work")


async def test_a_dear_one_waits_until_its_share_of_the_time_has_passed() -> None:
    kept = Kept(replace(POLICY, cheap_s=0.05))
    kept.launcher.snapshot_answer = SnapshotAnswer(cost_s=0.06)
    assert (await kept.take(1)).current
    assert "took the kernel 60 ms" in (await kept.take(2)).reason
    await asyncio.sleep(0.65)
    assert (await kept.take(3)).current


async def test_one_that_someone_ended_is_not_told_of() -> None:
    kept = Kept()
    await kept.take(1)
    kept.launcher.dormant.clear()
    assert kept.snapshots.state(1) == SnapshotState(kept=0, current=False, reason="not taken yet")
    assert kept.snapshots.newest() is None


async def test_a_copy_that_never_sleeps_is_not_told_of() -> None:
    kept = Kept()
    kept.sandbox.offers = False
    state = await kept.take(1)
    assert (state.current, state.reason) == (False, "the copy did not go to sleep")
    assert kept.launcher.dormant == {}


async def test_switched_off_nothing_is_kept_and_it_says_so() -> None:
    kept = Kept()
    await kept.take(1)
    await kept.snapshots.switch(on=False)
    assert kept.launcher.dormant == {}
    assert (await kept.take(2)).reason == "switched off for this session"
    await kept.snapshots.switch(on=True)
    assert (await kept.take(2)).current


async def test_an_engine_without_them_is_never_claimed_to_have_them() -> None:
    sandbox = StandInSandbox()
    snapshots = Snapshots(sandbox, KernelId("main"), Meter(sandbox), POLICY, on=True)
    kernel = await ScriptedLauncher().start(sandbox, KernelStart(id=KernelId("main"), generation=1, working_folder="/"))
    await snapshots.take(kernel, 1, 1)
    assert snapshots.state(1) == SnapshotState(reason="the engine has no snapshots")


@pytest.mark.parametrize(
    ("used", "holds", "left"),
    [(0.8, 0.5, 3), (0.86, 0.5, 1), (0.95, 0.01, 1), (0.95, 0.05, 0)],
    ids=["room enough", "older ones go", "the newest holds nothing", "the newest goes"],
)
async def test_memory_that_a_cell_needs_is_given_up(used: float, holds: float, left: int) -> None:
    kept = Kept()
    for cells in (1, 2, 3):
        await kept.take(cells)
    watching = asyncio.create_task(kept.snapshots.watch())
    await asyncio.sleep(0.05)
    kept.sandbox.memory_bytes, kept.sandbox.snapshot_holds = int(GIB * used), int(GIB * holds)
    if left < 3:
        await eventually(lambda: len(kept.launcher.dormant) == left)
    await asyncio.sleep(0.05)
    watching.cancel()
    assert len(kept.launcher.dormant) == left
    newest = kept.snapshots.newest()
    assert newest is None or (newest.name in kept.sandbox.first_to_go) == (holds > 0.04)
    if not left:
        assert "its snapshot was given up, with 51 MiB" in kept.snapshots.state(3).reason


async def test_the_memory_of_a_process_that_is_being_ended_is_not_taken_for_the_snapshots() -> None:
    """At the limit a kernel is ended, which takes a while: it has nothing any more, and everything is still counted."""
    kept = Kept()
    await kept.take(1)
    watching = asyncio.create_task(kept.snapshots.watch())
    await asyncio.sleep(0.05)
    kept.sandbox.memory_bytes = GIB
    await asyncio.sleep(0.1)
    kept.sandbox.snapshot_holds = GIB
    await asyncio.sleep(0.1)
    watching.cancel()
    assert len(kept.launcher.dormant) == 1
    assert kept.sandbox.first_to_go == []


# Through the cells of a sandbox


@pytest.fixture
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("bench"), snapshots=True)
    await made.cells.start_kernel(wire.StartKernel(sandbox="sb", kernel="main", epoch=4))
    yield made
    await made.cells.aclose()


async def run(bench: Bench, name: str, code: str, kernel: str = "main", limit_s: float = 10.0) -> CellResult:
    request = wire.RunCell(sandbox="sb", kernel=kernel, cell=name, code=code, limit_s=limit_s, wait_s=10.0)
    report = await bench.cells.run_cell(request)
    assert report.result is not None
    return report.result


async def test_a_lost_memory_comes_back_and_the_cell_that_lost_it_says_so(bench: Bench) -> None:
    await run(bench, "a", "one")
    result = await run(bench, "b", "die 11")
    assert (result.outcome, result.receipt.state, result.receipt.epoch) == (Outcome.LOST, MemoryState.RESTORED, 5)
    assert result.receipt.execution_count == 1
    assert "Variables are as they were before this cell" in result.explanation
    assert "restored from a snapshot" in result.receipt.reason
    after = await run(bench, "c", "two")
    assert (after.receipt.state, after.receipt.execution_count) == (MemoryState.INTACT, 2)
    assert bench.launcher.ran == ["one", "die 11", "two"]


async def test_without_a_snapshot_of_the_last_cells_they_are_told_as_lost_too(bench: Bench) -> None:
    await run(bench, "a", "one")
    await eventually(lambda: bench.launcher.dormant)
    bench.launcher.snapshot_answer = SnapshotAnswer(declined="thread 'busy' is at work")
    await run(bench, "b", "two")
    result = await run(bench, "c", "die 9")
    assert result.receipt.state is MemoryState.RESTORED
    assert "what the last cell before this one did to them is lost too" in result.explanation
    assert "without the last cell before it" in result.receipt.reason


async def test_a_snapshot_that_cannot_be_woken_is_a_loss_and_says_why(bench: Bench) -> None:
    await run(bench, "a", "one")
    await eventually(lambda: bench.launcher.dormant)
    bench.launcher.cannot_wake = True
    result = await run(bench, "b", "die 9")
    assert result.receipt.state is MemoryState.LOST
    assert "the snapshot cannot be used" in result.receipt.reason
    assert "Variables are gone" in result.explanation


async def test_a_restart_by_request_is_not_undone_by_a_snapshot(bench: Bench) -> None:
    await run(bench, "a", "one")
    await bench.cells.restart_kernel(wire.RestartKernel(sandbox="sb", kernel="main"))
    result = await run(bench, "b", "two")
    assert (result.receipt.state, result.receipt.execution_count) == (MemoryState.LOST, 1)
    assert bench.launcher.last.start.snapshot is None


async def test_undo_goes_back_over_cells_and_no_further_than_is_kept(bench: Bench) -> None:
    for name in ("a", "b", "c", "d"):
        await run(bench, name, f"cell-{name}")
    with pytest.raises(Conflict, match="undo can go back over 1 or 2 or 4 cells now"):
        await bench.cells.undo(wire.UndoCells(sandbox="sb", kernel="main", cells=3))
    report = await bench.cells.undo(wire.UndoCells(sandbox="sb", kernel="main", cells=2))
    assert (report.kernel.execution_count, report.kernel.epoch) == (2, 5)
    result = await run(bench, "e", "again")
    assert (result.receipt.state, result.receipt.execution_count) == (MemoryState.INTACT, 3)
    assert bench.launcher.ran == ["cell-a", "cell-b", "cell-c", "cell-d", "again"]


async def test_undo_that_cannot_be_had_changes_nothing(bench: Bench) -> None:
    for name in ("a", "b"):
        await run(bench, name, f"cell-{name}")
    await eventually(lambda: len(bench.launcher.dormant) == 2)
    kernel = bench.launcher.last
    bench.launcher.cannot_wake = True
    with pytest.raises(KernelUnavailable, match="the snapshot cannot be used"):
        await bench.cells.undo(wire.UndoCells(sandbox="sb", kernel="main", cells=1))
    assert not kernel.closed
    result = await run(bench, "c", "on")
    assert (result.receipt.state, result.receipt.execution_count) == (MemoryState.INTACT, 3)


async def test_undo_refuses_while_a_cell_runs_and_cancels_what_waits_once_it_does_not(bench: Bench) -> None:
    await run(bench, "a", "one")
    running = asyncio.create_task(run(bench, "b", "wait"))
    await eventually(lambda: "wait" in bench.launcher.ran)
    with pytest.raises(Conflict, match="cell b is running"):
        await bench.cells.undo(wire.UndoCells(sandbox="sb", kernel="main"))
    bench.launcher.gate.set()
    await running


async def test_a_branch_has_the_memory_and_its_own_story(bench: Bench) -> None:
    await run(bench, "a", "one")
    report = await bench.cells.branch(wire.BranchKernel(sandbox="sb", kernel="main", branch="b", epoch=1))
    assert (report.kernel.kernel, report.kernel.execution_count, report.kernel.epoch) == ("b", 1, 1)
    again = await bench.cells.branch(wire.BranchKernel(sandbox="sb", kernel="main", branch="b", epoch=1))
    assert again.kernel.execution_count == 1
    assert (await run(bench, "x", "die 9", kernel="b")).receipt.state is MemoryState.RESTORED
    assert (await run(bench, "y", "two")).receipt.state is MemoryState.INTACT
    await bench.cells.end_kernel(wire.EndKernel(sandbox="sb", kernel="main"))
    assert (await run(bench, "z", "three", kernel="b")).receipt.execution_count == 2


async def test_a_branch_that_does_not_come_up_leaves_nothing(bench: Bench) -> None:
    await run(bench, "a", "one")
    bench.launcher.cannot_wake = True
    with pytest.raises(KernelUnavailable, match="the snapshot cannot be used"):
        await bench.cells.branch(wire.BranchKernel(sandbox="sb", kernel="main", branch="b", epoch=1))
    assert len(bench.launcher.kernels) == 1, "an empty memory is no branch"
    await eventually(lambda: len(bench.launcher.dormant) == 1)
    bench.launcher.cannot_wake = False
    report = await bench.cells.branch(wire.BranchKernel(sandbox="sb", kernel="main", branch="b", epoch=1))
    assert report.kernel.execution_count == 1


async def test_many_crashes_in_a_row_each_come_back_and_are_told(bench: Bench) -> None:
    await run(bench, "a", "one")
    for number in range(6):
        result = await run(bench, f"c{number}", "die 9")
        assert (result.receipt.state, result.receipt.epoch) == (MemoryState.RESTORED, 5 + number)
    assert (await run(bench, "z", "two")).receipt.execution_count == 2
    assert len(bench.sandbox.swept) == 6, "what the lost cells had started is ended"


async def test_a_cell_after_a_loss_between_cells_has_its_own_count(bench: Bench) -> None:
    await run(bench, "a", "one")
    await eventually(lambda: bench.launcher.dormant)
    bench.launcher.last.die(ProcessExit(code=None, signal=9))
    await eventually(lambda: len(bench.launcher.kernels) == 2)
    told = await run(bench, "b", "two")
    assert (told.receipt.state, told.receipt.execution_count) == (MemoryState.RESTORED, 2)
    assert not bench.sandbox.swept, "no cell was lost"


async def test_two_losses_that_nobody_was_told_of_between_are_both_told(bench: Bench) -> None:
    await run(bench, "a", "one")
    await eventually(lambda: bench.launcher.dormant)
    bench.launcher.last.die(ProcessExit(code=None, signal=9))
    await eventually(lambda: len(bench.launcher.kernels) == 2)
    told = await run(bench, "b", "die 11")
    assert "signal 9" in told.receipt.reason
    assert "then the kernel was killed by signal 11" in told.receipt.reason


async def test_undo_of_a_memory_that_nobody_was_told_of_is_refused(bench: Bench) -> None:
    for name in ("a", "b"):
        await run(bench, name, f"cell-{name}")
    await eventually(lambda: len(bench.launcher.dormant) == 2)
    bench.launcher.last.die(ProcessExit(code=None, signal=9))
    await eventually(lambda: len(bench.launcher.kernels) == 2)
    with pytest.raises(Conflict, match="not the one that the last result told of"):
        await bench.cells.undo(wire.UndoCells(sandbox="sb", kernel="main"))


async def test_what_is_being_copied_when_all_are_dropped_is_not_kept() -> None:
    kept = Kept()
    kept.sandbox.offer_gate = asyncio.Event()
    taking = asyncio.create_task(kept.take(1))
    await eventually(lambda: kept.launcher.dormant)
    await kept.snapshots.drop_all()
    kept.sandbox.offer_gate.set()
    assert not (await taking).current
    assert kept.launcher.dormant == {}


async def test_a_kernel_that_is_ended_leaves_no_snapshot(bench: Bench) -> None:
    await run(bench, "a", "one")
    await eventually(lambda: bench.launcher.dormant)
    await bench.cells.end_kernel(wire.EndKernel(sandbox="sb", kernel="main"))
    assert bench.launcher.dormant == {}


async def test_a_branch_that_is_taken_back_before_it_began_never_begins(bench: Bench) -> None:
    await run(bench, "a", "one")
    await eventually(lambda: bench.launcher.dormant)
    bench.sandbox.offer_gate = asyncio.Event()
    branching = asyncio.create_task(
        bench.cells.branch(wire.BranchKernel(sandbox="sb", kernel="main", branch="b", epoch=1))
    )
    await eventually(lambda: len(bench.launcher.dormant) == 2)
    await bench.cells.end_kernel(wire.EndKernel(sandbox="sb", kernel="b"))
    bench.sandbox.offer_gate.set()
    with pytest.raises(Cancelled, match="ended before it began"):
        await branching
    assert len(bench.launcher.dormant) == 1


async def test_a_branch_has_the_switch_as_it_is_now(bench: Bench) -> None:
    await run(bench, "a", "one")
    await bench.cells.set_snapshots(wire.SetSnapshots(sandbox="sb", kernel="main", on=False))
    await bench.cells.branch(wire.BranchKernel(sandbox="sb", kernel="main", branch="b", epoch=1))
    result = await run(bench, "b", "two", kernel="b")
    assert (await run(bench, "c", "three", kernel="b")).receipt.snapshot.reason == "switched off for this session"
    assert result.receipt.state is MemoryState.INTACT
    assert bench.launcher.dormant == {}


async def test_a_loss_that_cost_everything_is_not_called_restored_by_a_later_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    bench = Bench(tmp_path_factory.mktemp("bench"), snapshots=True)
    start = wire.StartKernel(sandbox="sb", kernel="main", epoch=4, start_up="prepare", lost_before="the host ended")
    await bench.cells.start_kernel(start)
    result = await run(bench, "a", "die 9")
    assert result.receipt.state is MemoryState.LOST
    assert "the host ended; then the kernel was killed" in result.receipt.reason
    assert "restored from a snapshot" in result.receipt.reason
    await bench.cells.aclose()


async def test_a_copy_whose_asker_has_left_does_not_sleep_on(bench: Bench) -> None:
    await run(bench, "a", "one")
    await eventually(lambda: bench.launcher.dormant)
    bench.sandbox.offer_gate = asyncio.Event()
    asking = asyncio.create_task(
        bench.cells.branch(wire.BranchKernel(sandbox="sb", kernel="main", branch="b", epoch=1))
    )
    await eventually(lambda: len(bench.launcher.dormant) == 2)
    asking.cancel()
    await asyncio.wait([asking])
    bench.sandbox.offer_gate.set()
    await eventually(lambda: len(bench.launcher.dormant) == 1)
