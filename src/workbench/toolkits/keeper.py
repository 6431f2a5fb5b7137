"""Runs one program of the operator's, and sees to it that nothing of it outlives its owner. Executed, never imported.

    python -I -S keeper.py <control> <memory in MiB> <program> <argument>...

It stands between the owner and the program because no other process can: it is told by a pipe that its owner is gone,
however that went, and whatever the program left running in the background becomes its child. Standard input and output
are the program's own. It knows nothing but the standard library, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from typing import NoReturn

_PDEATHSIG, _SUBREAPER = 1, 36
# How long a program has to leave by itself, and how often its memory is looked at.
_LEAVE_S, _LOOK_S = 2.0, 1.0
_MOMENT_S = 0.05
_MOST_FILES = 4096
# As a shell has them.
_NO_SUCH_PROGRAM, _NOT_EXECUTABLE = 127, 126
TOO_LARGE = 137
"""how it ends after its program took too much memory"""


def main() -> NoReturn:
    """Until the program has ended or the owner is gone."""
    control, most_mib, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    asked, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    leave = [False]
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sign, lambda *_: leave.__setitem__(0, True))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = _started(command, libc)
    _let_go_of_streams()
    code = _watched(child, control, asked, most_mib * 2**20, leave)
    _sweep(child)
    os._exit(code)


def _started(command: list[str], libc: ctypes.CDLL) -> subprocess.Popen[bytes]:
    def before() -> None:
        # Also when this process is killed without a word.
        libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(_MOST_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    try:
        # BARRIER: descriptors of the owner's would be the program's; held by tests/toolkits/test_children.py.
        return subprocess.Popen(command, start_new_session=True, close_fds=True, preexec_fn=before)
    except OSError as problem:
        sys.stderr.write(f"{command[0]} cannot be started: {problem.strerror}\n")
        sys.stderr.flush()
        os._exit(_NO_SUCH_PROGRAM if isinstance(problem, FileNotFoundError) else _NOT_EXECUTABLE)


def _let_go_of_streams() -> None:
    """Else whoever reads from the program would never see its end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    os.close(nothing)


def _watched(child: subprocess.Popen[bytes], control: int, asked: int, most_bytes: int, leave: list[bool]) -> int:
    while True:
        code = child.poll()
        if code is not None:
            return code if code >= 0 else 128 - code
        ready, _, _ = select.select([control, asked], [], [], _LOOK_S)
        if leave[0] or control in ready:
            return _own_end(child)
        if asked in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(asked, 4096)
            _reap_others(child.pid)
        used = _used_bytes([child.pid, *_below(os.getpid())])
        if most_bytes and used > most_bytes:
            sys.stderr.write(f"it took {used // 2**20} MiB of memory, and may have {most_bytes // 2**20}\n")
            sys.stderr.flush()
            return TOO_LARGE


def _own_end(child: subprocess.Popen[bytes]) -> int:
    """Of a program whose owner is gone, or has seen its output end a moment before it was seen here."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = child.wait(_MOMENT_S)
        return code if code >= 0 else 128 - code
    return 0


def _sweep(child: subprocess.Popen[bytes]) -> None:
    """Ask, wait, kill: the group, and whatever left it."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGTERM)
        until = time.monotonic() + _LEAVE_S
        while child.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
    until = time.monotonic() + _LEAVE_S
    # What forks while it is killed is found in the next round.
    while (left := _below(os.getpid())) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def _reap_others(child: int) -> None:
    """Those that came to us; the end of our own is `poll`'s."""
    for pid, parent in _parents().items():
        if parent == os.getpid() and pid != child:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _below(top: int) -> list[int]:
    parents = _parents()
    found: list[int] = []
    wanted = {top}
    while wanted:
        wanted = {pid for pid, parent in parents.items() if parent in wanted}
        found += wanted
    return found


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def _used_bytes(pids: list[int]) -> int:
    used = 0
    for pid in set(pids):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
            used += int(file.read().split()[1]) * resource.getpagesize()
    return used


if __name__ == "__main__":
    main()
