"""Servers of a program's own: what stays, and what does not."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench import AsyncWorkbench, Workbench
from workbench.errors import ServerUnavailable

_LONG_S = 90.0
_PROGRAM = """
import sys
from workbench import Workbench
wb = Workbench.local()
session = wb.create("user_123")
print(session.run("print('hello'); 6 * 7").text.replace(chr(10), " "), wb._server._child.pid, flush=True)
{then}
"""


def processes_of(folder: str) -> list[int]:
    """Whose command line or environment names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                known = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if folder.encode() in known:
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def program(short_dir: Path, then: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """One with a server, that does `then`; and the server's pid. Its temporary folder is in `short_dir`."""
    command = [sys.executable, "-c", _PROGRAM.format(then=then)]
    environ = {**os.environ, "TMPDIR": str(short_dir)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert line.startswith("hello 42 ")
            assert len(list(short_dir.iterdir())) == 1
            yield child, int(line.split()[-1])
        finally:
            child.kill()


def wait_until_nothing_is_left(folder: Path) -> None:
    deadline = time.monotonic() + _LONG_S
    while (left := [*folder.iterdir(), *processes_of(str(folder))]) != []:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + _LONG_S
    while Path(f"/proc/{pid}/stat").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]:
        assert time.monotonic() < deadline, "the server did not end"
        time.sleep(0.02)


def test_a_script_starts_one_runs_a_cell_and_leaves_nothing(short_dir: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(short_dir)}
    program = [sys.executable, "-c", _PROGRAM.format(then="")]
    done = subprocess.run(program, capture_output=True, text=True, env=environ, timeout=_LONG_S, check=True)
    assert done.stdout.startswith("hello 42 ")
    assert done.stderr == ""
    assert list(short_dir.iterdir()) == []
    assert processes_of(str(short_dir)) == []


def test_a_program_that_is_killed_leaves_nothing_either(short_dir: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(short_dir)}
    program = [sys.executable, "-c", _PROGRAM.format(then="sys.stdin.read()")]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line.startswith("hello 42 ")
        assert len(list(short_dir.iterdir())) == 1
        child.send_signal(signal.SIGKILL)
    wait_for_end(int(line.split()[-1]))
    assert list(short_dir.iterdir()) == []
    assert processes_of(str(short_dir)) == []


def test_a_program_that_is_killed_while_a_forked_child_of_it_lives_leaves_nothing(short_dir: Path) -> None:
    # The child holds the server's standard input, and never reads or writes it.
    then = "import os, time; pid = os.fork(); pid and print(pid, flush=True); time.sleep(3600)"
    with program(short_dir, then) as (child, server):
        assert child.stdout is not None
        forked = int(child.stdout.readline())
        try:
            child.send_signal(signal.SIGKILL)
            wait_for_end(server)
            os.kill(forked, 0)
            deadline = time.monotonic() + _LONG_S
            while processes_of(str(short_dir)) != [forked]:
                assert time.monotonic() < deadline, "only the forked child is left"
                time.sleep(0.05)
            assert list(short_dir.iterdir()) == []
        finally:
            os.kill(forked, signal.SIGKILL)


def test_closing_does_not_wait_for_a_forked_child_which_in_turn_closes_nothing(short_dir: Path) -> None:
    then = """
import os, time
for child_ends in (True, False):
    if (pid := os.fork()) == 0:
        if child_ends:
            sys.exit()
        time.sleep(3600)
    if child_ends:
        os.waitpid(pid, 0)
        print(session.run("1 + 1").results, flush=True)
before = time.monotonic()
try:
    wb.close()
    print(time.monotonic() - before, flush=True)
finally:
    os.kill(pid, 9)
"""
    with program(short_dir, then) as (child, _):
        out, _ = child.communicate(timeout=_LONG_S)
    still, took_s = out.split()
    assert still == "2"
    assert float(took_s) < 30
    wait_until_nothing_is_left(short_dir)


def test_a_server_that_is_killed_leaves_no_host_and_the_next_call_says_what_happened(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_dir))
    with Workbench.local() as wb:
        session = wb.create("user_123")
        assert session.run("6 * 7").results == "42"
        assert wb._server is not None
        os.kill(wb._server._child.pid, signal.SIGKILL)
        before = time.monotonic()
        with pytest.raises(
            ServerUnavailable, match=r"local server has ended \(killed by signal 9\).*Workbench\.local"
        ) as told:
            wb.use(session.id)
        assert "workbench serve" not in told.value.message
        assert time.monotonic() - before < 10
    assert list(short_dir.iterdir()) == []
    wait_until_nothing_is_left(short_dir)


def test_a_server_and_a_host_that_are_killed_leave_nothing_after_close(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_dir))
    with Workbench.local() as wb:
        wb.create("user_123").run("6 * 7")
        assert wb._server is not None
        (folder,) = short_dir.iterdir()
        # The server first: it would start another host.
        os.kill(wb._server._child.pid, signal.SIGKILL)
        for pid in processes_of(str(folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert list(short_dir.iterdir()) == []
    wait_until_nothing_is_left(short_dir)


def test_a_program_and_its_server_that_are_killed_together_leave_nothing(short_dir: Path) -> None:
    with program(short_dir, "sys.stdin.read()") as (child, server):
        # Stopped, so that it cannot do anything about it.
        os.kill(server, signal.SIGSTOP)
        child.send_signal(signal.SIGKILL)
        os.kill(server, signal.SIGKILL)
    wait_until_nothing_is_left(short_dir)


async def test_the_async_one_says_what_happened_as_well() -> None:
    async with await AsyncWorkbench.local() as wb:
        assert wb._server is not None
        os.kill(wb._server._child.pid, signal.SIGKILL)
        with pytest.raises(ServerUnavailable, match=r"local server has ended .*Workbench\.local"):
            await wb.create()
        folder = wb._server._temporary
    assert folder is not None
    assert not folder.exists()


def test_a_killed_server_of_a_kept_folder_ends_with_its_host_and_the_folder_stays(short_dir: Path) -> None:
    data = short_dir / "data"
    with Workbench.local(data) as wb:
        wb.create("user_123", id="mine").run("open('/mnt/files/x', 'w').write('kept')")
        assert wb._server is not None
        os.kill(wb._server._child.pid, signal.SIGKILL)
    deadline = time.monotonic() + _LONG_S
    while processes_of(str(data)):
        assert time.monotonic() < deadline, "the host did not end"
        time.sleep(0.05)
    with Workbench.local(data) as wb:
        assert wb.use("mine").run("open('/mnt/files/x').read()").results == "'kept'"


def test_with_a_data_folder_sessions_are_there_the_next_time(short_dir: Path) -> None:
    data = short_dir / "data"
    with Workbench.local(data) as wb:
        wb.create("user_123", id="mine").run("open('/mnt/files/x', 'w').write('kept')")
    with Workbench.local(str(data)) as wb:
        session = wb.use("mine")
        assert session.run("open('/mnt/files/x').read()").results == "'kept'"
        assert len(list(session.history())) == 2
    assert processes_of(str(data)) == []


async def test_the_async_one_starts_and_ends_alike() -> None:
    async with await AsyncWorkbench.local() as wb:
        session = await wb.create()
        assert (await session.run("6 * 7")).results == "42"
        assert wb._server is not None
        child = wb._server._child
    assert child.returncode == 0
    # Closing twice is closing once.
    await wb.close()


def test_a_server_that_cannot_start_says_why(short_dir: Path) -> None:
    blocked = short_dir / "file"
    blocked.write_text("not a folder")
    with pytest.raises(ServerUnavailable, match=r"the server could not be started: .*file"):
        Workbench.local(blocked)
