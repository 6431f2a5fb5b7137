"""For every way a cell can end: what the agent reads, that it is true, and that it says what to do next."""

from __future__ import annotations

import asyncio

import pytest
from tests.host.cells import KERNEL, begin, cell, make_kernel, result_of, run
from tests.host.support import make_sandbox

from workbench.errors import Cancelled, Conflict, InvalidRequest, NotFound, SandboxUnavailable
from workbench.host_client.connection import HostConnection
from workbench.model.execution import MemoryState, Outcome
from workbench.model.process import Limit
from workbench.wire import host as wire
from workbench.wire import kernels

pytestmark = pytest.mark.isolation

IGNORES_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\nwhile True: pass"


async def test_a_value_its_output_and_the_receipt(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, epoch=7)
    await run(shared_host, sandbox, "x, y, z = [1], 2, 'gone'")
    result = await run(
        shared_host, sandbox, "import sys\nprint('out'); print('err', file=sys.stderr)\nx = [2]; del z\ny + 40"
    )
    assert result.outcome is Outcome.OK
    assert (result.results.text, result.stdout.text, result.stderr.text) == ("42", "out\n", "err\n")
    assert (result.error, result.explanation) == (None, "")
    receipt = result.receipt
    assert (receipt.epoch, receipt.state, receipt.execution_count) == (7, MemoryState.INTACT, 2)
    assert (receipt.added, receipt.removed, receipt.rebound) == (("sys",), ("z",), ("x",))
    assert receipt.working_folder == "/home/user"
    assert receipt.peak_memory_bytes > 0
    assert receipt.wall_s > 0


async def test_code_that_raises_shows_its_own_lines_and_none_of_ours(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, "def inner():\n    return {}['absent']\nprint('before')\ninner()")
    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert (result.error.name, result.error.message) == ("KeyError", "'absent'")
    assert "return {}['absent']" in result.error.traceback
    assert "workbench" not in result.error.traceback
    assert "\x1b" not in result.error.traceback
    assert result.stdout.text == "before\n"
    assert result.receipt.added == ("inner",)


@pytest.mark.parametrize(
    ("code", "hint"),
    [("prnt(1)", "Did you mean: 'print'?"), ("import math\nmath.squrt(4)", "Did you mean: 'sqrt'?")],
)
async def test_suggestions_are_kept(shared_host: HostConnection, code: str, hint: str) -> None:
    result = await run(shared_host, await make_kernel(shared_host), code)
    assert result.error is not None
    assert hint in result.error.message
    assert hint in result.error.traceback


async def test_code_that_does_not_compile(shared_host: HostConnection) -> None:
    result = await run(shared_host, await make_kernel(shared_host), "print('never')\nx = = 1")
    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert result.error.name == "SyntaxError"
    assert "line 2" in result.error.traceback
    assert result.stdout.text == ""


async def test_nobody_can_type(shared_host: HostConnection) -> None:
    result = await run(shared_host, await make_kernel(shared_host), "name = input('who? ')")
    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert "Put the value into the code" in result.error.message


@pytest.mark.parametrize("leaving", ["exit()", "quit()", "import sys; sys.exit()", "raise SystemExit"])
async def test_leaving_ends_the_cell_and_not_the_session(shared_host: HostConnection, leaving: str) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, f"kept = 1\n{leaving}\nnever = 1")
    assert result.outcome is Outcome.OK
    assert "the session and its variables live on" in result.corrections[0].text
    assert result.receipt.corrections == (result.corrections[0].text,)
    again = await run(shared_host, sandbox, "kept, 'never' in globals()")
    assert (again.results.text, again.receipt.state) == ("(1, False)", MemoryState.INTACT)


async def test_leaving_with_a_code_is_raised_with_that_code(shared_host: HostConnection) -> None:
    result = await run(shared_host, await make_kernel(shared_host), "import sys; sys.exit(3)")
    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert (result.error.name, result.error.message) == ("SystemExit", "3")


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import asyncio\nawait asyncio.sleep(600)", "!sleep 600", "import time; time.sleep(600)"],
)
async def test_at_its_limit_a_cell_is_interrupted_and_keeps_state_and_output(
    shared_host: HostConnection, code: str
) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, f"kept = 1\nprint('begun')\n{code}", limit_s=1.0)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.stdout.text == "begun\n"
    assert "limit of 1 s" in result.explanation
    assert result.receipt.state is MemoryState.INTACT
    assert (await run(shared_host, sandbox, "kept")).results.text == "1"


async def test_what_ignores_interrupts_is_ended_and_the_loss_is_told_with_the_new_epoch(
    shared_host: HostConnection,
) -> None:
    sandbox = await make_kernel(shared_host, epoch=3)
    await shared_host.ask(kernels.SetSnapshots(sandbox=sandbox, kernel=KERNEL, on=False), wire.Done)
    await run(shared_host, sandbox, "kept = 1")
    result = await run(shared_host, sandbox, IGNORES_INTERRUPTS, limit_s=0.5)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.stdout.text == "begun\n"
    assert (result.receipt.state, result.receipt.epoch) == (MemoryState.LOST, 4)
    assert "Variables are gone" in result.explanation
    assert "new kernel" in result.explanation
    after = await run(shared_host, sandbox, "'kept' in globals()")
    assert after.results.text == "False"
    assert (after.receipt.state, after.receipt.epoch, after.receipt.execution_count) == (MemoryState.INTACT, 4, 1)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os._exit(3)", "with code 3"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("import ctypes; ctypes.string_at(0)", "segmentation fault"),
    ],
)
async def test_a_kernel_that_dies_under_a_cell(shared_host: HostConnection, code: str, reason: str) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, f"print('last words')\n{code}")
    assert result.outcome is Outcome.LOST
    assert result.stdout.text == "last words\n"
    assert reason in result.explanation
    assert "import and define again" in result.explanation
    assert (result.receipt.state, result.receipt.epoch) == (MemoryState.LOST, 2)
    assert reason in result.receipt.reason
    assert (await run(shared_host, sandbox, "1 + 1")).results.text == "2"


async def test_a_crash_names_the_line_of_the_cell_and_no_path_of_ours(shared_host: HostConnection) -> None:
    result = await run(
        shared_host, await make_kernel(shared_host), "import ctypes\ndef crash():\n    ctypes.string_at(0)\ncrash()"
    )
    assert "Segmentation fault" in result.stderr.text
    assert "File <cell>, line 3 in crash" in result.stderr.text
    assert "workbench" not in result.stderr.text


async def test_out_of_memory_is_named_and_says_what_to_do(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, "x = []\nwhile True: x.append(bytearray(50_000_000))")
    if result.outcome is Outcome.RAISED:
        # Where the limit is an address space's, Python itself is told no.
        assert result.error is not None
        assert result.error.name == "MemoryError"
        return
    assert result.outcome is Outcome.LOST
    if Limit.MEMORY in result.limits:
        assert "out of memory" in result.explanation
        assert "larger tier" in result.explanation
    else:
        assert "memory" in result.explanation


async def test_a_death_between_cells_is_told_by_the_next_receipt_once(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    end = "def end():\n    print('parting words')\n    os._exit(9)"
    await run(shared_host, sandbox, f"import os, threading\n{end}\nthreading.Timer(0.2, end).start()")
    described = kernels.DescribeKernel(sandbox=sandbox, kernel=KERNEL)
    while (await shared_host.ask(described, kernels.KernelReport)).epoch == 1:
        await asyncio.sleep(0.01)
    told = await run(shared_host, sandbox, "1 + 1")
    assert (told.results.text, told.stdout.text) == ("2", "parting words\n")
    assert (told.receipt.state, told.receipt.epoch) == (MemoryState.RESTORED, 2)
    assert "with code 9" in told.receipt.reason
    assert (await run(shared_host, sandbox, "1")).receipt.state is MemoryState.INTACT


async def test_an_interrupt_is_told_as_one(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    request = await begin(shared_host, sandbox, "print('begun', flush=True)\nimport time; time.sleep(600)")
    await shared_host.ask(kernels.InterruptKernel(sandbox=sandbox, kernel=KERNEL), wire.Done)
    result = await result_of(shared_host, request)
    assert (result.outcome, result.stdout.text) == (Outcome.INTERRUPTED, "begun\n")
    assert result.receipt.state is MemoryState.INTACT


async def test_a_restart_loses_what_runs_and_what_waits_never_begins(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    first = await begin(shared_host, sandbox, "print('begun', flush=True)\nwhile True: pass")
    running = asyncio.create_task(result_of(shared_host, first))
    second = cell(sandbox, "1")
    waiting = asyncio.create_task(result_of(shared_host, second))
    described = kernels.DescribeKernel(sandbox=sandbox, kernel=KERNEL)
    while len((await shared_host.ask(described, kernels.KernelReport)).queue) < 2:
        await asyncio.sleep(0.01)
    report = await shared_host.ask(kernels.RestartKernel(sandbox=sandbox, kernel=KERNEL), kernels.KernelReport)
    assert report.epoch == 2
    lost = await running
    assert (lost.outcome, lost.stdout.text) == (Outcome.LOST, "begun\n")
    assert "restarted" in lost.explanation
    with pytest.raises(Cancelled, match="send it again"):
        await waiting


async def test_a_waiting_cell_can_be_cancelled_and_a_running_one_cannot(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    first = await begin(shared_host, sandbox, "print('begun', flush=True)\nimport time; time.sleep(600)")
    running = asyncio.create_task(result_of(shared_host, first))
    second = cell(sandbox, "1")
    waiting = asyncio.create_task(result_of(shared_host, second))
    described = kernels.DescribeKernel(sandbox=sandbox, kernel=KERNEL)
    while len(queue := (await shared_host.ask(described, kernels.KernelReport)).queue) < 2:
        await asyncio.sleep(0.01)
    assert [(one.cell, one.running) for one in queue] == [(first.cell, True), (second.cell, False)]
    with pytest.raises(Conflict, match="interrupt"):
        await shared_host.ask(kernels.CancelCell(sandbox=sandbox, cell=first.cell), wire.Done)
    await shared_host.ask(kernels.CancelCell(sandbox=sandbox, cell=second.cell), wire.Done)
    with pytest.raises(Cancelled):
        await waiting
    await shared_host.ask(kernels.InterruptKernel(sandbox=sandbox, kernel=KERNEL), wire.Done)
    assert (await running).outcome is Outcome.INTERRUPTED


async def test_a_sandbox_that_ends_under_a_cell_is_told_with_what_stays(shared_host: HostConnection) -> None:
    """Nothing inside can end pid 1; whoever closes it can, while someone else waits for the cell."""
    sandbox = await make_kernel(shared_host, files="kept")
    request = await begin(shared_host, sandbox, "print('begun', flush=True)\nwhile True: pass")
    waited = kernels.WaitCell(sandbox=sandbox, cell=request.cell, wait_s=30.0)
    waiting = asyncio.create_task(shared_host.ask(waited, kernels.CellReport))
    # Requests of one connection are taken up in the order they were written.
    await asyncio.sleep(0)
    await shared_host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
    result = (await waiting).result
    assert result is not None
    assert (result.outcome, result.stdout.text) == (Outcome.LOST, "begun\n")
    assert result.receipt.state is MemoryState.LOST
    assert "/mnt/files is kept" in result.explanation


async def test_what_never_began_is_an_error_that_names_the_thing(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    with pytest.raises(InvalidRequest, match="time limit"):
        await run(shared_host, sandbox, "1", limit_s=-1.0)
    with pytest.raises(NotFound, match="no-such"):
        await shared_host.ask(kernels.WaitCell(sandbox=sandbox, cell="no-such"), kernels.CellReport)
    with pytest.raises(NotFound):
        await run(shared_host, await make_sandbox(shared_host), "1")
    await shared_host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
    with pytest.raises((NotFound, SandboxUnavailable)):
        await run(shared_host, sandbox, "1")
