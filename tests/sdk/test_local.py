"""Servers of a program's own: what stays, and what does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
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
