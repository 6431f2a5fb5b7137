"""A sandbox that nobody uses stands still, and is as it was for whoever comes next."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time

import pytest
from tests.host.cells import KERNEL, at_rest, begin, branch, cell, command, make_kernel, result_of, run, undo, value_of
from tests.host.support import (
    WAIT_S,
    alive,
    assert_nothing_left,
    descendants,
    eventually,
    groups_of,
    make_sandbox,
    mounts_of,
    read,
    run_folders,
    start_code,
    stop,
    whole_output,
)

from workbench.data_folder import DataFolder
from workbench.errors import Conflict, NotFound
from workbench.host.journal import unfinished
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.model.execution import Outcome
from workbench.model.ids import new_cell_id
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels
from workbench.wire.values import Value

pytestmark = pytest.mark.isolation
COUNTING = """
import threading, time
count = 0
def counting():
    global count
    while True:
        count += 1
        time.sleep(0.001)
threading.Thread(target=counting, daemon=True).start()
"""
WAKES_AFTER_S = 2.0
# SIGEV_SIGNAL, SIGCONT: to the process itself, once.
WAKES_ITSELF = (
    COUNTING
    + f"""
import ctypes
libc = ctypes.CDLL(None)
event = (ctypes.c_int * 16)(0, 0, 18, 0)
timer = ctypes.c_void_p()
set_up = libc.timer_create(1, event, ctypes.byref(timer))
when = (ctypes.c_long * 4)(0, 0, {int(WAKES_AFTER_S)}, 0)
set_up = set_up or libc.timer_settime(timer, 0, when, None)
"""
)
STANDS_S = 0.3
# A promise of 5 ms, on a machine that others use as well.
THAW_S = 0.05
# Below the time after which a sweep gives up on a group, and goes on to the next.
QUICKLY_S = 8.0


async def freeze(host: HostConnection, sandbox: str) -> bool:
    return (await host.ask(wire.FreezeSandbox(sandbox=sandbox), wire.FreezeReport)).frozen


async def frozen(host: HostConnection, sandbox: str) -> bool:
    return (await host.ask(wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport)).frozen


async def until_frozen(host: HostConnection, sandbox: str) -> None:
    """As soon as what the kernel does after a cell is done."""
    async with asyncio.timeout(WAIT_S):
        while not await freeze(host, sandbox):
            await asyncio.sleep(0.02)
    assert await frozen(host, sandbox)


async def cpu_s(host: HostConnection, sandbox: str) -> float:
    return (await host.ask(wire.MeasureSandbox(sandbox=sandbox), wire.UsageReport)).cpu_s


async def frozen_kernel(host: HostConnection, code: str = "kept = [1, 2]") -> str:
    sandbox = await make_kernel(host)
    assert (await run(host, sandbox, code)).outcome is Outcome.OK
    await until_frozen(host, sandbox)
    return sandbox


async def pid_of(host: HostConnection) -> int:
    return (await host.ask(wire.Status(), wire.StatusAnswer)).pid


async def test_a_thread_stands_still_while_frozen_and_counts_on_afterwards(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, COUNTING)
    await until_frozen(shared_host, sandbox)
    before = await cpu_s(shared_host, sandbox)
    await asyncio.sleep(STANDS_S)
    assert await cpu_s(shared_host, sandbox) == before
    assert await frozen(shared_host, sandbox), "looking does not thaw"
    first = int(await value_of(shared_host, sandbox, "count"))
    await asyncio.sleep(0.1)
    assert int(await value_of(shared_host, sandbox, "count")) > first
    assert not await frozen(shared_host, sandbox)


async def test_the_next_cell_finds_everything(shared_host: HostConnection) -> None:
    sandbox = await frozen_kernel(shared_host, "kept = {'a': [1, 2]}; again = kept['a']")
    result = await run(shared_host, sandbox, "again.append(3); kept")
    assert result.results.text == "{'a': [1, 2, 3]}"
    assert (result.receipt.epoch, result.receipt.state.value) == (1, "intact")


async def test_whatever_needs_the_sandbox_thaws_it(shared_host: HostConnection) -> None:
    sandbox = await frozen_kernel(shared_host)
    assert (await command(shared_host, sandbox, "echo here")).stdout.text == "here\n"
    about_it: list[tuple[wire.AnyRequest, type[Value]]] = [
        (kernels.ListVariables(sandbox=sandbox, kernel=KERNEL), kernels.VariableList),
        (kernels.UndoCells(sandbox=sandbox, kernel=KERNEL), kernels.UndoReport),
        (kernels.InterruptKernel(sandbox=sandbox, kernel=KERNEL), wire.Done),
        (wire.ThawSandbox(sandbox=sandbox), wire.Done),
        (kernels.SetSnapshots(sandbox=sandbox, kernel=KERNEL, on=False), wire.Done),
        (wire.ChangeTier(sandbox=sandbox, tier="medium"), wire.SandboxReport),
        (kernels.StartKernel(sandbox=sandbox, kernel="second", epoch=1), kernels.KernelReport),
        (kernels.EndKernel(sandbox=sandbox, kernel="second"), wire.Done),
        (kernels.RestartKernel(sandbox=sandbox, kernel=KERNEL), kernels.KernelReport),
    ]
    for request, answer in about_it:
        await until_frozen(shared_host, sandbox)
        async with asyncio.timeout(WAIT_S):
            await shared_host.ask(request, answer)
        assert not await frozen(shared_host, sandbox), type(request).__name__


async def test_undo_and_branch_find_the_memories_that_were_kept(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "x = 1")
    await at_rest(shared_host, sandbox)
    await run(shared_host, sandbox, "x = 2")
    await until_frozen(shared_host, sandbox)
    assert (await undo(shared_host, sandbox)).kernel.epoch == 2
    await until_frozen(shared_host, sandbox)
    await branch(shared_host, sandbox, "other")
    assert await value_of(shared_host, sandbox, "x", kernel="other") == "1"
    assert await value_of(shared_host, sandbox, "x") == "1"


async def test_both_sides_of_a_copy_are_thawed(shared_host: HostConnection) -> None:
    source = await frozen_kernel(shared_host, "kept = 'carried'")
    target = await make_kernel(shared_host)
    await until_frozen(shared_host, target)
    request = kernels.CopyInto(sandbox=source, kernel=KERNEL, to_sandbox=target, to_kernel=KERNEL)
    assert "kept" in (await shared_host.ask(request, kernels.CopyReport)).carried
    assert await value_of(shared_host, target, "kept") == "'carried'"


async def test_looking_does_not_thaw(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    ran = cell(sandbox, "print('said')")
    await result_of(shared_host, ran)
    await command(shared_host, sandbox, "sleep 1000 & echo $!")
    await until_frozen(shared_host, sandbox)
    looks: list[tuple[wire.AnyRequest, type[Value]]] = [
        (wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport),
        (wire.ListSandboxes(), wire.SandboxList),
        (wire.MeasureSandbox(sandbox=sandbox), wire.UsageReport),
        (kernels.DescribeKernel(sandbox=sandbox, kernel=KERNEL), kernels.KernelReport),
        (kernels.WaitCell(sandbox=sandbox, cell=ran.cell, wait_s=WAIT_S), kernels.CellReport),
        (kernels.ReadCell(sandbox=sandbox, cell=ran.cell, wait_s=WAIT_S), kernels.CellOutput),
        (kernels.ListProcesses(sandbox=sandbox), kernels.ProcessList),
        (kernels.ForgetCell(sandbox=sandbox, cell=ran.cell), wire.Done),
    ]
    for request, answer in looks:
        async with asyncio.timeout(WAIT_S):
            told = await shared_host.ask(request, answer)
        if isinstance(told, kernels.ProcessList):
            assert [one.command for one in told.processes] == ["sleep 1000"]
        assert await frozen(shared_host, sandbox), type(request).__name__


async def test_a_sandbox_in_use_is_not_frozen(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    running = await begin(shared_host, sandbox, "print('begun')\nwhile True: pass")
    assert not await freeze(shared_host, sandbox), "a cell runs"
    await shared_host.ask(kernels.InterruptKernel(sandbox=sandbox, kernel=KERNEL), wire.Done)
    await shared_host.ask(kernels.WaitCell(sandbox=sandbox, cell=running.cell, wait_s=WAIT_S), kernels.CellReport)
    await until_frozen(shared_host, sandbox)
    detached = kernels.RunCommand(sandbox=sandbox, cell=new_cell_id(), command="sleep 1000", limit_s=WAIT_S)
    await shared_host.ask(detached, kernels.CellReport)
    assert not await freeze(shared_host, sandbox), "a command runs that nobody waits for"
    await shared_host.ask(kernels.InterruptCommand(sandbox=sandbox, cell=detached.cell), wire.Done)
    await shared_host.ask(kernels.WaitCell(sandbox=sandbox, cell=detached.cell, wait_s=WAIT_S), kernels.CellReport)
    await until_frozen(shared_host, sandbox)
    await shared_host.ask(kernels.AttachKernel(sandbox=sandbox, kernel=KERNEL), kernels.AttachReport)
    assert not await freeze(shared_host, sandbox), "a notebook was let in just now"


async def test_a_plain_process_keeps_its_sandbox_thawed_until_it_ends(shared_host: HostConnection) -> None:
    sandbox = await make_sandbox(shared_host)
    process = await start_code(shared_host, sandbox, "import time; time.sleep(0.5); print('done')")
    assert not await freeze(shared_host, sandbox)
    assert await whole_output(shared_host, sandbox, process) == b"done\n"
    await until_frozen(shared_host, sandbox)
    again = await start_code(shared_host, sandbox, "print('again')")
    assert await whole_output(shared_host, sandbox, again) == b"again\n"


async def test_a_process_that_was_stopped_before_stays_stopped_after_a_thaw(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await command(shared_host, sandbox, "(while :; do date +%N > /tmp/now; done) & echo $! > /tmp/pid; kill -STOP $!")
    await until_frozen(shared_host, sandbox)
    asked = "grep State /proc/$(cat /tmp/pid)/status"
    assert "T (stopped)" in (await command(shared_host, sandbox, asked)).stdout.text


async def test_what_sets_a_timer_to_wake_itself_does_not_go_on(shared_host: HostConnection) -> None:
    """Control groups do not heed signals; without them, the next look stops it again."""
    sandbox = await make_kernel(shared_host)
    async with asyncio.timeout(WAIT_S):
        await shared_host.ask(cell(sandbox, WAKES_ITSELF), kernels.CellReport)
    await until_frozen(shared_host, sandbox)
    await asyncio.sleep(WAKES_AFTER_S)
    async with asyncio.timeout(WAIT_S):
        before = -1.0
        while (now := await cpu_s(shared_host, sandbox)) != before:
            before = now
            await asyncio.sleep(STANDS_S)
    assert await frozen(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, "set_up") == "0"


async def test_closing_if_frozen_is_refused_after_a_thaw(shared_host: HostConnection) -> None:
    sandbox = await frozen_kernel(shared_host)
    assert await value_of(shared_host, sandbox, "kept") == "[1, 2]"
    with pytest.raises(Conflict, match="not frozen"):
        await shared_host.ask(wire.CloseSandbox(sandbox=sandbox, if_frozen=True), wire.Done)
    assert await value_of(shared_host, sandbox, "kept") == "[1, 2]"
    await until_frozen(shared_host, sandbox)
    await shared_host.ask(wire.CloseSandbox(sandbox=sandbox, if_frozen=True), wire.Done)
    await shared_host.ask(wire.CloseSandbox(sandbox=sandbox, if_frozen=True), wire.Done)
    with pytest.raises(NotFound):
        await shared_host.ask(cell(sandbox, "1"), kernels.CellReport)


async def test_of_a_cell_and_a_conditional_end_at_once_exactly_one_happens(shared_host: HostConnection) -> None:
    for turn in range(6):
        sandbox = await frozen_kernel(shared_host)
        close, ran = wire.CloseSandbox(sandbox=sandbox, if_frozen=True), cell(sandbox, "kept")
        both = [shared_host.ask(close, wire.Done), shared_host.ask(ran, kernels.CellReport)]
        if turn % 2:
            both.reverse()
        told = await asyncio.gather(*both, return_exceptions=True)
        refused = [one for one in told if isinstance(one, Conflict | NotFound)]
        assert len(refused) == 1, told
        if isinstance(refused[0], Conflict):
            assert await value_of(shared_host, sandbox, "kept") == "[1, 2]"


async def test_a_thaw_costs_milliseconds(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, snapshots=False)
    taken: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(20):
        if turn % 2:
            await until_frozen(shared_host, sandbox)
        began = time.monotonic()
        await run(shared_host, sandbox, "1")
        taken[bool(turn % 2)].append(time.monotonic() - began)
    quick, after_frozen = (sorted(times)[len(times) // 2] for times in (taken[False], taken[True]))
    assert after_frozen < quick + THAW_S, taken


async def test_storms_of_freezing_and_cells_lose_no_cell_and_hang_nowhere(shared_host: HostConnection) -> None:
    rng = random.Random(7)
    sandboxes = [await make_kernel(shared_host) for _ in range(2)]
    over = asyncio.Event()

    async def freezing(sandbox: str) -> int:
        times = 0
        while not over.is_set():
            times += await freeze(shared_host, sandbox)
            await asyncio.sleep(rng.uniform(0, 0.01))
        return times

    async def cells(sandbox: str) -> None:
        await run(shared_host, sandbox, "seen = []")
        for number in range(40):
            # Sent and left alone, awaited, or beside it: each must have run exactly once in the end.
            if number % 3 == 0:
                await shared_host.ask(cell(sandbox, f"seen.append({number})", wait_s=0.0), kernels.CellReport)
            else:
                assert (await run(shared_host, sandbox, f"seen.append({number})")).outcome is Outcome.OK
            if number % 8 == 0:
                assert (await command(shared_host, sandbox, f"echo {number}")).stdout.text == f"{number}\n"
            await asyncio.sleep(rng.choice((0, 0, rng.uniform(0, 0.05))))
        assert await value_of(shared_host, sandbox, "seen == list(range(40))") == "True"

    async with asyncio.timeout(2 * WAIT_S):
        frosts = [asyncio.create_task(freezing(sandbox)) for sandbox in sandboxes for _ in range(2)]
        await asyncio.gather(*(cells(sandbox) for sandbox in sandboxes))
        over.set()
        assert sum(await asyncio.gather(*frosts)) > 0
    for sandbox in sandboxes:
        await until_frozen(shared_host, sandbox)


async def test_closing_a_frozen_sandbox_leaves_nothing(host: HostConnection, settings: Settings) -> None:
    sandbox = await frozen_kernel(host, COUNTING)
    await command(host, sandbox, "sleep 1000 &")
    await until_frozen(host, sandbox)
    (run_folder,) = DataFolder(settings.data_dir).run_folders()
    (root,) = [made.pid for made in unfinished(run_folder.journal) if made.sandbox == sandbox and made.pid is not None]
    inside = [root, *descendants(root)]
    groups = [group for group in groups_of(host.greeting.host) if str(root).encode() in read(f"{group}/cgroup.procs")]
    began = time.monotonic()
    await host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
    assert time.monotonic() - began < QUICKLY_S
    assert not [one for one in inside if alive(one)]
    assert not [group for group in groups if os.path.isdir(group)]
    await stop(host)
    assert_nothing_left(settings, [host.greeting.host], inside)


async def test_a_host_told_to_stop_ends_frozen_sandboxes(host: HostConnection, settings: Settings) -> None:
    pid = await pid_of(host)
    for _ in range(3):
        await frozen_kernel(host)
    pids = [pid, *descendants(pid)]
    await stop(host)
    assert_nothing_left(settings, [host.greeting.host], pids)


@pytest.mark.parametrize("with_guardian", [True, False])
async def test_a_host_killed_with_9_leaves_no_frozen_sandbox(
    host: HostConnection, settings: Settings, with_guardian: bool
) -> None:
    pid = await pid_of(host)
    sandboxes = [await frozen_kernel(host, COUNTING) for _ in range(3)]
    pids = [pid, *descendants(pid)]
    if not with_guardian:
        os.kill(next(one for one in pids if b"guardian" in read(f"/proc/{one}/cmdline")), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    if with_guardian:
        began = time.monotonic()
        assert_nothing_left(settings, [host.greeting.host], pids)
        assert time.monotonic() - began < QUICKLY_S
    async with await connect_or_start(settings, os.environ) as successor:
        eventually(lambda: not [one for one in pids if alive(one)], "everything of the dead host is gone")
        lost = (await successor.ask(wire.Status(), wire.StatusAnswer)).lost
        assert {one.sandbox for one in lost} == set(sandboxes)
        assert len(run_folders(settings)) == 1
        assert not groups_of(host.greeting.host)
        assert not [one for one in mounts_of(settings) if any(sandbox in one for sandbox in sandboxes)]
        await stop(successor)


async def test_a_draining_host_serves_a_frozen_sandbox_to_its_end(host: HostConnection, settings: Settings) -> None:
    sandbox = await frozen_kernel(host)
    await host.ask(wire.Drain(), wire.Done)
    async with await connect_or_start(settings, os.environ) as successor:
        assert successor.greeting.host != host.greeting.host
        assert await frozen(host, sandbox)
        assert await value_of(host, sandbox, "kept") == "[1, 2]"
        await until_frozen(host, sandbox)
        await host.ask(wire.CloseSandbox(sandbox=sandbox, if_frozen=True), wire.Done)
        eventually(lambda: len(run_folders(settings)) == 1, "it leaves with its last sandbox")
        await stop(successor)
