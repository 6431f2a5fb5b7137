"""Undo: memory as it was so many cells ago, files as they are, and nothing changed when it cannot be had."""

from __future__ import annotations

import asyncio

import pytest
from tests.host.cells import (
    KERNEL,
    at_rest,
    begin,
    cell,
    described,
    make_kernel,
    result_of,
    run,
    undo,
    until_affordable,
    value_of,
)

from workbench.errors import Cancelled, Conflict, InvalidRequest
from workbench.host_client.connection import HostConnection
from workbench.model.execution import MemoryState, Outcome
from workbench.model.ids import new_sandbox_id
from workbench.wire import host as wire
from workbench.wire import kernels

pytestmark = pytest.mark.isolation

MIB = 2**20


async def counted(host: HostConnection, cells: int) -> str:
    """A sandbox whose list has a number from each of its cells, the first is 0."""
    sandbox = await make_kernel(host)
    for number in range(cells):
        await run(host, sandbox, f"seen = globals().get('seen', []); seen.append({number})")
        await until_affordable(host, sandbox)
    return sandbox


@pytest.mark.parametrize("cells", [1, 2])
async def test_undo_goes_back_over_so_many_cells(shared_host: HostConnection, cells: int) -> None:
    sandbox = await counted(shared_host, 4)
    report = await undo(shared_host, sandbox, cells)
    assert (report.kernel.epoch, report.kernel.execution_count) == (2, 4 - cells)
    assert report.not_carried == ""
    after = await run(shared_host, sandbox, "seen, len(In)")
    assert after.results.text == f"({list(range(4 - cells))}, {4 - cells + 2})"
    assert (after.receipt.epoch, after.receipt.execution_count) == (2, 4 - cells + 1)
    assert (after.receipt.state, after.receipt.reason) == (MemoryState.INTACT, ""), "it was asked for"


async def test_undo_further_than_is_kept_changes_nothing_and_says_how_far_one_can_go(
    shared_host: HostConnection,
) -> None:
    sandbox = await counted(shared_host, 6)
    for cells in (3, 5, 7, 100):
        with pytest.raises(Conflict, match="1 or 2 or 6 cells"):
            await undo(shared_host, sandbox, cells)
    after = await run(shared_host, sandbox, "seen")
    assert (after.results.text, after.receipt.epoch) == ("[0, 1, 2, 3, 4, 5]", 1)
    assert after.receipt.snapshot.current
    for cells in (0, -1):
        with pytest.raises(InvalidRequest, match="1 cell or more"):
            await undo(shared_host, sandbox, cells)


async def test_undo_further_than_to_the_beginning_says_that_one_can_go_there(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 1)
    with pytest.raises(Conflict, match="go back over 1 cells now"):
        await undo(shared_host, sandbox, 5)
    await undo(shared_host, sandbox, 1)


async def test_undo_to_the_very_beginning(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 2)
    report = await undo(shared_host, sandbox, 2)
    assert (report.kernel.epoch, report.kernel.execution_count) == (2, 0)
    assert await value_of(shared_host, sandbox, "'seen' in globals(), len(In)") == "(False, 2)"
    await undo(shared_host, sandbox, 1)
    await run(shared_host, sandbox, "seen = ['again']")
    assert await value_of(shared_host, sandbox, "seen") == "['again']"
    with pytest.raises(Conflict):
        await undo(shared_host, sandbox, 3)


async def test_undo_of_a_session_in_which_nothing_ran(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    with pytest.raises(Conflict):
        await undo(shared_host, sandbox, 1)
    assert (await described(shared_host, sandbox)).epoch == 1
    assert await value_of(shared_host, sandbox, "1 + 1") == "2"


async def test_undo_to_the_beginning_has_what_the_start_up_code_made_and_does_not_run_it_again(
    shared_host: HostConnection,
) -> None:
    sandbox = await make_kernel(shared_host, start_up="made = [0]\nopen('/mnt/files/runs', 'a').write('x')")
    await run(shared_host, sandbox, "made.append(1)")
    await undo(shared_host, sandbox, 1)
    assert await value_of(shared_host, sandbox, "made, open('/mnt/files/runs').read()") == "([0], 'x')"


async def test_undo_while_a_cell_runs_is_refused_and_touches_neither_it_nor_what_waits(
    shared_host: HostConnection,
) -> None:
    sandbox = await counted(shared_host, 3)
    running = await begin(
        shared_host, sandbox, "print('begun', flush=True)\nimport time; time.sleep(1); seen.append(3)"
    )
    waiting = cell(sandbox, "seen.append(4)", wait_s=0.0)
    await shared_host.ask(waiting, kernels.CellReport)
    with pytest.raises(Conflict, match="is running"):
        await undo(shared_host, sandbox)
    assert (await result_of(shared_host, running)).outcome is Outcome.OK
    assert (await result_of(shared_host, waiting)).outcome is Outcome.OK
    assert await value_of(shared_host, sandbox, "seen") == "[0, 1, 2, 3, 4]"


async def test_what_waits_when_an_undo_comes_either_never_begins_or_the_undo_is_refused(
    shared_host: HostConnection,
) -> None:
    """They meet at any moment: in each round exactly one of the two has happened."""
    sandbox = await counted(shared_host, 2)
    await run(shared_host, sandbox, "seen = []")
    cancelled = 0
    for number in range(12):
        await run(shared_host, sandbox, f"undone = {number}")
        queued = [cell(sandbox, f"seen.append({number})", wait_s=0.0) for _ in range(2)]
        answers = await asyncio.gather(
            *(shared_host.ask(one, kernels.CellReport) for one in queued),
            undo(shared_host, sandbox),
            return_exceptions=True,
        )
        ended = await asyncio.gather(*(result_of(shared_host, one) for one in queued), return_exceptions=True)
        ran = [one for one in ended if not isinstance(one, BaseException)]
        assert all(isinstance(one, Cancelled) for one in ended if isinstance(one, BaseException)), ended
        seen = await value_of(shared_host, sandbox, f"seen.count({number}), globals().get('undone')")
        if isinstance(answers[-1], BaseException):
            assert isinstance(answers[-1], Conflict), answers[-1]
            assert (len(ran), seen) == (2, f"(2, {number})")
        else:
            cancelled += 2 - len(ran)
            assert seen.startswith(f"({0 if not ran else len(ran) - 1},"), (seen, len(ran))
        await until_affordable(shared_host, sandbox)


async def test_an_undo_that_is_refused_does_not_touch_what_waits(
    shared_host: HostConnection,
) -> None:
    sandbox = new_sandbox_id()
    await shared_host.ask(wire.CreateSandbox(sandbox=sandbox, kernel=True), wire.SandboxReport)
    start = kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=1, start_up="import time; time.sleep(1.5)")
    starting = asyncio.create_task(shared_host.ask(start, kernels.KernelReport))
    await asyncio.sleep(0)
    waiting = cell(sandbox, "ran = 1", wait_s=0.0)
    await shared_host.ask(waiting, kernels.CellReport)
    with pytest.raises(Conflict):
        await undo(shared_host, sandbox)
    await starting
    assert (await result_of(shared_host, waiting)).outcome is Outcome.OK


async def test_random_numbers_go_on_as_they_did_the_first_time(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(
        shared_host,
        sandbox,
        "import random, numpy as np\nrandom.seed(1); np.random.seed(1)\n"
        "generator = np.random.default_rng(1); dice = random.Random(1)",
    )
    # Not seeded again: somewhere in the middle of each.
    draw = "[random.random(), np.random.random(), generator.random(), dice.random(), random.gauss(0, 1)]"
    await run(shared_host, sandbox, draw)
    await until_affordable(shared_host, sandbox)
    first = await value_of(shared_host, sandbox, draw)
    for _ in range(3):
        await until_affordable(shared_host, sandbox)
        await undo(shared_host, sandbox)
        assert await value_of(shared_host, sandbox, draw) == first
    crash = await run(shared_host, sandbox, f"{draw}; import os; os._exit(1)")
    assert crash.receipt.state is MemoryState.RESTORED
    second = await value_of(shared_host, sandbox, draw)
    await until_affordable(shared_host, sandbox)
    await undo(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, draw) == second != first


async def test_unseeded_random_numbers_are_the_same_again_after_an_undo(shared_host: HostConnection) -> None:
    """Without a seed as well: the state is part of the memory."""
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "import random, numpy as np; generator = np.random.default_rng()")
    await until_affordable(shared_host, sandbox)
    draw = "random.random(), np.random.random(), generator.random()"
    first = await value_of(shared_host, sandbox, draw)
    await until_affordable(shared_host, sandbox)
    await undo(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, draw) == first


async def test_undo_run_undo(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 5)
    await undo(shared_host, sandbox, 1)
    await run(shared_host, sandbox, "seen.append('other')")
    await until_affordable(shared_host, sandbox)
    await undo(shared_host, sandbox, 1)
    assert await value_of(shared_host, sandbox, "seen") == "[0, 1, 2, 3]"
    await until_affordable(shared_host, sandbox)
    report = await undo(shared_host, sandbox, 2)
    assert (report.kernel.epoch, report.kernel.execution_count) == (4, 3)
    assert await value_of(shared_host, sandbox, "seen") == "[0, 1, 2]"


async def test_undo_one_by_one_goes_as_far_as_undo_of_many(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 5)
    for expected in ("[0, 1, 2, 3]", "[0, 1, 2]"):
        await undo(shared_host, sandbox, 1)
        variables = await shared_host.ask(kernels.ListVariables(sandbox=sandbox, kernel=KERNEL), kernels.VariableList)
        assert {one.name: one.preview for one in variables.variables}["seen"] == expected


async def test_a_cell_that_raised_and_one_that_was_interrupted_can_be_undone(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 2)
    await run(shared_host, sandbox, "seen.append('raised'); 1 / 0")
    await until_affordable(shared_host, sandbox)
    await undo(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, "seen") == "[0, 1]"
    await run(shared_host, sandbox, "seen.append('late')\nwhile True: pass", limit_s=0.3)
    await until_affordable(shared_host, sandbox)
    await undo(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, "seen") == "[0, 1]"


async def test_a_cell_that_ended_its_kernel_is_undone_already(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 3)
    await run(shared_host, sandbox, "seen.append('crash'); import os; os._exit(1)")
    assert (await at_rest(shared_host, sandbox)).execution_count == 3
    report = await undo(shared_host, sandbox, 1)
    assert (report.kernel.epoch, report.kernel.execution_count) == (3, 2)
    assert await value_of(shared_host, sandbox, "seen") == "[0, 1]"


async def test_deleted_and_rebound_names_are_back(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(
        shared_host, sandbox, "import math\nclass Point:\n    x = 1\nkept, gone, alias = [1], {2}, math\nsame = kept"
    )
    await until_affordable(shared_host, sandbox)
    await run(
        shared_host, sandbox, "del gone, math, Point\nkept = same = 'other'\nprint = None\n_ = __builtins__.__dict__"
    )
    await undo(shared_host, sandbox)
    told = "kept, gone, alias is math, Point().x, same is kept, callable(print)"
    assert await value_of(shared_host, sandbox, told) == "([1], {2}, True, 1, True, True)"


async def test_a_large_table_is_undone(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    make = "import numpy as np, pandas as pd\nframe = pd.DataFrame(np.ones((2_500_000, 10)))"
    await run(shared_host, sandbox, f"{make}\nframe.memory_usage().sum()")
    await until_affordable(shared_host, sandbox)
    await run(shared_host, sandbox, "frame.iloc[:, 0] = 2.0")
    report = await undo(shared_host, sandbox)
    assert report.kernel.epoch == 2
    assert await value_of(shared_host, sandbox, "float(frame.sum().sum()), len(frame)") == "(25000000.0, 2500000)"


async def test_without_snapshots_undo_says_why_not(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 3)
    await at_rest(shared_host, sandbox)
    await shared_host.ask(kernels.SetSnapshots(sandbox=sandbox, kernel=KERNEL, on=False), wire.Done)
    for cells in (1, 2):
        with pytest.raises(Conflict, match="switched off"):
            await undo(shared_host, sandbox, cells)
    assert await value_of(shared_host, sandbox, "seen") == "[0, 1, 2]"
    assert (await described(shared_host, sandbox)).epoch == 1


async def test_files_are_not_undone(shared_host: HostConnection) -> None:
    sandbox = await counted(shared_host, 2)
    await run(shared_host, sandbox, "open('/mnt/files/a', 'w').write('1'); open('/home/user/b', 'w').write('2')")
    await run(shared_host, sandbox, "import os; os.remove('/home/user/b'); import tempfile")
    await until_affordable(shared_host, sandbox)
    await undo(shared_host, sandbox, 2)
    assert await value_of(shared_host, sandbox, "open('/mnt/files/a').read(), __import__('os').listdir('.')") == (
        "('1', [])"
    )


async def test_a_temporary_folder_that_the_memory_still_has_is_still_there_after_an_undo(
    shared_host: HostConnection,
) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "import os, tempfile\nfolder = tempfile.TemporaryDirectory()")
    await until_affordable(shared_host, sandbox)
    await run(shared_host, sandbox, "x = 1")
    await undo(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, "os.path.isdir(folder.name)") == "True"


async def test_every_cell_that_was_sent_has_happened_exactly_once(shared_host: HostConnection) -> None:
    """Through crashes, undos, branches and ends: effects outside of the kernel are counted."""
    sandbox = await make_kernel(shared_host)
    sent: list[str] = []

    def noted(code: str) -> str:
        sent.append(f"c{len(sent)}")
        return f"with open('/mnt/files/log', 'a') as log: _ = log.write('{sent[-1]}\\n')\n{code}"

    async def send(code: str, kernel: str = KERNEL, limit_s: float = 30.0) -> None:
        await run(shared_host, sandbox, noted(code), limit_s, kernel)

    branch = kernels.BranchKernel(sandbox=sandbox, kernel=KERNEL, branch="b", epoch=1)
    await send("import os; x = 0")
    for number in range(3):
        await send("x += 1")
        await send("import ctypes; ctypes.string_at(0)")
        await send("x += 1")
        await undo(shared_host, sandbox, 1)
        await send("os._exit(1)")
        await shared_host.ask(branch, kernels.BranchReport)
        await send("x += 1", "b")
        await send("os.kill(os.getpid(), 9)", "b")
        await send("1 / 0", "b")
        if number == 1:
            await send("import signal; signal.signal(2, signal.SIG_IGN)\nwhile True: pass", limit_s=0.2)
        await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel="b"), wire.Done)
        queued = [cell(sandbox, noted("os._exit(2)" if one == 1 else "x += 1"), wait_s=0.0) for one in range(4)]
        for one in queued:
            await shared_host.ask(one, kernels.CellReport)
        for one in queued:
            await result_of(shared_host, one)
        with pytest.raises(Conflict):
            await undo(shared_host, sandbox, 99)
    log = await value_of(shared_host, sandbox, "open('/mnt/files/log').read()")
    assert log == repr("".join(f"{one}\n" for one in sent))
