"""Driving real hosts as clients do, and a look at the machine for what they leave behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from workbench.data_folder import DataFolder
from workbench.errors import HostUnavailable
from workbench.host_client.connection import HostConnection
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.process import Stream
from workbench.settings import Settings
from workbench.wire import host as wire

WAIT_S = 60.0


def eventually(condition: Callable[[], object], what: str, seconds: float = WAIT_S) -> None:
    """Wait for it, within bounds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def run_folders(settings: Settings) -> list[Path]:
    return [run.path for run in DataFolder(settings.data_dir).run_folders()]


def host_pids(settings: Settings) -> list[int]:
    """Hosts of this data folder, by their environment."""
    mark = f"WORKBENCH_DATA_DIR={settings.data_dir}".encode()
    return [pid for pid in all_pids() if mark in read(f"/proc/{pid}/environ").split(b"\0")]


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def descendants(pid: int) -> list[int]:
    """Every process below this one on the machine."""
    found, queue = [], [pid]
    while queue:
        for child in read(f"/proc/{(one := queue.pop())}/task/{one}/children").split():
            found.append(int(child))
            queue.append(int(child))
    return found


def namespace_pids(pid: int) -> list[int]:
    """Its number in each pid namespace, the machine's first."""
    lines = [line for line in read(f"/proc/{pid}/status").splitlines() if line.startswith(b"NSpid:")]
    return [int(number) for number in lines[0].split()[1:]] if lines else []


def sandbox_roots(host_pid: int) -> list[int]:
    """Children of the host that are pid 1 of a namespace."""
    return [child for child in descendants(host_pid) if namespace_pids(child)[1:] == [1]]


def zygotes(host_pid: int) -> list[int]:
    """Warm interpreters outside of any sandbox."""
    return [
        child
        for child in descendants(host_pid)
        if b"workbench_guest.zygote" in read(f"/proc/{child}/cmdline") and len(namespace_pids(child)) == 1
    ]


def alive(pid: int) -> bool:
    """Zombies are not."""
    stat = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(stat) and stat[0] != b"Z"


def groups_of(host_id: str) -> list[str]:
    """Control groups that carry the host's name, anywhere."""
    return [folder for top in ("/sys/fs/cgroup",) for folder, _, _ in os.walk(top) if f"workbench-{host_id}" in folder]


def mounts_of(settings: Settings) -> list[str]:
    """Processes that have a mount from the data folder in their view."""
    mark = str(settings.data_dir).encode()
    holders = [pid for pid in all_pids() if mark in read(f"/proc/{pid}/mountinfo")]
    return [f"{pid}: {read(f'/proc/{pid}/cmdline')!r}" for pid in holders]


def ephemeral_files(settings: Settings) -> list[Path]:
    folder = settings.data_dir / "files"
    return [path for path in folder.iterdir() if path.name.startswith(("tmp-", "s-"))] if folder.is_dir() else []


def assert_nothing_left(settings: Settings, host_ids: list[str], pids: list[int]) -> None:
    """No process, mount, control group, socket or folder."""
    eventually(lambda: not run_folders(settings), "run folders and sockets are gone")
    eventually(lambda: not [pid for pid in pids if alive(pid)], "processes are gone")
    assert not (settings.data_dir / "host.sock").is_symlink()
    assert not [group for host_id in host_ids for group in groups_of(host_id)]
    assert not mounts_of(settings)
    assert not ephemeral_files(settings)


async def make_sandbox(host: HostConnection, **fields: object) -> str:
    sandbox = new_sandbox_id()
    await host.ask(wire.CreateSandbox(sandbox=sandbox, **fields), wire.SandboxReport)  # type: ignore[arg-type]
    return sandbox


async def start_code(host: HostConnection, sandbox: str, code: str) -> str:
    process = new_process_id()
    request = wire.StartProcess(sandbox=sandbox, process=process, entry="run_code", payload=code.encode())
    await host.ask(request, wire.ProcessReport)
    return process


async def whole_output(host: HostConnection, sandbox: str, process: str, stream: Stream = Stream.STDOUT) -> bytes:
    said = b""
    while True:
        request = wire.ReadOutput(sandbox=sandbox, process=process, stream=stream, offset=len(said), wait_s=30.0)
        piece = await host.ask(request, wire.OutputReport)
        said += piece.data
        if piece.ended:
            return said


async def run_code(host: HostConnection, sandbox: str, code: str) -> bytes:
    return await whole_output(host, sandbox, await start_code(host, sandbox, code))


def workbench(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    """The command, as a user runs it."""
    return subprocess.Popen(
        [sys.executable, "-m", "workbench", *arguments],
        env={**os.environ, **settings.to_env()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def output_of(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=WAIT_S * 2)
    return process.returncode, out.decode(), err.decode()


async def stop(host: HostConnection) -> None:
    with contextlib.suppress(HostUnavailable):
        await host.ask(wire.Stop(), wire.Done)
