"""What forks of a living interpreter are known to break, one by one: nothing of it reaches the agent's code."""

from __future__ import annotations

import asyncio
import os
import time

import pytest
from tests.host.cells import (
    KERNEL,
    at_rest,
    branch,
    command,
    make_kernel,
    run,
    undo,
    until_affordable,
    value_of,
)
from tests.host.support import host_pids
from tests.kernel.notebook import open_notebook

from workbench.host_client.connection import HostConnection
from workbench.model.execution import MemoryState, Outcome
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels

CRASH = "import os; os._exit(1)"
KEPT = 3
# A busy machine may make one of them slow; what is tested is that nobody waits for what will never come.
AT_ONCE_S = 5.0


async def crash(host: HostConnection, sandbox: str) -> None:
    """End the kernel under a cell; it comes back."""
    await until_affordable(host, sandbox)
    result = await run(host, sandbox, CRASH)
    assert result.receipt.state is MemoryState.RESTORED, (result.receipt, result.explanation)


async def dormant(host: HostConnection, sandbox: str) -> int:
    """Processes of the sandbox that are ours: pid 1, spares, and snapshots."""
    told = await command(host, sandbox, "cat /proc/[0-9]*/comm | sort | uniq -c")
    lines = [line.split() for line in told.stdout.text.splitlines()]
    return sum(int(count) for count, name in lines if name not in ("python3", "bash", "cat", "sort", "uniq"))


async def test_loggers_that_hold_an_output_object_still_print_after_a_restore(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import logging, sys, os, contextlib, warnings\nlogger = logging.getLogger('x')\n"
        "logger.addHandler(logging.StreamHandler(sys.stdout)); logger.addHandler(logging.StreamHandler())\n"
        "out, err, write = sys.stdout, sys.stderr, sys.stdout.write\nstack = contextlib.ExitStack()"
    )
    await run(shared_host, sandbox, code)
    for number in range(3):
        await crash(shared_host, sandbox)
        say = (
            f"logger.warning('log {number}'); print('out', file=out); print('err', file=err); _ = write('w\\n')\n"
            "out is sys.stdout, err is sys.stderr"
        )
        told = await run(shared_host, sandbox, say)
        assert told.stdout.text == f"log {number}\nout\nw\n"
        assert told.stderr.text == f"log {number}\nerr\n"
        assert told.results.text == "(True, True)"


async def test_hundreds_of_cells_with_a_snapshot_each_leave_no_more_than_are_kept(shared_host: HostConnection) -> None:
    """Each copy gives the loop's epoll up; done wrong, the original stops hearing of cells."""
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "import asyncio; n = 0")
    assert (await at_rest(shared_host, sandbox)).snapshots.kept == 1
    before = await dormant(shared_host, sandbox)
    for number in range(300):
        assert await value_of(shared_host, sandbox, "await asyncio.sleep(0); n += 1; n") == str(number + 1)
        if number % 60 == 30:
            await branch(shared_host, sandbox, "b")
            assert await value_of(shared_host, sandbox, "await asyncio.sleep(0.001); n", "b") == str(number + 1)
            await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel="b"), wire.Done)
    report = await at_rest(shared_host, sandbox)
    assert (report.snapshots.kept, report.epoch, report.execution_count) == (KEPT, 1, 301)
    assert await dormant(shared_host, sandbox) <= before + KEPT - 1


async def test_pools_of_gnu_openmp_work_on_in_original_and_copy(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import ctypes, threading\ntry: gomp = ctypes.CDLL('libgomp.so.1')\nexcept OSError: gomp = None\n"
        "seen = set()\nbody = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.add(threading.get_ident()))\n"
        "def parallel():\n    seen.clear(); gomp.GOMP_parallel(body, None, 4, 0); return len(seen)\n"
        "parallel() if gomp else None"
    )
    made = await value_of(shared_host, sandbox, code)
    if made == "":
        # No library of the image brings it, and this machine has none either.
        return
    assert made == "4"
    assert await value_of(shared_host, sandbox, "parallel()") == "4", "the original after its snapshot"
    for _ in range(2):
        await crash(shared_host, sandbox)
        assert (await run(shared_host, sandbox, "parallel()", limit_s=10.0)).results.text == "4"
    await branch(shared_host, sandbox, "b")
    assert (await run(shared_host, sandbox, "parallel()", 10.0, "b")).results.text == "4"
    assert await value_of(shared_host, sandbox, "parallel()") == "4"


async def test_exit_handlers_run_once_at_the_end_and_never_in_a_snapshot(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import atexit, os, weakref\nclass Thing: pass\nthing = Thing()\n"
        "def note(what): open('/mnt/files/log', 'a').write(f'{what} ')\n"
        "atexit.register(note, 'exit'); weakref.finalize(thing, note, 'finalized')"
    )
    await run(shared_host, sandbox, code)
    for number in range(8):
        await run(shared_host, sandbox, f"x = {number}")
    await until_affordable(shared_host, sandbox)
    await run(shared_host, sandbox, "x = 8")
    await crash(shared_host, sandbox)
    await undo(shared_host, sandbox, 1)
    await branch(shared_host, sandbox, "b")
    await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel="b"), wire.Done)
    await at_rest(shared_host, sandbox)
    await shared_host.ask(kernels.SetSnapshots(sandbox=sandbox, kernel=KERNEL, on=False), wire.Done)
    await at_rest(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, "os.path.exists('/mnt/files/log')") == "False"
    # The only way for a kernel to end as a program does.
    await run(shared_host, sandbox, "get_ipython().kernel.io_loop.stop()")
    assert sorted((await command(shared_host, sandbox, "cat /mnt/files/log")).stdout.text.split()) == [
        "exit",
        "finalized",
    ]


async def test_what_was_written_and_not_flushed_is_written_once(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import codecs, gzip, os, tempfile\ntext = open('/tmp/text', 'w'); _ = text.write('text ')\n"
        "raw = open('/tmp/raw', 'wb'); _ = raw.write(b'raw ')\n"
        "both = open('/tmp/both', 'w+b'); _ = both.write(b'both ')\n"
        "more = open('/tmp/more', 'a'); _ = more.write('more ')\n"
        "coded = codecs.open('/tmp/coded', 'w', 'utf-16-le'); _ = coded.write('coded ')\n"
        "packed = gzip.open('/tmp/packed', 'wt'); _ = packed.write('packed ')\n"
        "files = dict(text=text, more=more, coded=coded, packed=packed)"
    )
    await run(shared_host, sandbox, code)
    await crash(shared_host, sandbox)
    await crash(shared_host, sandbox)
    write = (
        "for name, file in files.items(): _ = file.write('again'); file.close()\n_ = raw.write(b'again'); raw.close()"
    )
    assert (await run(shared_host, sandbox, f"{write}\n_ = both.write(b'again'); both.close()")).error is None
    read_all = (
        "' '.join([*(open(f'/tmp/{n}').read() for n in ('text', 'raw', 'both', 'more')), "
        "open('/tmp/coded', 'rb').read().decode('utf-16-le'), gzip.open('/tmp/packed', 'rt').read()])"
    )
    assert await value_of(shared_host, sandbox, read_all) == (
        "'text again raw again both again more again coded again packed again'"
    )


async def test_a_branch_does_not_write_what_its_original_had_in_its_buffers(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "file = open('/tmp/file', 'a'); _ = file.write('once ')")
    await branch(shared_host, sandbox, "b")
    await run(shared_host, sandbox, "_ = file.write('branch '); file.close()", kernel="b")
    await run(shared_host, sandbox, "_ = file.write('main '); file.close()")
    assert await value_of(shared_host, sandbox, "open('/tmp/file').read()") == "'once branch main '"


async def test_positions_in_open_files_are_those_of_the_snapshot(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    make = (
        "import os\nwith open('/tmp/file', 'w') as f: f.writelines(f'{n:07}\\n' for n in range(100_000))\n"
        "lines = open('/tmp/file'); raw = os.open('/tmp/file', os.O_RDONLY); gone = open('/tmp/file', 'rb')\n"
        "next(lines), os.read(raw, 8), gone.read(8); os.remove('/tmp/file')"
    )
    await run(shared_host, sandbox, make)
    spoil = "for _ in range(50_000): next(lines)\nos.lseek(raw, 0, 2); gone.seek(0, 2)\nos._exit(1)"
    assert (await run(shared_host, sandbox, spoil)).receipt.state is MemoryState.RESTORED
    assert await value_of(shared_host, sandbox, "next(lines), os.read(raw, 8), gone.read(8)") == (
        "('0000001\\n', b'0000001\\n', b'0000001\\n')"
    ), "also of a file that has no name any more"


async def test_a_program_never_sees_a_snapshot_among_its_children(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import glob, os, signal, subprocess\ncalls = []\n"
        "previous = signal.signal(signal.SIGCHLD, lambda *_: calls.append(1))\n"
        "def children(): return [c for p in glob.glob('/proc/self/task/*/children') for c in open(p).read().split()]\n"
        "def waited():\n"
        "    try: return os.waitpid(-1, os.WNOHANG)\n    except ChildProcessError: return 'none'"
    )
    await run(shared_host, sandbox, code)
    for number in range(12):
        assert await value_of(shared_host, sandbox, "waited(), children(), calls") == "('none', [], [])"
        if number == 4:
            await crash(shared_host, sandbox)
        if number == 8:
            await branch(shared_host, sandbox, "b")
            assert await value_of(shared_host, sandbox, "waited(), children(), calls", "b") == "('none', [], [])"
            await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel="b"), wire.Done)
    alone = await run(shared_host, sandbox, "os.wait()")
    assert alone.error is not None
    assert alone.error.name == "ChildProcessError"
    own = "child = subprocess.Popen(['true']); got = os.wait(); (got[0] == child.pid, calls)"
    assert await value_of(shared_host, sandbox, own) == "(True, [1])", "and does see its own"
    assert await value_of(shared_host, sandbox, "waited(), children(), calls") == "('none', [], [1])"


async def test_thirty_crashes_leave_no_descriptor_thread_or_memory_behind(
    shared_host: HostConnection, shared_settings: Settings
) -> None:
    sandbox = await make_kernel(shared_host)
    look = (
        "import os\ndef look():\n"
        "    rss = [int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('RssAnon')][0] // 1024\n"
        "    return len(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')), rss"
    )
    await run(shared_host, sandbox, f"{look}\nopened = open('/etc/passwd')")
    (pid, *_) = host_pids(shared_settings)
    seen, in_host = [], []
    for _ in range(31):
        told = await value_of(shared_host, sandbox, "look()")
        seen.append(tuple(int(part) for part in told.strip("()").split(",")))
        await at_rest(shared_host, sandbox)
        in_host.append(len(os.listdir(f"/proc/{pid}/fd")))
        await crash(shared_host, sandbox)
    descriptors, threads, rss_mib = zip(*seen, strict=True)
    assert descriptors[-1] <= descriptors[0], descriptors
    assert set(threads) == {threads[0]}, threads
    assert rss_mib[-1] - rss_mib[1] <= 30, rss_mib
    assert in_host[-1] <= in_host[1] + 2, in_host
    assert await value_of(shared_host, sandbox, "len(opened.read()) > 0") == "True"


async def test_sqlite_in_memory_and_on_disk_goes_on(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import os, sqlite3\ninside = sqlite3.connect(':memory:'); disk = sqlite3.connect('/home/user/db')\n"
        "wal = sqlite3.connect('/home/user/wal'); _ = wal.execute('pragma journal_mode=wal')\n"
        "dbs = [inside, disk, wal]\nfor db in dbs:\n"
        "    _ = db.execute('create table t (x)'); _ = db.execute('insert into t values (1)'); db.commit()\n"
        "cursor = inside.execute('select x from t')"
    )
    assert (await run(shared_host, sandbox, code)).error is None
    spoil = "for db in dbs:\n    _ = db.execute('insert into t values (66)')\n" + CRASH
    await until_affordable(shared_host, sandbox)
    assert (await run(shared_host, sandbox, spoil)).receipt.state is MemoryState.RESTORED
    assert await value_of(shared_host, sandbox, "cursor.fetchall()") == "[(1,)]"
    add = "for db in dbs:\n    _ = db.execute('insert into t values (2)'); db.commit()\n"
    count = "[[x for x, in db.execute('select x from t order by x')] for db in dbs]"
    told = await run(shared_host, sandbox, f"{add}{count}")
    assert told.error is None
    assert told.results.text == "[[1, 2], [1, 2], [1, 2]]", "what was not committed is rolled back"
    checks = "[db.execute('pragma integrity_check').fetchone()[0] for db in dbs]"
    assert await value_of(shared_host, sandbox, checks) == "['ok', 'ok', 'ok']"
    fresh = (
        "[sqlite3.connect('/home/user/' + n).execute('select count(*) from t').fetchone()[0] for n in ('db', 'wal')]"
    )
    assert await value_of(shared_host, sandbox, fresh) == "[2, 2]"


async def test_a_transaction_that_was_open_can_still_be_committed(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import sqlite3\ndb = sqlite3.connect('/home/user/db'); _ = db.execute('create table t (x)'); db.commit()\n"
        "_ = db.execute('insert into t values (1)')"
    )
    await run(shared_host, sandbox, code)
    await crash(shared_host, sandbox)
    assert (await run(shared_host, sandbox, "_ = db.execute('insert into t values (2)'); db.commit()")).error is None
    look = "[x for x, in sqlite3.connect('/home/user/db').execute('select x from t order by x')]"
    assert await value_of(shared_host, sandbox, look) == "[1, 2]"
    assert await value_of(shared_host, sandbox, "db.execute('pragma integrity_check').fetchone()[0]") == "'ok'"


async def test_with_a_busy_thread_there_is_no_snapshot_and_the_reason_is_told(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "import os, threading\nstop = False\nseen = [0]")
    await until_affordable(shared_host, sandbox)
    busy = "def work():\n    while not stop: sum(range(1000))\nthreading.Thread(target=work, name='the worker').start()"
    await run(shared_host, sandbox, f"seen.append(1)\n{busy}")
    told = await run(shared_host, sandbox, "seen.append(2)")
    assert not told.receipt.snapshot.current
    assert "thread 'the worker' is at work" in told.receipt.snapshot.reason
    lost = await run(shared_host, sandbox, "os._exit(1)")
    assert lost.receipt.state is MemoryState.RESTORED
    assert "as they were after cell [1]" in lost.explanation
    assert "what the last 2 cells before this one did to them is lost too" in lost.explanation
    assert "before this cell." not in lost.explanation
    assert await value_of(shared_host, sandbox, "seen") == "[0]"


@pytest.mark.parametrize(
    "idle",
    [
        "pool = concurrent.futures.ThreadPoolExecutor(4); _ = list(pool.map(abs, range(9)))",
        "event = threading.Event(); threading.Thread(target=event.wait, daemon=True).start()",
        "q = queue.Queue(); threading.Thread(target=q.get, daemon=True).start()",
        "timer = threading.Timer(600, print); timer.daemon = True; timer.start()",
        "def tick():\n    while True: time.sleep(0.05)\nthreading.Thread(target=tick, daemon=True).start()",
        "a = np.ones((500, 500)); _ = a @ a",
    ],
    ids=["a pool", "an event", "a queue", "a timer", "a clock", "BLAS"],
)
async def test_idle_threads_do_not_keep_a_snapshot_from_being_taken(shared_host: HostConnection, idle: str) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, f"import concurrent.futures, queue, threading, time, numpy as np\n{idle}\nx = 1")
    await until_affordable(shared_host, sandbox)
    assert (await run(shared_host, sandbox, "x = 2")).receipt.snapshot.current
    await crash(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, "x") == "2"


async def test_interrupts_that_come_between_cells_harm_neither_kernel_nor_snapshots(
    shared_host: HostConnection,
) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "n = 0")
    interrupt = kernels.InterruptKernel(sandbox=sandbox, kernel=KERNEL)
    for _ in range(10):
        await asyncio.gather(
            run(shared_host, sandbox, "n += 1"), *(shared_host.ask(interrupt, wire.Done) for _ in range(3))
        )
        await command(shared_host, sandbox, "pkill -INT -x python3")
    report = await at_rest(shared_host, sandbox)
    assert report.epoch == 1
    assert int(await value_of(shared_host, sandbox, "n")) <= 10
    await crash(shared_host, sandbox)
    assert (await run(shared_host, sandbox, "n")).outcome is Outcome.OK


async def test_an_attached_notebook_goes_on_in_the_memory_that_came_back(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "x = [1]")
    attach = kernels.AttachKernel(sandbox=sandbox, kernel=KERNEL)
    report = await shared_host.ask(attach, kernels.AttachReport)
    async with open_notebook(report.connection_file) as notebook:
        assert (await notebook.run("x.append(2); x")).result == "[1, 2]"
        for _ in range(2):
            await crash(shared_host, sandbox)
            again = await shared_host.ask(attach, kernels.AttachReport)
            assert again.connection_file == report.connection_file
            assert (await notebook.run("x")).result == "[1, 2]"
        assert (await notebook.run("x.append(3)")).reply["status"] == "ok"
        await until_affordable(shared_host, sandbox)
        await undo(shared_host, sandbox, 1)
        assert (await notebook.run("x")).result == "[1, 2]", "what a notebook ran can be undone"


async def test_a_sandbox_that_is_closed_right_after_a_cell_is_closed_at_once(shared_host: HostConnection) -> None:
    for number in range(8):
        sandbox = await make_kernel(shared_host)
        await run(shared_host, sandbox, "x = 1")
        # At different moments of the snapshot that is taken after the cell.
        await asyncio.sleep(number * 0.004)
        began = time.monotonic()
        await shared_host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
        assert time.monotonic() - began < AT_ONCE_S


async def test_a_kernel_that_is_ended_or_restarted_right_after_a_cell_leaves_no_snapshot(
    shared_host: HostConnection,
) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "x = 1")
    await shared_host.ask(kernels.SetSnapshots(sandbox=sandbox, kernel=KERNEL, on=False), wire.Done)
    await at_rest(shared_host, sandbox)
    none = await dormant(shared_host, sandbox)
    for number in range(6):
        name = f"k{number}"
        await branch(shared_host, sandbox, name)
        await run(shared_host, sandbox, "x = 2", kernel=name)
        if number % 2:
            restart = kernels.RestartKernel(sandbox=sandbox, kernel=name)
            assert (await shared_host.ask(restart, kernels.KernelReport)).snapshots.kept == 0
        await shared_host.ask(kernels.EndKernel(sandbox=sandbox, kernel=name), wire.Done)
    async with asyncio.timeout(AT_ONCE_S):
        while await dormant(shared_host, sandbox) > none:
            await asyncio.sleep(0.05)


async def test_the_kernel_stands_still_no_longer_than_it_says(shared_host: HostConnection) -> None:
    """With millions of objects and a file that is open for writing: what it costs is told, whatever it is spent on."""
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "many = [[n] for n in range(2_000_000)]; file = open('/tmp/file', 'w')")
    began = time.monotonic()
    report = await at_rest(shared_host, sandbox)
    took_s = time.monotonic() - began
    assert report.snapshots.current
    assert took_s <= 3 * report.snapshots.cost_s + 0.3
