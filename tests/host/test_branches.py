"""Branches: the same memory twice, and from then on two sessions that know nothing of each other."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest
from tests.host.cells import (
    KERNEL,
    at_rest,
    begin,
    branch,
    command,
    described,
    make_kernel,
    past_epoch,
    result_of,
    run,
    undo,
    until_affordable,
    value_of,
)
from tests.host.support import stop

from workbench.errors import Conflict, NotFound
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.model.capability import Level
from workbench.model.execution import MemoryState, Outcome
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels

MADE = """\
import asyncio, concurrent.futures, logging, multiprocessing, os, sys, threading
import numpy as np, matplotlib.pyplot as plt
xs, seen = [1, 2, 3], []
counter = iter(range(100)); next(counter)
held_out, held_print = sys.stdout, print
logger = logging.getLogger('mine'); logger.addHandler(logging.StreamHandler(sys.stdout)); logger.setLevel('INFO')
pool = concurrent.futures.ThreadPoolExecutor(3)
_ = list(pool.map(abs, range(10)))
loop = asyncio.new_event_loop(); _ = pool.submit(loop.run_until_complete, asyncio.sleep(0)).result()
book = open('/tmp/book', 'w+'); _ = book.write('0123456789'); _ = book.flush(); _ = book.seek(4)
lines = open('/etc/passwd'); first = lines.readline()
"""


async def two(host: HostConnection, code: str = MADE, **fields: object) -> str:
    """A sandbox with `main` and a branch `b` of it."""
    sandbox = await make_kernel(host, **fields)  # type: ignore[arg-type]
    assert (await run(host, sandbox, code)).error is None
    report = await branch(host, sandbox, "b", epoch=7)
    assert (report.kernel.kernel, report.kernel.epoch, report.kernel.execution_count) == ("b", 7, 1)
    return sandbox


async def test_both_have_the_same_memory_and_are_independent_from_then_on(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    assert await value_of(shared_host, sandbox, "xs.append('b'); x = 1; xs", "b") == "[1, 2, 3, 'b']"
    main = await run(shared_host, sandbox, "xs.append('main'); y = 2; xs, 'x' in globals(), next(counter), len(In)")
    assert main.results.text == "([1, 2, 3, 'main'], False, 1, 3)"
    assert (main.receipt.epoch, main.receipt.state, main.receipt.execution_count) == (1, MemoryState.INTACT, 2)
    other = await run(shared_host, sandbox, "xs, 'y' in globals(), next(counter), len(In)", kernel="b")
    assert other.results.text == "([1, 2, 3, 'b'], False, 1, 4)"
    assert (other.receipt.epoch, other.receipt.state, other.receipt.execution_count) == (7, MemoryState.INTACT, 3)
    assert await value_of(shared_host, sandbox, "os.getpid()") != await value_of(
        shared_host, sandbox, "os.getpid()", "b"
    )


async def test_a_branch_of_a_branch(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    await run(shared_host, sandbox, "xs.append('b')", kernel="b")
    await branch(shared_host, sandbox, "c", kernel="b")
    await branch(shared_host, sandbox, "d", kernel="c")
    for name in ("c", "d"):
        await run(shared_host, sandbox, f"xs.append('{name}')", kernel=name)
    seen = [await value_of(shared_host, sandbox, "xs[3:]", name) for name in (KERNEL, "b", "c", "d")]
    assert seen == ["[]", "['b']", "['b', 'c']", "['b', 'd']"]


async def test_the_same_branch_again_is_the_same_kernel(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    await run(shared_host, sandbox, "xs.append('b')", kernel="b")
    again = await asyncio.gather(*(branch(shared_host, sandbox, "b", epoch=7) for _ in range(3)))
    assert {one.kernel.epoch for one in again} == {7}
    assert await value_of(shared_host, sandbox, "xs[3:]", "b") == "['b']"
    news = await asyncio.gather(*(branch(shared_host, sandbox, "new") for _ in range(4)))
    assert {one.kernel.kernel for one in news} == {"new"}
    await run(shared_host, sandbox, "xs.append('new')", kernel="new")
    assert await value_of(shared_host, sandbox, "xs[3:]", "new") == "['new']"
    with pytest.raises(NotFound):
        await branch(shared_host, sandbox, "other", kernel="absent")


@pytest.mark.parametrize(("ended", "living"), [(KERNEL, "b"), ("b", KERNEL)])
async def test_when_one_of_them_ends_the_other_lives(shared_host: HostConnection, ended: str, living: str) -> None:
    sandbox = await two(shared_host)
    await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel=ended), wire.Done)
    with pytest.raises(NotFound):
        await run(shared_host, sandbox, "1", kernel=ended)
    await run(shared_host, sandbox, "xs.append(4)", kernel=living)
    await until_affordable(shared_host, sandbox, living)
    crash = await run(shared_host, sandbox, "os._exit(1)", kernel=living)
    assert crash.receipt.state is MemoryState.RESTORED
    assert await value_of(shared_host, sandbox, "xs", living) == "[1, 2, 3, 4]"
    await branch(shared_host, sandbox, ended, kernel=living)
    assert await value_of(shared_host, sandbox, "xs", ended) == "[1, 2, 3, 4]"


@pytest.mark.parametrize(("crashing", "other"), [(KERNEL, "b"), ("b", KERNEL)])
async def test_a_crash_in_one_is_restored_from_its_own_and_the_other_does_not_notice(
    shared_host: HostConnection, crashing: str, other: str
) -> None:
    sandbox = await two(shared_host)
    for name in (KERNEL, "b"):
        await run(shared_host, sandbox, f"xs.append('{name}')", kernel=name)
        await until_affordable(shared_host, sandbox, name)
    for _ in range(3):
        crash = await run(shared_host, sandbox, "xs.append('crash'); os._exit(1)", kernel=crashing)
        assert crash.receipt.state is MemoryState.RESTORED
    seen = await run(shared_host, sandbox, "xs", kernel=crashing)
    assert seen.results.text == f"[1, 2, 3, '{crashing}']"
    spared = await run(shared_host, sandbox, "xs", kernel=other)
    assert (spared.results.text, spared.receipt.state) == (f"[1, 2, 3, '{other}']", MemoryState.INTACT)
    assert spared.receipt.epoch in (1, 7)


async def test_a_branch_that_crashes_in_its_first_cell_has_the_memory_of_the_branch(
    shared_host: HostConnection,
) -> None:
    sandbox = await two(shared_host)
    crash = await run(shared_host, sandbox, "xs.append('crash'); os._exit(1)", kernel="b")
    assert (crash.receipt.state, crash.receipt.epoch) == (MemoryState.RESTORED, 8)
    assert await value_of(shared_host, sandbox, "xs", "b") == "[1, 2, 3]"


async def test_undo_in_one_leaves_the_other(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    for name in (KERNEL, "b"):
        await run(shared_host, sandbox, f"xs.append('{name}')", kernel=name)
        await until_affordable(shared_host, sandbox, name)
    await undo(shared_host, sandbox, 1, kernel="b")
    assert await value_of(shared_host, sandbox, "xs[3:]", "b") == "[]"
    assert await value_of(shared_host, sandbox, "xs[3:]") == "['main']"
    with pytest.raises(Conflict):
        await undo(shared_host, sandbox, 3, kernel="b")


async def test_each_prints_into_its_own_output_also_by_what_was_made_before(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    say = (
        "logger.info('logged by {0}'); print('held by {0}', file=held_out); held_print('printed by {0}')\n"
        "import subprocess; _ = os.write(1, b'written by {0}\\n'); _ = subprocess.run(['echo', 'echoed by {0}'])\n"
        "!echo bash of {0}\nthread = threading.Thread(target=lambda: print('thread of {0}')); thread.start()\n"
        "thread.join(); _ = pool.submit(print, 'pool of {0}').result()"
    )
    both = await asyncio.gather(
        run(shared_host, sandbox, say.format("main")), run(shared_host, sandbox, say.format("branch"), kernel="b")
    )
    for name, result in zip(("main", "branch"), both, strict=True):
        assert result.error is None
        words = ("logged by", "held by", "printed by", "written by", "echoed by", "bash of", "thread of", "pool of")
        assert sorted(result.stdout.text.splitlines()) == sorted(f"{word} {name}" for word in words)
        assert result.stderr.text == ""


async def test_what_a_branch_prints_between_its_cells_is_told_by_its_own_next_cell(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    late = "import threading, os\nthreading.Timer(0.1, lambda: (print('late'), os._exit(5))).start()"
    await run(shared_host, sandbox, late, kernel="b")
    await past_epoch(shared_host, sandbox, 7, "b")
    assert (await run(shared_host, sandbox, "1")).stdout.text == ""
    assert "late" in (await run(shared_host, sandbox, "1", kernel="b")).stdout.text


WORKS = {
    "a plot": ("plt.plot(xs); plt.show(); 'shown'", "'shown'"),
    "a command": ("out = !echo $((6 * 7))\nlist(out)", "['42']"),
    "bash": ("%%bash\necho in bash > /tmp/by_bash", ""),
    "a new thread": ("t = threading.Thread(target=seen.append, args=(4,)); t.start(); t.join(); seen", "[4]"),
    "the idle pool from before": ("list(pool.map(abs, range(-20, 0)))[:3], len(pool._threads)", "([20, 19, 18], 3)"),
    "more work than the pool has threads": ("sum(pool.map(lambda n: n, range(1000)))", "499500"),
    "a process": (
        "p = multiprocessing.get_context('fork').Process(target=os._exit, args=(3,)); p.start(); p.join(); p.exitcode",
        "3",
    ),
    "a pool of processes": (
        "with multiprocessing.get_context('fork').Pool(2) as p: got = p.map(abs, [-1, -2])\ngot",
        "[1, 2]",
    ),
    "await": ("await asyncio.sleep(0.01, 'slept')", "'slept'"),
    "gather": ("await asyncio.gather(*(asyncio.sleep(0.01, n) for n in range(3)))", "[0, 1, 2]"),
    "a background task": (
        "task = asyncio.create_task(asyncio.sleep(0.05, 'done'))\nawait asyncio.wait_for(task, 5)",
        "'done'",
    ),
    "work in a thread of asyncio": ("await asyncio.to_thread(len, xs)", "3"),
    "a child by asyncio": (
        "p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)\n(await p.communicate())[0]",
        "b'hi\\n'",
    ),
    "a new loop": ("pool.submit(asyncio.run, asyncio.sleep(0.01, 'new')).result(5)", "'new'"),
    "the loop from before": ("pool.submit(loop.run_until_complete, asyncio.sleep(0.01, 'old')).result(5)", "'old'"),
    "work that is given to the loop from before": (
        "pool.submit(loop.run_until_complete, loop.run_in_executor(None, len, xs)).result(5)",
        "3",
    ),
    "matrices": ("float(np.linalg.det(np.eye(300) @ np.eye(300)))", "1.0"),
    "a display that is updated": (
        "from IPython.display import display\nh = display(1, display_id=True); h.update(2); 'updated'",
        "'updated'",
    ),
    "the end of the pool": ("pool.shutdown(); loop.close(); pool._shutdown", "True"),
}


@pytest.mark.parametrize("how", ["branched", "restored"])
async def test_everything_works_in_a_memory_that_was_woken(shared_host: HostConnection, how: str) -> None:
    sandbox = await two(shared_host)
    kernel = "b"
    if how == "restored":
        kernel = KERNEL
        assert (await run(shared_host, sandbox, "os._exit(1)")).receipt.state is MemoryState.RESTORED
    wrong = {}
    for what, (code, expected) in WORKS.items():
        result = await run(shared_host, sandbox, code, 20.0, kernel)
        if (result.outcome, result.results.text) != (Outcome.OK, expected):
            wrong[what] = result.error or result.explanation or result.results.text
        if what == "a plot":
            assert any("image/png" in one.data for one in result.displays)
    assert not wrong
    asked = await run(shared_host, sandbox, "input()", kernel=kernel)
    assert asked.error is not None
    assert "Put the value into the code" in asked.error.message


async def test_files_that_were_open_before_have_a_position_in_each(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    assert await value_of(shared_host, sandbox, "book.read(2), book.tell(), lines.readline() != first", "b") == (
        "('45', 6, True)"
    )
    assert await value_of(shared_host, sandbox, "book.read(2), book.tell(), lines.tell() == len(first)") == (
        "('45', 6, True)"
    )
    write = "_ = book.seek({0}); _ = book.write('{1}'); book.flush(); book.tell()"
    await asyncio.gather(
        run(shared_host, sandbox, write.format(0, "AA")), run(shared_host, sandbox, write.format(8, "BB"), kernel="b")
    )
    assert await value_of(shared_host, sandbox, "open('/tmp/book').read(), book.tell()") == "('AA234567BB', 2)"
    assert await value_of(shared_host, sandbox, "book.tell()", "b") == "10"


async def test_an_interrupt_of_one_does_not_reach_the_other(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    code = "print('begun', flush=True)\nimport time\nfor _ in range(20): time.sleep(0.1)\n'whole'"
    in_main = await begin(shared_host, sandbox, code)
    in_branch = await begin(shared_host, sandbox, code, kernel="b")
    await shared_host.ask(kernels.InterruptKernel(sandbox=sandbox, kernel="b"), wire.Done)
    assert (await result_of(shared_host, in_branch)).outcome is Outcome.INTERRUPTED
    main = await result_of(shared_host, in_main)
    assert (main.outcome, main.results.text) == (Outcome.OK, "'whole'")
    late = await run(shared_host, sandbox, "while True: pass", limit_s=0.2, kernel="b")
    assert (late.outcome, late.receipt.state) == (Outcome.TIMED_OUT, MemoryState.INTACT)


async def test_a_branch_waits_for_the_cell_that_runs(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    running = await begin(shared_host, sandbox, "print('begun', flush=True)\nimport time; time.sleep(0.5); done = True")
    await branch(shared_host, sandbox, "b")
    assert await value_of(shared_host, sandbox, "done", "b") == "True"
    assert (await result_of(shared_host, running)).outcome is Outcome.OK


async def test_many_branches_of_one_kernel(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host)
    names = [f"n{number}" for number in range(8)]
    await asyncio.gather(*(branch(shared_host, sandbox, name) for name in names))
    await asyncio.gather(*(run(shared_host, sandbox, f"xs.append('{name}')", kernel=name) for name in names))
    seen = await asyncio.gather(*(value_of(shared_host, sandbox, "xs[3:]", name) for name in names))
    assert seen == [f"['{name}']" for name in names]
    for name in names:
        await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel=name), wire.Done)
    await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel="b"), wire.Done)
    await at_rest(shared_host, sandbox)
    left = (await command(shared_host, sandbox, "ps -e -o comm= | grep -cx python3")).stdout.text
    assert left == "1\n", "kernels that were ended are gone"


async def test_a_kernel_can_be_branched_while_snapshots_are_off(shared_host: HostConnection) -> None:
    sandbox = await two(shared_host, snapshots=False)
    assert await value_of(shared_host, sandbox, "xs", "b") == "[1, 2, 3]"
    assert (await described(shared_host, sandbox, "b")).snapshots.kept == 0


async def test_what_a_branch_does_not_have_is_told(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(
        shared_host,
        sandbox,
        "import threading\nthreading.Thread(target=threading.Event().wait, name='the waiter', daemon=True).start()",
    )
    assert "the waiter" in (await branch(shared_host, sandbox, "b")).not_carried


async def test_the_process_engine_has_no_snapshots_and_says_so(settings: Settings) -> None:
    bare = replace(settings, engine="process", min_level=Level.OPEN)
    async with await connect_or_start(bare, os.environ) as host:
        sandbox = await make_kernel(host)
        for number in range(3):
            result = await run(host, sandbox, f"x = {number}")
            assert (result.receipt.snapshot.kept, result.receipt.snapshot.current) == (0, False)
            assert "engine has no snapshots" in result.receipt.snapshot.reason
        with pytest.raises(Conflict, match="engine has no snapshots"):
            await undo(host, sandbox)
        with pytest.raises(Conflict, match=r"engine has no snapshots|not offered here"):
            await branch(host, sandbox, "b")
        assert await value_of(host, sandbox, "x") == "2"
        lost = await run(host, sandbox, "import os; os._exit(1)")
        assert lost.receipt.state is MemoryState.LOST
        assert "restored" not in lost.explanation
        await stop(host)
