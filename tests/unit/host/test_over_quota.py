"""What cells and commands are told when /mnt/files is over its quota, and what becomes of those that run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.host.stand_ins import BOUND_S, Bench, eventually

from workbench.contracts.engine import OverQuota
from workbench.model.execution import CellResult, CommandResult, MemoryState, Outcome
from workbench.model.mounts import Quota
from workbench.wire import kernels as wire

OVER = OverQuota(bytes=11_000, files=7, quota=Quota(bytes=10_000, files=50))
WORDS = "/mnt/files is over its quota: it holds 11,000 of 10,000 bytes"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    made.cells.open()
    await made.cells.start_kernel(wire.StartKernel(sandbox="sb", kernel="main", epoch=1))
    yield made
    for process in made.sandbox.started:
        process.end(None, 9)
        process.close()
    await made.cells.aclose()


def tell(bench: Bench, over: OverQuota | None = OVER) -> None:
    bench.sandbox.over = over
    if over is not None:
        bench.sandbox.over_told.put_nowait(over)


async def begin(bench: Bench, cell: str, code: str, kernel: str = "main") -> None:
    await bench.cells.run_cell(wire.RunCell(sandbox="sb", kernel=kernel, cell=cell, code=code, limit_s=BOUND_S))


async def end(bench: Bench, cell: str) -> CellResult | CommandResult:
    report = await bench.cells.wait_cell(wire.WaitCell(sandbox="sb", cell=cell, wait_s=BOUND_S))
    result = report.result or report.command_result
    assert result is not None
    return result


async def run(bench: Bench, cell: str, code: str) -> CellResult | CommandResult:
    await begin(bench, cell, code)
    return await end(bench, cell)


async def test_running_cells_of_all_kernels_and_commands_are_interrupted_and_told_why(bench: Bench) -> None:
    await bench.cells.start_kernel(wire.StartKernel(sandbox="sb", kernel="other", epoch=1))
    await begin(bench, "c-1", "hang")
    await begin(bench, "c-2", "hang", kernel="other")
    await bench.cells.run_command(wire.RunCommand(sandbox="sb", cell="s-1", command="yes", limit_s=BOUND_S))
    await eventually(lambda: bench.launcher.ran == ["hang", "hang"] and bench.sandbox.started)
    tell(bench)
    bench.sandbox.started[0].close()
    for cell in ("c-1", "c-2", "s-1"):
        result = await end(bench, cell)
        assert result.outcome is Outcome.INTERRUPTED
        assert f"interrupted: {WORDS}. " in result.explanation
        assert result.explanation.count("over its quota") == 1
        assert "Delete files there" in result.explanation
    assert not any(kernel.closed for kernel in bench.launcher.kernels)


async def test_what_runs_while_it_is_over_is_told_so_until_it_is_not(bench: Bench) -> None:
    tell(bench)
    ok, raised = await run(bench, "c-1", "print x"), await run(bench, "c-2", "raise x")
    assert (ok.outcome, raised.outcome) == (Outcome.OK, Outcome.RAISED)
    assert ok.explanation.startswith(f"{WORDS}. Delete files there")
    assert raised.explanation == ok.explanation
    bench.sandbox.over = None
    assert (await run(bench, "c-3", "print x")).explanation == ""


async def test_what_took_its_files_back_when_it_was_interrupted_is_not_told_to_delete_any(bench: Bench) -> None:
    await begin(bench, "c-1", "hang")
    await eventually(lambda: bench.launcher.ran == ["hang"])
    bench.sandbox.over_told.put_nowait(OVER)
    result = await end(bench, "c-1")
    assert result.outcome is Outcome.INTERRUPTED
    assert WORDS in result.explanation
    assert "Delete" not in result.explanation


async def test_the_next_time_interrupts_again(bench: Bench) -> None:
    for cell in ("0", "1"):
        await begin(bench, cell, "hang")
        await eventually(lambda: bench.launcher.ran)
        tell(bench)
        assert (await end(bench, cell)).outcome is Outcome.INTERRUPTED
        bench.launcher.ran.clear()


async def test_files_are_told_by_their_number_and_both_if_both_are_too_many(bench: Bench) -> None:
    tell(bench, replace(OVER, bytes=1, files=5100))
    assert "it holds 5,100 of 50 files. " in (await run(bench, "c-1", "print x")).explanation
    tell(bench, replace(OVER, files=51))
    both = (await run(bench, "c-2", "print x")).explanation
    assert "it holds 11,000 of 10,000 bytes and 51 of 50 files. " in both


async def test_who_ran_on_after_it_and_is_interrupted_by_request_is_told_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(bench, "c-1", "hang")
    await bench.cells.run_command(wire.RunCommand(sandbox="sb", cell="s-1", command="yes", limit_s=BOUND_S))
    await eventually(lambda: bench.launcher.ran and bench.sandbox.started)
    command, swallowed = bench.sandbox.started[0], list[int]()

    async def swallow() -> None:
        swallowed.append(1)

    with monkeypatch.context() as swallowing:
        swallowing.setattr(bench.launcher.last, "interrupt", swallow)
        command.dies_of = set()
        tell(bench)
        await eventually(lambda: swallowed and command.signals)
    command.dies_of = {2}
    await bench.cells.interrupt_kernel(wire.InterruptKernel(sandbox="sb", kernel="main"))
    await bench.cells.interrupt_command(wire.InterruptCommand(sandbox="sb", cell="s-1"))
    command.close()
    for cell in ("c-1", "s-1"):
        result = await end(bench, cell)
        assert result.outcome is Outcome.INTERRUPTED
        assert "interrupted by request. " in result.explanation
        assert f" {WORDS}. Delete files there" in result.explanation, "which is so all the same"


@pytest.mark.parametrize("code", ["print x", "hang"])
async def test_a_sandbox_that_ends_when_the_files_are_looked_at_is_told_as_gone(bench: Bench, code: str) -> None:
    await begin(bench, "c-1", f"wait {code}" if code == "print x" else code)
    await bench.cells.run_command(wire.RunCommand(sandbox="sb", cell="s-1", command="yes", limit_s=BOUND_S))
    await eventually(lambda: bench.launcher.ran and bench.sandbox.started)
    bench.sandbox.gone = "disk full: /mnt/files holds 30 of 10 bytes"
    bench.launcher.gate.set()
    if code == "hang":
        bench.sandbox.over_told.put_nowait(OVER)
    else:
        bench.sandbox.started[0].end(0)
    bench.sandbox.started[0].close()
    for cell in ("c-1", "s-1"):
        result = await end(bench, cell)
        assert result.outcome is (Outcome.OK if code == "print x" else Outcome.INTERRUPTED)
        assert "disk full: /mnt/files holds 30 of 10 bytes. Variables, /home/user and /tmp are gone" in (
            result.explanation
        )
        assert "Delete" not in result.explanation
        assert "keep the values" not in result.explanation
        assert (result.receipt.state, result.receipt.epoch) == (MemoryState.LOST, 1)
        assert result.receipt.reason == "the sandbox ended: disk full: /mnt/files holds 30 of 10 bytes"
