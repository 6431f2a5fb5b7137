"""Commands for bash: their ends, their output, and what they leave behind."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.host.stand_ins import BOUND_S, Bench, StandInProcess, eventually

from workbench.contracts.engine import RunningProcess
from workbench.errors import Conflict, InvalidRequest, SandboxUnavailable
from workbench.model.execution import CommandResult, MemoryState, Outcome
from workbench.model.ids import ProcessId
from workbench.model.process import Stream
from workbench.wire import kernels as wire


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for process in made.sandbox.started:
        process.end(None, 9)
    await made.cells.aclose()


async def begin(bench: Bench, cell: str = "s-1", command: str = "ls", limit_s: float = BOUND_S) -> StandInProcess:
    before = len(bench.sandbox.started)
    request = wire.RunCommand(sandbox="sb", cell=cell, command=command, limit_s=limit_s, epoch=3)
    await bench.cells.run_command(request)
    await eventually(lambda: len(bench.sandbox.started) > before)
    return bench.sandbox.started[before]


async def result_of(bench: Bench, cell: str = "s-1") -> CommandResult:
    report = await bench.cells.wait_cell(wire.WaitCell(sandbox="sb", cell=cell, wait_s=BOUND_S))
    assert report.command_result is not None
    return report.command_result


def running(pid: int, group: int, started_as: str | None = None, parent: int = 1) -> RunningProcess:
    identity = ProcessId(started_as) if started_as else None
    return RunningProcess(
        pid=pid,
        group=group,
        parent=parent,
        started_as=identity,
        command=f"prog {pid}",
        for_s=1.0,
        memory_bytes=4096,
    )


async def test_a_command_has_its_output_its_exit_code_and_a_receipt(bench: Bench) -> None:
    process = await begin(bench)
    assert process.spec.argv == ("/bin/bash", "-c", "ls")
    assert process.spec.cwd == "/home/user"
    process.say("\u4f60".encode()[:2])
    process.say("\u4f60".encode()[2:] + b"\nb\n\xff")
    process.say(b"err", Stream.STDERR)
    process.end(2)
    process.close()
    result = await result_of(bench)
    assert (result.outcome, result.exit_code) == (Outcome.RAISED, 2)
    assert (result.stdout.text, result.stdout.lines) == ("\u4f60\nb\n\ufffd", 3)
    assert result.stderr.text == "err"
    receipt = result.receipt
    assert (receipt.epoch, receipt.execution_count, receipt.state) == (3, 0, MemoryState.INTACT)
    assert (receipt.working_folder, receipt.cpu_s) == ("/home/user", 0.25)


async def test_the_receipt_has_the_epoch_of_the_kernel_if_there_is_one(bench: Bench) -> None:
    await bench.cells.start_kernel(wire.StartKernel(sandbox="sb", kernel="main", epoch=8))
    process = await begin(bench)
    process.end(0)
    process.close()
    assert (await result_of(bench)).receipt.epoch == 8


async def test_what_a_background_process_says_later_is_read_but_not_the_commands(bench: Bench) -> None:
    process = await begin(bench)
    process.say(b"before")
    process.end(0)
    result = await result_of(bench)
    assert result.outcome is Outcome.OK
    assert result.stdout.text == "before"
    assert process.signals == [], "what was left behind lives on"
    process.say(b"after")
    await eventually(process._chunks.empty)
    page = await bench.cells.read_cell(wire.ReadCell(sandbox="sb", cell="s-1"))
    assert [piece.text for piece in page.pieces] == ["before"]
    assert page.ended


async def test_at_the_limit_the_group_is_asked_and_then_killed(bench: Bench) -> None:
    process = await begin(bench, limit_s=0.02)
    process.dies_of = {9}
    process.say(b"half")
    result = await result_of(bench)
    assert process.signals == [signal.SIGTERM, signal.SIGKILL]
    assert (result.outcome, result.exit_code) == (Outcome.TIMED_OUT, 137)
    assert result.stdout.text == "half"
    assert "limit of 0.02 s" in result.explanation
    assert "124" in result.explanation


async def test_children_that_outlive_bash_at_the_limit_are_killed_as_well(bench: Bench) -> None:
    process = await begin(bench, limit_s=0.02)
    bench.sandbox.listed = (running(7, 7, process.spec.id), running(8, 7))
    await eventually(lambda: len(bench.sandbox.started) == 2)
    killer = bench.sandbox.started[1]
    assert killer.spec.argv == ("/bin/bash", "-c", "kill -KILL -- -7")
    bench.sandbox.listed = ()
    killer.end(0)
    assert (await result_of(bench)).outcome is Outcome.TIMED_OUT


async def test_an_interrupted_command_says_so(bench: Bench) -> None:
    process = await begin(bench)
    await eventually(lambda: bench.cells._commands._under_way)
    await bench.cells.interrupt_command(wire.InterruptCommand(sandbox="sb", cell="s-1"))
    assert process.signals == [signal.SIGINT]
    result = await result_of(bench)
    assert (result.outcome, result.exit_code) == (Outcome.INTERRUPTED, 130)


async def test_a_command_whose_sandbox_ended_is_lost(bench: Bench) -> None:
    process = await begin(bench)
    process.end(None, reason="disk full")
    process.close()
    result = await result_of(bench)
    assert (result.outcome, result.exit_code) == (Outcome.LOST, None)
    assert "disk full" in result.explanation
    assert result.receipt.state is MemoryState.LOST


async def test_a_command_that_cannot_start_is_an_error(bench: Bench) -> None:
    bench.sandbox.gone = "closed"
    with pytest.raises(SandboxUnavailable):
        await begin(bench)
    bench.sandbox.gone = ""
    with pytest.raises(InvalidRequest, match="NUL"):
        await begin(bench, command="a\0b")


async def test_two_commands_run_at_once_and_one_id_is_one_command(bench: Bench) -> None:
    first, second = await begin(bench, "s-1"), await begin(bench, "s-2")
    with pytest.raises(Conflict):
        await begin(bench, "s-1", command="other")
    with pytest.raises(Conflict, match="interrupt it"):
        bench.cells.cancel_cell(wire.CancelCell(sandbox="sb", cell="s-1"))
    second.end(0)
    second.close()
    assert (await result_of(bench, "s-2")).outcome is Outcome.OK
    first.end(0)
    first.close()
    assert (await result_of(bench, "s-1")).outcome is Outcome.OK


async def test_the_background_is_what_nobody_waits_for(bench: Bench) -> None:
    process = await begin(bench)
    await eventually(lambda: bench.cells._commands._under_way)
    bench.sandbox.listed = (
        running(2, 2, "k-main-1"), running(3, 2, parent=2), running(7, 7, process.spec.id), running(8, 7),
        running(9, 5),
    )  # fmt: skip
    listed = (await bench.cells.list_processes()).processes
    assert [(one.pid, one.command) for one in listed] == [(3, "prog 3"), (9, "prog 9")]
