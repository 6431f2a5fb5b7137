"""Cells in the queue of a kernel: order, limits, losses, and what is told about them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.host.stand_ins import BOUND_S, Bench, eventually

from workbench.contracts.host import was_dropped
from workbench.errors import (
    Cancelled,
    Conflict,
    InvalidRequest,
    KernelUnavailable,
    NotFound,
    QuotaExceeded,
    SandboxUnavailable,
)
from workbench.host.cells import hosted_kernel
from workbench.model.execution import CellResult, MemoryState, Outcome
from workbench.model.process import Limit, ProcessExit
from workbench.wire import kernels as wire

SANDBOX, KERNEL = "sb", "main"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.cells.start_kernel(start())
    yield made
    await made.cells.aclose()


def start(**fields: object) -> wire.StartKernel:
    return wire.StartKernel(**{"sandbox": SANDBOX, "kernel": KERNEL, "epoch": 4, **fields})  # type: ignore[arg-type]


async def send(bench: Bench, cell: str, code: str, *, limit_s: float = BOUND_S, wait_s: float = 0.0) -> wire.CellReport:
    request = wire.RunCell(sandbox=SANDBOX, kernel=KERNEL, cell=cell, code=code, limit_s=limit_s, wait_s=wait_s)
    return await bench.cells.run_cell(request)


async def result_of(bench: Bench, cell: str) -> CellResult:
    report = await bench.cells.wait_cell(wire.WaitCell(sandbox=SANDBOX, cell=cell, wait_s=BOUND_S))
    assert report.result is not None
    assert report.state == "ended"
    return report.result


async def run(bench: Bench, cell: str, code: str, *, limit_s: float = BOUND_S) -> CellResult:
    await send(bench, cell, code, limit_s=limit_s)
    return await result_of(bench, cell)


def report(bench: Bench) -> wire.KernelReport:
    return bench.cells.describe_kernel(wire.DescribeKernel(sandbox=SANDBOX, kernel=KERNEL))


async def until_running(bench: Bench, cell: str) -> None:
    await eventually(lambda: any(one.cell == cell and one.running for one in report(bench).queue))


async def restart(bench: Bench) -> wire.KernelReport:
    return await bench.cells.restart_kernel(wire.RestartKernel(sandbox=SANDBOX, kernel=KERNEL))


async def interrupt(bench: Bench, cell: str | None = None) -> None:
    await bench.cells.interrupt_kernel(wire.InterruptKernel(sandbox=SANDBOX, kernel=KERNEL, cell=cell))


# The queue


async def test_cells_run_in_the_order_they_came_and_the_queue_can_be_seen(bench: Bench) -> None:
    await send(bench, "a", "wait")
    await send(bench, "b", "print 1")
    await send(bench, "c", "\n  print 2\nmore")
    await until_running(bench, "a")
    assert [(one.cell, one.running, one.origin) for one in report(bench).queue] == [
        ("a", True, "session"), ("b", False, "session"), ("c", False, "session"),
    ]  # fmt: skip
    assert report(bench).queue[2].first_line == "print 2"
    bench.launcher.gate.set()
    await result_of(bench, "c")
    assert [code.split()[0] for code in bench.launcher.ran] == ["wait", "print", "print"]
    assert report(bench).queue == ()


async def test_a_waiting_cell_can_be_cancelled_and_its_waiters_are_told(bench: Bench) -> None:
    await send(bench, "a", "wait")
    await send(bench, "b", "print 1")
    waiting = asyncio.create_task(result_of(bench, "b"))
    await until_running(bench, "a")
    bench.cells.cancel_cell(wire.CancelCell(sandbox=SANDBOX, cell="b"))
    with pytest.raises(Cancelled, match="taken out of the queue"):
        await waiting
    bench.launcher.gate.set()
    assert (await result_of(bench, "a")).outcome is Outcome.OK
    assert bench.launcher.ran == ["wait"]
    with pytest.raises(Cancelled):
        await send(bench, "b", "print 1")


async def test_a_running_cell_cannot_be_cancelled_nor_one_that_ended(bench: Bench) -> None:
    await send(bench, "a", "wait")
    await until_running(bench, "a")
    with pytest.raises(Conflict, match="interrupt it"):
        bench.cells.cancel_cell(wire.CancelCell(sandbox=SANDBOX, cell="a"))
    bench.launcher.gate.set()
    await result_of(bench, "a")
    with pytest.raises(Conflict, match="has ended"):
        bench.cells.cancel_cell(wire.CancelCell(sandbox=SANDBOX, cell="a"))


async def test_the_same_cell_again_never_runs_twice(bench: Bench) -> None:
    first = await run(bench, "a", "print 1")
    again = await send(bench, "a", "print 1", wait_s=BOUND_S)
    assert again.result == first
    assert bench.launcher.ran == ["print 1"]
    with pytest.raises(Conflict, match="another cell a"):
        await send(bench, "a", "print 2")
    bench.cells.forget_cell(wire.ForgetCell(sandbox=SANDBOX, cell="a"))
    with pytest.raises(Conflict, match="was dropped") as told:
        await send(bench, "a", "print 1")
    assert was_dropped(told.value), "it may have run: no reason to call it failed"
    with pytest.raises(NotFound, match="dropped"):
        await result_of(bench, "a")


async def test_a_queue_has_an_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_kernel, "MOST_WAITING", 1)
    await send(bench, "a", "wait")
    await until_running(bench, "a")
    await send(bench, "b", "print 1")
    with pytest.raises(QuotaExceeded, match="wait for this kernel"):
        await send(bench, "c", "print 1")
    bench.launcher.gate.set()
    assert (await result_of(bench, "b")).outcome is Outcome.OK


async def test_a_limit_over_the_most_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidRequest, match="at most 3600 s"):
        await send(bench, "a", "print 1", limit_s=3601)


async def test_a_notebook_waits_for_its_turn_and_can_be_seen(bench: Bench) -> None:
    await bench.cells.attach_kernel(wire.AttachKernel(sandbox=SANDBOX, kernel=KERNEL))
    assert bench.launcher.turn is not None
    await send(bench, "a", "wait")
    await until_running(bench, "a")
    done = asyncio.Event()

    async def visit() -> None:
        assert bench.launcher.turn is not None
        async with bench.launcher.turn("plot()"):
            await done.wait()

    visiting = asyncio.create_task(visit())
    await eventually(lambda: len(report(bench).queue) == 2)
    await send(bench, "b", "print 1")
    bench.launcher.gate.set()
    await eventually(lambda: report(bench).queue[0].running and report(bench).queue[0].origin == "attached")
    assert report(bench).queue[0].first_line == "plot()"
    await interrupt(bench)
    assert bench.launcher.last.interrupts == 3
    done.set()
    await visiting
    assert (await result_of(bench, "b")).outcome is Outcome.OK


async def test_a_notebook_whose_kernel_died_does_not_hold_up_the_queue(bench: Bench) -> None:
    await bench.cells.attach_kernel(wire.AttachKernel(sandbox=SANDBOX, kernel=KERNEL))
    assert bench.launcher.turn is not None
    async with bench.launcher.turn("while True: pass"):
        await send(bench, "a", "print 1")
        bench.launcher.last.die(ProcessExit(code=None, signal=9))
        assert (await result_of(bench, "a")).receipt.state is MemoryState.LOST


async def test_variables_wait_for_their_turn_and_say_who_has_it(bench: Bench) -> None:
    ask = wire.ListVariables(sandbox=SANDBOX, kernel=KERNEL, wait_s=0.01)
    assert [one.name for one in (await bench.cells.list_variables(ask)).variables] == ["x"]
    await send(bench, "a", "wait")
    await until_running(bench, "a")
    with pytest.raises(KernelUnavailable, match="cell a \\('wait'\\) is running"):
        await bench.cells.list_variables(ask)
    bench.launcher.gate.set()
    await result_of(bench, "a")


# Outcomes and limits


async def test_a_receipt_has_what_the_cell_did_and_cost(bench: Bench) -> None:
    result = await run(bench, "a", "print 1")
    assert result.outcome is Outcome.OK
    assert result.stdout.text == "1"
    receipt = result.receipt
    assert (receipt.epoch, receipt.execution_count, receipt.state) == (4, 1, MemoryState.INTACT)
    assert (receipt.added, receipt.working_folder) == (("print",), "/home/user")
    assert (receipt.cpu_s, receipt.peak_memory_bytes) == (0.25, 7)
    assert receipt.wall_s > 0


async def test_what_was_raised_is_told_in_plain_text(bench: Bench) -> None:
    result = await run(bench, "a", "raise no")
    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert (result.error.name, result.error.message, result.error.traceback) == ("ValueError", "no", "x")
    assert result.explanation == ""


async def test_a_cell_past_its_limit_is_interrupted_and_keeps_its_memory(bench: Bench) -> None:
    result = await run(bench, "a", "hang", limit_s=0.02)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.receipt.state is MemoryState.INTACT
    assert "limit of 0.02 s and was interrupted" in result.explanation
    assert "up to 3600 s" in result.explanation
    assert result.error is not None
    assert result.error.traceback == "KeyboardInterrupt: "
    assert bench.launcher.last.interrupts == 1
    assert (await run(bench, "b", "print 1")).receipt.epoch == 4


async def test_a_late_answer_cannot_change_a_decided_outcome(bench: Bench) -> None:
    result = await run(bench, "a", "late", limit_s=0.02)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.receipt.state is MemoryState.INTACT


async def test_a_cell_that_does_not_yield_loses_its_kernel_and_that_is_told_once(bench: Bench) -> None:
    result = await run(bench, "a", "stubborn", limit_s=0.02)
    assert result.outcome is Outcome.TIMED_OUT
    assert (result.receipt.state, result.receipt.epoch) == (MemoryState.LOST, 5)
    assert "had to be ended" in result.receipt.reason
    for words in ("had to be ended", "Variables are gone", "/home/user and /mnt/files are still there", "new kernel"):
        assert words in result.explanation
    assert bench.launcher.kernels[0].interrupts == 3
    assert bench.launcher.kernels[0].closed
    after = await run(bench, "b", "print 1")
    assert (after.receipt.state, after.receipt.epoch, after.receipt.execution_count) == (MemoryState.INTACT, 5, 1)


async def test_an_interrupted_cell_says_so_only_if_it_yielded(bench: Bench) -> None:
    await send(bench, "a", "hang")
    await until_running(bench, "a")
    await interrupt(bench)
    result = await result_of(bench, "a")
    assert result.outcome is Outcome.INTERRUPTED
    assert "interrupted by request" in result.explanation
    await send(bench, "b", "late")
    await until_running(bench, "b")
    await interrupt(bench)
    assert (await result_of(bench, "b")).outcome is Outcome.OK
    await interrupt(bench)
    assert bench.launcher.last.interrupts == 2, "nothing happens if nothing runs"


# Losses


@pytest.mark.parametrize(
    ("end", "words", "limits"),
    [
        (ProcessExit(code=None, signal=11), "killed by signal 11 (segmentation fault)", ()),
        (ProcessExit(code=7), "os._exit or a library ended the kernel's process with code 7", ()),
        (ProcessExit(code=None, signal=9, limits=(Limit.MEMORY,)), "ran out of memory", (Limit.MEMORY,)),
        (ProcessExit(code=None, lost=True, reason="disk full"), "the sandbox ended: disk full", ()),
    ],
)
async def test_a_cell_whose_kernel_died_is_lost_with_the_reason(
    bench: Bench, end: ProcessExit, words: str, limits: tuple[Limit, ...]
) -> None:
    await send(bench, "a", "stubborn")
    await until_running(bench, "a")
    await eventually(lambda: bench.launcher.ran)
    bench.launcher.last.die(end)
    result = await result_of(bench, "a")
    assert result.outcome is Outcome.LOST
    assert words in result.explanation
    assert words in result.receipt.reason
    assert (result.receipt.state, result.receipt.epoch, result.limits) == (MemoryState.LOST, 5, limits)
    assert ("/mnt/files is kept" in result.explanation) == end.lost


async def test_a_loss_between_cells_is_told_by_the_next_one_and_then_no_more(bench: Bench) -> None:
    await run(bench, "a", "print 1")
    bench.launcher.last.die(ProcessExit(code=None, signal=9))
    await eventually(lambda: len(bench.launcher.kernels) == 2)
    told = (await run(bench, "b", "print 1")).receipt
    assert (told.state, told.epoch, told.execution_count) == (MemoryState.LOST, 5, 1)
    assert "killed by signal 9" in told.reason
    after = (await run(bench, "c", "print 1")).receipt
    assert (after.state, after.epoch, after.reason) == (MemoryState.INTACT, 5, "")


async def test_the_loss_of_an_earlier_kernel_is_told_by_the_first_receipt(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.cells.start_kernel(start(epoch=9, lost_before="the host went away"))
    receipts = [(await run(bench, cell, "print 1")).receipt for cell in ("a", "b")]
    assert [(one.epoch, one.state, one.reason) for one in receipts] == [
        (9, MemoryState.LOST, "the host went away"), (9, MemoryState.INTACT, ""),
    ]  # fmt: skip
    await bench.cells.aclose()


async def test_a_cell_that_never_began_is_given_to_the_next_kernel_once(bench: Bench) -> None:
    with pytest.raises(KernelUnavailable, match="never began"):
        await run(bench, "a", "vanish")
    assert len([kernel for kernel in bench.launcher.kernels if kernel.closed]) == 2
    assert (await run(bench, "b", "print 1")).receipt.state is MemoryState.LOST


async def test_a_restart_loses_what_runs_and_cancels_what_waits(bench: Bench) -> None:
    await send(bench, "a", "stubborn")
    await send(bench, "b", "print 1")
    await until_running(bench, "a")
    await eventually(lambda: bench.launcher.ran)
    assert (await restart(bench)).epoch == 5
    lost = await result_of(bench, "a")
    assert (lost.outcome, lost.receipt.state, lost.receipt.epoch) == (Outcome.LOST, MemoryState.LOST, 5)
    assert lost.receipt.reason == "the kernel was restarted by request"
    with pytest.raises(Cancelled, match="restarted before it began; send it again"):
        await result_of(bench, "b")
    after = (await run(bench, "c", "print 1")).receipt
    assert (after.state, after.epoch, after.execution_count) == (MemoryState.INTACT, 5, 1)


async def test_a_restart_that_no_receipt_told_is_told_by_the_next_one(bench: Bench) -> None:
    assert (await restart(bench)).epoch == 5
    told = (await run(bench, "a", "print 1")).receipt
    assert (told.state, told.epoch, told.reason) == (MemoryState.LOST, 5, "the kernel was restarted by request")


async def test_kernels_that_end_at_once_are_not_made_in_a_loop(bench: Bench) -> None:
    bench.launcher.dies_at_once = True
    bench.launcher.last.die(ProcessExit(code=1))
    await eventually(lambda: len(bench.launcher.kernels) == 3)
    await eventually(lambda: all(kernel.closed for kernel in bench.launcher.kernels))
    made = len(bench.launcher.kernels)
    bench.launcher.dies_at_once = False
    bench.launcher.refuses = "no memory for a kernel"
    with pytest.raises(KernelUnavailable, match="no memory for a kernel"):
        await run(bench, "a", "print 1")
    assert len(bench.launcher.kernels) == made
    bench.launcher.refuses = ""
    assert (await run(bench, "b", "print 1")).receipt.state is MemoryState.LOST


async def test_a_sandbox_that_is_gone_refuses_cells_and_keeps_results(bench: Bench) -> None:
    before = await run(bench, "a", "print 1")
    bench.sandbox.gone = "out of disk"
    bench.launcher.last.die(ProcessExit(code=None, lost=True, reason="out of disk"))
    with pytest.raises(SandboxUnavailable, match="out of disk"):
        await send(bench, "b", "print 1")
    assert (await send(bench, "a", "print 1", wait_s=1)).result == before
    assert await result_of(bench, "a") == before


async def test_a_kernel_is_told_how_many_threads_it_may_use(bench: Bench) -> None:
    await bench.cells.use_threads(1)
    assert bench.launcher.last.threads == 1
    await bench.cells.use_threads(10**6)
    assert bench.launcher.last.threads == len(os.sched_getaffinity(0))


# Start-up


async def test_start_up_code_runs_quietly_in_every_new_memory(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    request = start(start_up="raise wrong")
    assert (await bench.cells.start_kernel(request)).start_up_error == "ValueError: wrong"
    assert (await bench.cells.start_kernel(request)).epoch == 4, "the same request is the same kernel"
    assert (await run(bench, "a", "print 1")).receipt.execution_count == 1
    await restart(bench)
    assert bench.launcher.ran == ["raise wrong", "print 1", "raise wrong"]
    with pytest.raises(Conflict, match="another kernel main"):
        await bench.cells.start_kernel(start(start_up="print 2"))
    await bench.cells.aclose()


async def test_start_up_code_that_ends_the_kernel_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KernelUnavailable, match="start-up code: the kernel was killed by signal 11"):
        await bench.cells.start_kernel(start(start_up="die 11"))
    await bench.cells.aclose()
    assert all(kernel.closed for kernel in bench.launcher.kernels)


async def test_closing_cancels_what_waits_and_ends_what_runs(bench: Bench) -> None:
    await send(bench, "a", "stubborn")
    await send(bench, "b", "print 1")
    await until_running(bench, "a")
    waits = [asyncio.create_task(result_of(bench, cell)) for cell in ("a", "b")]
    await eventually(lambda: bench.launcher.ran)
    await bench.cells.aclose()
    lost, cancelled = await asyncio.gather(*waits, return_exceptions=True)
    assert isinstance(lost, CellResult)
    assert lost.outcome is Outcome.LOST
    assert isinstance(cancelled, Cancelled)
    assert list(bench.spool.iterdir()) == []
