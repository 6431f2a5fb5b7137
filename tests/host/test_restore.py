"""Whatever ends a cell: the memory is what it was before it, the session goes on, and the agent reads what happened."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.host.cells import (
    KERNEL,
    at_rest,
    begin,
    cell,
    command,
    make_kernel,
    past_epoch,
    result_of,
    run,
    until_affordable,
    value_of,
)

from workbench.errors import KernelUnavailable, SandboxUnavailable
from workbench.host_client.connection import HostConnection
from workbench.model.execution import CellResult, MemoryState, Outcome
from workbench.wire import host as wire
from workbench.wire import kernels

pytestmark = pytest.mark.as_shipped

# Everything that pickling would lose or change, and what a fork has only one of with its original.
REMEMBER = """\
import json, os, random, sys
import numpy as np, pandas as pd
numbers, frame = [1, 2, 3], pd.DataFrame({'a': range(5), 'b': list('abcde')})
counter = iter(n * n for n in range(100))
next(counter), next(counter), next(counter)
double = lambda x: 2 * x
book = open('/tmp/book', 'w+')
_ = book.write('first\\n')
random.seed(7); np.random.seed(7); generator = np.random.default_rng(7); dice = random.Random(7)
coming = random.random(), np.random.random(), generator.random(), dice.random()
random.seed(7); np.random.seed(7); generator = np.random.default_rng(7); dice = random.Random(7)
os.makedirs('/tmp/here'); os.chdir('/tmp/here'); os.environ['MARK'] = 'yes'
sum(numbers)
"""
CHECK = """\
_ = book.write('second\\n'); book.flush()
print(json.dumps([
    numbers, frame['a'].tolist(), frame['b'].tolist(), next(counter), double(21), open('/tmp/book').read(),
    (random.random(), np.random.random(), generator.random(), dice.random()) == coming,
    os.getcwd(), os.environ['MARK'], Out[1], In[1][:6], len(In), 'spoilt' in globals(),
]))
"""
KEPT = [[1, 2, 3], [0, 1, 2, 3, 4], list("abcde"), 9, 42, "first\nsecond\n", True, "/tmp/here", "yes", 6, "import"]
# A cell that is ended has done all of this before.
SPOIL = """\
import random, os, numpy as np
spoilt = True; numbers.append(4); frame.loc[0, 'a'] = 99; next(counter); double = None
random.random(); np.random.random(); generator.random(); dice.random()
os.chdir('/'); os.environ['MARK'] = 'no'; Out.clear()
open('/tmp/here/left', 'w').write('by the cell')
print('begun', flush=True)
"""
INTERRUPTED = {
    "a loop": "while True: pass",
    "sleep": "import time; time.sleep(600)",
    "sleep in C with the interpreter's lock": "import ctypes; ctypes.PyDLL(None).sleep(600)",
    "await": "import asyncio\nawait asyncio.sleep(600)",
    "gather": "import asyncio\nawait asyncio.gather(*(asyncio.sleep(600) for _ in range(9)))",
    "a command": "!sleep 600",
    "a child that ignores interrupts": (
        "import subprocess, sys\nignore = 'import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(600)'\n"
        "subprocess.run([sys.executable, '-c', ignore])"
    ),
    "a pattern that backtracks": "import re; re.match('(a|a)*b', 'a' * 100)",
    "a deadlock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "join of a busy thread": (
        "import threading, time\nbusy = lambda: [time.sleep(0.001) for _ in range(2000)]\n"
        "thread = threading.Thread(target=busy); thread.start(); thread.join(); thread.join(600); time.sleep(600)"
    ),
    "a power": "x = 3 ** (10 ** 9)",
    "a sort": "class Slow(int):\n    def __lt__(self, other): return int(self) < int(other)\n"
    "sorted([Slow(n * 7919 % 2_000_003) for n in range(2_000_003)])",
}
NOT_INTERRUPTIBLE = {
    "everything is caught": "import time\nwhile True:\n    try: time.sleep(600)\n    except BaseException: pass",
    "LAPACK": "import numpy as np; np.linalg.eig(np.random.default_rng(1).random((3000, 3000)))",
    "OpenSSL": "import hashlib; hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)",
    "SQLite": (
        "import sqlite3\nnumbers_without_end = 'with recursive n(x) as (select 1 union all select x + 1 from n)'\n"
        "sqlite3.connect(':memory:').execute(numbers_without_end + ' select max(x) from n').fetchone()"
    ),
    "C with the interpreter's lock": (
        "import ctypes, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {2}); ctypes.PyDLL(None).pause()"
    ),
    "an iterator without end": "import collections, itertools; collections.deque(itertools.repeat(0), maxlen=0)",
    "ignored by C": "import ctypes; ctypes.CDLL(None).signal(2, ctypes.c_void_p(1))\nwhile True: pass",
}
ENDED = {
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "segmentation fault"),
    "abort": ("import os; os.abort()", "signal 6"),
    "abort of C": ("import ctypes; ctypes.CDLL(None).abort()", "signal 6"),
    "os._exit": ("import os; os._exit(3)", "with code 3"),
    "os._exit(0)": ("import os; os._exit(0)", "with code 0"),
    "SIGKILL": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
    "SIGTERM": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "signal 15"),
    "its whole group": ("import os; os.killpg(0, 9)", "signal 9"),
    "by a child": ("import os, time\n!kill -9 {os.getpid()}\ntime.sleep(600)", "signal 9"),
    "by a thread": (
        "import os, threading, time; threading.Timer(0.1, os._exit, (4,)).start(); time.sleep(9)",
        "code 4",
    ),
    "stack overflow": (
        "import ctypes, sys; sys.setrecursionlimit(10**9)\nagain = ctypes.CFUNCTYPE(None)(lambda: again())\nagain()",
        "segmentation fault",
    ),
    "every descriptor closed": ("import os, time; os.closerange(3, 4000); print(1); time.sleep(600)", "kernel"),
}
BOMBS = {
    "bytearrays": "x = []\nwhile True: x.append(bytearray(20_000_000))",
    "arrays": "import numpy as np\nx = []\nwhile True: x.append(np.ones(4_000_000))",
}


async def remembering(host: HostConnection, **kernel_fields: object) -> str:
    """A sandbox whose kernel has something to lose."""
    sandbox = await make_kernel(host, **kernel_fields)  # type: ignore[arg-type]
    made = await run(host, sandbox, REMEMBER)
    assert (made.results.text, made.error) == ("6", None)
    await until_affordable(host, sandbox)
    return sandbox


async def assert_kept(host: HostConnection, sandbox: str, inputs: int) -> CellResult:
    """All of it, and nothing of what the ended cell did but to files."""
    seen = await run(host, sandbox, CHECK)
    assert seen.error is None, seen.error
    *state, known_inputs, spoilt = json.loads(seen.stdout.text)
    assert state == KEPT
    assert (known_inputs, spoilt) == (inputs, False)
    assert await value_of(host, sandbox, "open('/tmp/here/left').read()") == "'by the cell'"
    return seen


def assert_told(result: CellResult, epoch: int) -> None:
    assert result.stdout.text.startswith("begun\n")
    assert (result.receipt.state, result.receipt.epoch) == (MemoryState.RESTORED, epoch)
    assert result.receipt.snapshot.current
    assert "restored from a snapshot" in result.receipt.reason
    assert "Variables are as they were before this cell" in result.explanation
    assert "Files are as the cell left them" in result.explanation
    assert "Nothing was run again" in result.explanation
    assert "gone" not in result.explanation
    assert "import and define again" not in result.explanation


@pytest.mark.parametrize("code", INTERRUPTED.values(), ids=INTERRUPTED)
async def test_what_an_interrupt_ends_keeps_its_own_memory(shared_host: HostConnection, code: str) -> None:
    sandbox = await remembering(shared_host)
    result = await run(shared_host, sandbox, f"during = 'kept'\nprint('begun', flush=True)\n{code}", limit_s=0.5)
    assert (result.outcome, result.stdout.text[:6]) == (Outcome.TIMED_OUT, "begun\n")
    assert (result.receipt.state, result.receipt.epoch, result.receipt.reason) == (MemoryState.INTACT, 1, "")
    assert result.receipt.execution_count == 2
    assert "was interrupted" in result.explanation
    assert "Variables keep the values that they had at that moment" in result.explanation
    assert "restored" not in result.explanation
    await until_affordable(shared_host, sandbox)
    after = await run(shared_host, sandbox, "during, numbers, os.getcwd(), next(counter)")
    assert after.results.text == "('kept', [1, 2, 3], '/tmp/here', 9)"
    assert (after.receipt.epoch, after.receipt.execution_count, after.receipt.snapshot.current) == (1, 3, True)


@pytest.mark.parametrize("code", NOT_INTERRUPTIBLE.values(), ids=NOT_INTERRUPTIBLE)
async def test_what_no_interrupt_ends_costs_the_cell_and_nothing_else(shared_host: HostConnection, code: str) -> None:
    sandbox = await remembering(shared_host)
    result = await run(shared_host, sandbox, f"{SPOIL}\n{code}", limit_s=1.0)
    assert result.outcome is Outcome.TIMED_OUT
    assert "limit of 1 s; the kernel did not react to interrupts and had to be ended" in result.explanation
    assert "smaller steps" in result.explanation
    assert_told(result, epoch=2)
    after = await assert_kept(shared_host, sandbox, inputs=3)
    assert (after.receipt.state, after.receipt.epoch, after.receipt.execution_count) == (MemoryState.INTACT, 2, 2)


@pytest.mark.parametrize(("code", "reason"), ENDED.values(), ids=ENDED)
async def test_a_kernel_that_ends_under_a_cell_comes_back(shared_host: HostConnection, code: str, reason: str) -> None:
    sandbox = await remembering(shared_host)
    result = await run(shared_host, sandbox, f"{SPOIL}\n{code}", limit_s=30.0)
    assert result.outcome is Outcome.LOST
    assert reason in result.explanation.lower()
    assert_told(result, epoch=2)
    after = await assert_kept(shared_host, sandbox, inputs=3)
    assert (after.receipt.state, after.receipt.epoch, after.receipt.execution_count) == (MemoryState.INTACT, 2, 2)


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_a_cell_that_takes_all_memory_costs_no_variable(shared_host: HostConnection, bomb: str) -> None:
    sandbox = await remembering(shared_host)
    result = await run(shared_host, sandbox, f"{SPOIL}\n{bomb}")
    if result.outcome is Outcome.RAISED:
        # Where the limit is an address space's, Python itself is told no.
        assert result.error is not None
        assert result.error.name.endswith("MemoryError")
        return
    assert result.outcome is Outcome.LOST
    assert "memory" in result.explanation
    assert_told(result, epoch=2)
    await assert_kept(shared_host, sandbox, inputs=3)


async def test_a_child_that_takes_all_memory_costs_the_kernel_nothing(shared_host: HostConnection) -> None:
    sandbox = await remembering(shared_host)
    bomb = "x = []\\nwhile True: x.append(bytearray(20_000_000))"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', '{bomb}'], stderr=-3).returncode"
    result = await run(shared_host, sandbox, f"during = 'kept'\n{code}")
    assert (result.outcome, result.receipt.epoch) == (Outcome.OK, 1)
    assert result.results.text in ("-9", "1"), "ended by the limit, or told no"
    assert await value_of(shared_host, sandbox, "during, numbers") == "('kept', [1, 2, 3])"


async def test_the_agents_processes_go_before_pid_1_when_memory_runs_out(shared_host: HostConnection) -> None:
    sandbox = await remembering(shared_host)
    look = "[int(open(f'/proc/{who}/oom_score_adj').read()) for who in (1, 'self')]"
    assert await value_of(shared_host, sandbox, look) == "[0, 300]"


@pytest.mark.parametrize(
    "leaving",
    [
        pytest.param("", id="in the group"),
        pytest.param("os.setsid()", id="in sessions of their own", marks=pytest.mark.long),
    ],
)
async def test_a_fork_bomb_is_held_and_the_session_goes_on(shared_host: HostConnection, leaving: str) -> None:
    sandbox = await remembering(shared_host)
    bomb = f"import os\nwhile True:\n    if os.fork() == 0: {leaving or 'pass'}"
    result = await run(shared_host, sandbox, f"{SPOIL}\n{bomb}", limit_s=1.0)
    assert result.outcome in (Outcome.RAISED, Outcome.TIMED_OUT, Outcome.LOST)
    after = await run(shared_host, sandbox, "numbers[:3], os.path.exists('/tmp/here/left')")
    assert after.results.text == "([1, 2, 3], True)", (result, after)
    await until_affordable(shared_host, sandbox)
    crashed = await run(shared_host, sandbox, "os._exit(1)")
    if crashed.receipt.state is MemoryState.RESTORED:
        assert await value_of(shared_host, sandbox, "numbers[:3]") == "[1, 2, 3]"
    else:
        # Where processes are only watched, the bomb's last ones may still hold the memory; then that was told before.
        assert not crashed.receipt.snapshot.current
        assert "not that much room" in crashed.receipt.snapshot.reason


async def test_a_kernel_killed_between_two_cells_is_told_once_by_the_next_receipt(shared_host: HostConnection) -> None:
    sandbox = await remembering(shared_host)
    await command(shared_host, sandbox, "printf 'by the cell' > /tmp/here/left")
    await at_rest(shared_host, sandbox)
    assert (await command(shared_host, sandbox, "pkill -KILL -x python3")).exit_code == 0
    assert (await past_epoch(shared_host, sandbox, 1)).epoch == 2
    told = await assert_kept(shared_host, sandbox, inputs=3)
    assert (told.receipt.state, told.receipt.epoch, told.receipt.execution_count) == (MemoryState.RESTORED, 2, 2)
    assert "signal 9" in told.receipt.reason
    assert "restored from a snapshot" in told.receipt.reason
    again = await run(shared_host, sandbox, "1")
    assert (again.receipt.state, again.receipt.reason, again.receipt.epoch) == (MemoryState.INTACT, "", 2)


async def test_crashes_in_a_row_each_come_back(shared_host: HostConnection) -> None:
    sandbox = await remembering(shared_host)
    codes = [code for code, _ in list(ENDED.values())[:8]]
    for number, code in enumerate(codes):
        result = await run(shared_host, sandbox, f"{SPOIL}\n{code}")
        assert result.outcome is Outcome.LOST
        assert_told(result, epoch=number + 2)
        assert result.receipt.execution_count == 1
    await assert_kept(shared_host, sandbox, inputs=3)


async def test_a_crash_after_a_restore_still_names_the_line(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "import ctypes\ndef crash():\n    ctypes.string_at(0)")
    for _ in range(3):
        result = await run(shared_host, sandbox, "print('last words')\ncrash()")
        assert result.stdout.text == "last words\n"
        assert "Segmentation fault" in result.stderr.text
        assert "line 3 in crash" in result.stderr.text
        assert "workbench" not in result.stderr.text


async def test_a_crash_in_the_very_first_cell_leaves_a_kernel_as_new(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, "x = 1\nprint('begun')\nimport os; os._exit(3)")
    assert (result.outcome, result.stdout.text, result.receipt.epoch) == (Outcome.LOST, "begun\n", 2)
    assert result.receipt.snapshot.reason == "nothing has run yet"
    after = await run(shared_host, sandbox, "'x' in globals(), len(In)")
    assert (after.results.text, after.receipt.execution_count) == ("(False, 2)", 1)
    assert (await run(shared_host, sandbox, "os = 1; import os; os._exit(3)")).receipt.state is MemoryState.RESTORED


async def test_without_snapshots_a_crash_loses_variables_and_says_so(shared_host: HostConnection) -> None:
    sandbox = await remembering(shared_host, snapshots=False)
    result = await run(shared_host, sandbox, "os._exit(3)")
    assert (result.outcome, result.receipt.state) == (Outcome.LOST, MemoryState.LOST)
    assert (result.receipt.snapshot.kept, result.receipt.snapshot.current) == (0, False)
    assert "switched off" in result.receipt.snapshot.reason
    assert "Variables are gone" in result.explanation
    assert "import and define again" in result.explanation
    assert "restored" not in result.explanation + result.receipt.reason
    assert await value_of(shared_host, sandbox, "'numbers' in globals()") == "False"


async def test_snapshots_can_be_switched_on_and_off_while_it_lives(shared_host: HostConnection) -> None:
    sandbox = await remembering(shared_host)
    switch = kernels.SetSnapshots(sandbox=sandbox, kernel=KERNEL, on=False)
    await at_rest(shared_host, sandbox)
    await shared_host.ask(switch, wire.Done)
    assert (await at_rest(shared_host, sandbox)).snapshots.kept == 0
    await run(shared_host, sandbox, "numbers.append(4)")
    assert (await at_rest(shared_host, sandbox)).snapshots.kept == 0
    await shared_host.ask(kernels.SetSnapshots(sandbox=sandbox, kernel=KERNEL, on=True), wire.Done)
    await run(shared_host, sandbox, "numbers.append(5)")
    assert (await run(shared_host, sandbox, "os._exit(1)")).receipt.state is MemoryState.RESTORED
    assert await value_of(shared_host, sandbox, "numbers") == "[1, 2, 3, 4, 5]"
    await shared_host.ask(switch, wire.Done)
    assert (await run(shared_host, sandbox, "os._exit(1)")).receipt.state is MemoryState.LOST


async def test_start_up_code_is_not_run_again_by_a_restore(shared_host: HostConnection) -> None:
    start_up = "import os\nopen('/mnt/files/runs', 'a').write('x')\nready = []"
    sandbox = await make_kernel(shared_host, start_up=start_up)
    first = await run(shared_host, sandbox, "ready.append(1)\nos._exit(1)")
    assert first.receipt.state is MemoryState.RESTORED, "also in the very first cell"
    await run(shared_host, sandbox, "ready.append(2)")
    for _ in range(3):
        assert (await run(shared_host, sandbox, "os._exit(1)")).receipt.state is MemoryState.RESTORED
    assert await value_of(shared_host, sandbox, "ready, open('/mnt/files/runs').read()") == "([2], 'x')"


async def test_cells_that_wait_behind_a_crash_each_run_once_in_order_on_what_was_restored(
    shared_host: HostConnection,
) -> None:
    sandbox = await remembering(shared_host)
    await run(shared_host, sandbox, "seen = []")
    crash = cell(sandbox, "seen.append('crash'); import time; time.sleep(0.3); os._exit(1)", wait_s=0.0)
    await shared_host.ask(crash, kernels.CellReport)
    note = "seen.append({0}); open('/mnt/files/order', 'a').write('{0} ')"
    queued = [cell(sandbox, note.format(number), wait_s=0.0) for number in range(10)]
    for one in queued:
        assert (await shared_host.ask(one, kernels.CellReport)).state != "ended"
    results = await asyncio.gather(*(result_of(shared_host, one) for one in queued))
    assert [(one.outcome, one.receipt.state, one.receipt.epoch) for one in results] == [
        (Outcome.OK, MemoryState.INTACT, 2)
    ] * 10
    assert [one.receipt.execution_count for one in results] == list(range(3, 13))
    assert (await result_of(shared_host, crash)).receipt.state is MemoryState.RESTORED
    told = await value_of(shared_host, sandbox, "seen, open('/mnt/files/order').read()")
    assert told == f"({list(range(10))}, '{' '.join(map(str, range(10)))} ')"


async def test_killing_everything_in_the_sandbox_costs_the_snapshots_and_the_next_cell_makes_another(
    shared_host: HostConnection,
) -> None:
    sandbox = await remembering(shared_host)
    spared = await run(shared_host, sandbox, "os.kill(-1, 9); numbers")
    assert (spared.results.text, spared.receipt.epoch) == ("[1, 2, 3]", 1)
    after = await run(shared_host, sandbox, "numbers.append(4)")
    assert (after.receipt.epoch, after.receipt.snapshot.current, after.receipt.snapshot.kept) == (1, True, 1)
    assert (await run(shared_host, sandbox, "os._exit(1)")).receipt.state is MemoryState.RESTORED
    await at_rest(shared_host, sandbox)
    await command(shared_host, sandbox, "kill -KILL -1")
    try:
        told = await run(shared_host, sandbox, "'numbers' in globals()")
    except (KernelUnavailable, SandboxUnavailable):
        told = await run(shared_host, sandbox, "'numbers' in globals()")
    assert (told.results.text, told.receipt.state) == ("False", MemoryState.LOST)


async def test_what_a_snapshot_could_not_carry_is_told(shared_host: HostConnection) -> None:
    sandbox = await remembering(shared_host)
    await run(
        shared_host,
        sandbox,
        "import asyncio, threading, subprocess\n"
        "thread = threading.Thread(target=threading.Event().wait, name='the waiter', daemon=True); thread.start()\n"
        "task = asyncio.get_running_loop().create_task(asyncio.sleep(600))\n"
        "child = subprocess.Popen(['sleep', '600'])",
    )
    result = await run(shared_host, sandbox, "os._exit(1)")
    assert result.receipt.state is MemoryState.RESTORED
    for told in (result.explanation, result.receipt.reason):
        assert "the waiter" in told
        assert "task" in told
        assert "process" in told
    assert await value_of(shared_host, sandbox, "thread.is_alive(), numbers") == "(False, [1, 2, 3])"


async def test_what_a_command_left_in_the_background_outlives_a_cell_that_crashes(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "import os, subprocess, time")
    crash = "subprocess.Popen(['sleep', '301'], start_new_session=True)\nprint('begun')\ntime.sleep(1.5)\nos._exit(1)"
    request = await begin(shared_host, sandbox, crash)
    await command(shared_host, sandbox, "sleep 302 > /dev/null 2>&1 &")
    assert (await result_of(shared_host, request)).receipt.state is MemoryState.RESTORED
    left = (await command(shared_host, sandbox, "pgrep -fa '^sleep 30'")).stdout.text
    assert "sleep 302" in left, "of the command"
    assert "sleep 301" not in left, "of the lost cell"
