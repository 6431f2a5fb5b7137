"""An interrupt for one cell reaches that one or none, and a visit of a notebook is use for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.host.stand_ins import BOUND_S, Bench, eventually

from workbench.host.cells import visits
from workbench.host.cells.visits import Visits
from workbench.host.freezing import Freezer
from workbench.model.execution import CellResult, Outcome
from workbench.wire import kernels as wire

SANDBOX, KERNEL = "sb", "main"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.cells.start_kernel(wire.StartKernel(sandbox=SANDBOX, kernel=KERNEL, epoch=1))
    yield made
    await made.cells.aclose()


async def send(bench: Bench, cell: str, code: str) -> None:
    await bench.cells.run_cell(
        wire.RunCell(sandbox=SANDBOX, kernel=KERNEL, cell=cell, code=code, limit_s=BOUND_S, wait_s=0.0)
    )


async def result_of(bench: Bench, cell: str) -> CellResult:
    report = await bench.cells.wait_cell(wire.WaitCell(sandbox=SANDBOX, cell=cell, wait_s=BOUND_S))
    assert report.result is not None
    return report.result


async def interrupt(bench: Bench, cell: str | None) -> None:
    await bench.cells.interrupt_kernel(wire.InterruptKernel(sandbox=SANDBOX, kernel=KERNEL, cell=cell))


async def until_running(bench: Bench, cell: str) -> None:
    def runs() -> bool:
        queue = bench.cells.describe_kernel(wire.DescribeKernel(sandbox=SANDBOX, kernel=KERNEL)).queue
        return any(one.cell == cell and one.running for one in queue)

    await eventually(runs)


async def test_only_the_cell_that_is_named_is_interrupted(bench: Bench) -> None:
    await send(bench, "a", "hang")
    await send(bench, "b", "hang")
    await until_running(bench, "a")
    await interrupt(bench, "b")
    await interrupt(bench, "never-sent")
    assert bench.launcher.last.interrupts == 0
    await interrupt(bench, "a")
    assert (await result_of(bench, "a")).outcome is Outcome.INTERRUPTED
    await until_running(bench, "b")
    await interrupt(bench, "a")
    assert bench.launcher.last.interrupts == 1, "it had ended, and another runs"
    await interrupt(bench, "b")
    assert (await result_of(bench, "b")).outcome is Outcome.INTERRUPTED


async def test_a_cell_that_ends_as_it_is_interrupted_takes_none_that_waits_along(bench: Bench) -> None:
    await send(bench, "a", "wait")
    await send(bench, "b", "print 1")
    await until_running(bench, "a")
    bench.launcher.gate.set()
    await asyncio.gather(*(interrupt(bench, "a") for _ in range(3)))
    assert (await result_of(bench, "b")).outcome is Outcome.OK


async def test_the_next_cell_begins_when_an_interrupt_of_the_one_before_has_arrived(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, arrived = bench.launcher.last, asyncio.Event()
    kernel_interrupt = kernel.interrupt

    async def slowly() -> None:
        bench.launcher.gate.set()
        await eventually(lambda: bench.cells.describe_kernel(_DESCRIBE).execution_count == 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert bench.launcher.ran == ["wait"]
        arrived.set()
        await kernel_interrupt()

    monkeypatch.setattr(kernel, "interrupt", slowly)
    await send(bench, "a", "wait")
    await send(bench, "b", "hang")
    await until_running(bench, "a")
    await interrupt(bench, "a")
    await until_running(bench, "b")
    assert arrived.is_set()
    monkeypatch.undo()
    await interrupt(bench, "b")
    assert (await result_of(bench, "b")).outcome is Outcome.INTERRUPTED


_DESCRIBE = wire.DescribeKernel(sandbox=SANDBOX, kernel=KERNEL)


async def test_what_a_notebook_runs_can_be_named_as_well(bench: Bench) -> None:
    await bench.cells.attach_kernel(wire.AttachKernel(sandbox=SANDBOX, kernel=KERNEL))
    turn = bench.launcher.turn
    assert turn is not None
    async with turn("plot()"):
        (running,) = bench.cells.describe_kernel(_DESCRIBE).queue
        assert bench.cells.attached_idle_s == 0.0
        await interrupt(bench, "another")
        assert bench.launcher.last.interrupts == 0
        await interrupt(bench, running.cell)
        assert bench.launcher.last.interrupts > 0


async def test_a_door_that_was_opened_is_use_for_a_moment_and_each_visit_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench.cells.attached_idle_s is None
    await bench.cells.attach_kernel(wire.AttachKernel(sandbox=SANDBOX, kernel=KERNEL))
    assert bench.cells.busy
    monkeypatch.setattr(visits, "RECENT_S", 0.0)
    await eventually(lambda: not bench.cells.busy)
    monkeypatch.setattr(visits, "RECENT_S", BOUND_S)
    assert bench.launcher.visit is not None
    bench.launcher.visit()
    assert bench.cells.busy
    assert bench.cells.attached_idle_s is not None


async def test_a_visit_gives_what_thaws_only_when_it_is_needed(bench: Bench) -> None:
    visiting: list[Visits] = []
    freezer = Freezer(bench.sandbox, lambda: any(one.are_recent for one in visiting))
    visit = Visits(freezer.visit)
    visiting.append(visit)
    assert await freezer.freeze()
    awake = visit()
    assert awake is not None
    async with awake:
        assert not bench.sandbox.frozen
    assert visit() is None
    assert not await freezer.freeze()
