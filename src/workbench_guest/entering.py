"""In a forked child of pid 1: wait for the order, then be the entry that it names.

A process whose order says so keeps its line to pid 1, over which it may offer snapshots of itself.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

from workbench_guest.channel import Channel
from workbench_guest.confine import syscalls as sys_
from workbench_guest.messages import HOME, Prepare, Start

_ENTRIES = "workbench_guest.entries."
HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_line: list[Channel] = []


def line() -> Channel | None:
    """The way to pid 1, for a process that may offer snapshots of itself."""
    return _line[0] if _line else None


def set_line(channel: Channel) -> None:
    """Another one from now on; the caller has closed the one before."""
    _line[:] = [channel]


def check_entry(request: Start) -> None:
    """What a fork could only find out after it began, and with it the process.

    Raises:
        ValueError: there is no such entry, or no such folder.
    """
    name = str(request.entry)
    if not name.isidentifier() or importlib.util.find_spec(_ENTRIES + name) is None:
        raise ValueError(f"no such entry in the guest: {name}")
    if not os.path.isdir(request.cwd):
        raise ValueError(f"no such working folder in the sandbox: {request.cwd}")


def lower_open_files(pid: int, wanted: int) -> None:
    """Below pid 1's own limit; 0 is the caller itself."""
    most = min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


def become_entry(channel: Channel, open_files: int, prepared_for: str | None) -> NoReturn:
    """In the forked child: do what can be done, wait for the order, then be it."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        low = os.dup2(channel.detach(), 3, inheritable=False)
        # BARRIER: pid 1's control socket and its handle on /proc must not reach the agent; held by the proof's
        # `descriptors` row.
        sys_.close_above(4)
        control = Channel(socket.socket(fileno=low))
        if prepared_for is not None:
            sys_.finish_fork()
            importlib.import_module(_ENTRIES + prepared_for).prepare()
        received = control.receive()
        if received is not None and isinstance(received[0], Prepare):
            lower_open_files(0, open_files)
            _begin_entry(received[0], received[1])
            received = control.receive()
        if received is None or not isinstance(received[0], Start):
            os._exit(0)
        if received[0].line:
            set_line(control)
        else:
            control.close()
        if prepared_for is None:
            sys_.finish_fork()
        lower_open_files(0, open_files)
        code = _run_entry(received[0], received[1])
    except SystemExit as leaving:
        code = _exit_code(leaving)
    except BaseException:  # noqa: BLE001  a forked child must never return into pid 1's loop
        # By the descriptor: what the stream objects are by now is anyone's guess.
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        try:
            _finish()
        finally:
            os._exit(code & 0xFF)


def _exit_code(leaving: SystemExit) -> int:
    """As the interpreter has it: a number is the code, anything else is printed."""
    if leaving.code is None or isinstance(leaving.code, int):
        return leaving.code or 0
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{leaving.code}\n")
    return 1


def _finish() -> None:
    """What an interpreter does at its end and `os._exit` leaves out: wait for threads, run exit handlers, flush."""
    # No public names for the first two. The streams are looked up only now: the agent may have put anything there.
    steps: tuple[Callable[[], object], ...] = (
        lambda: vars(threading)["_shutdown"](),
        lambda: vars(atexit)["_run_exitfuncs"](),
        lambda: sys.stdout.flush(),
        lambda: sys.stderr.flush(),
    )
    for step in steps:
        with contextlib.suppress(BaseException):
            step()


def _begin_entry(order: Prepare, descriptors: list[int]) -> None:
    """Nobody has the sandbox yet: what is told here is the same for all who could."""
    os.environ.clear()
    os.environ.update(order.env)
    os.chdir(HOME)
    with open(descriptors[0], "rb") as file:
        told = file.read()
    importlib.import_module(_ENTRIES + order.entry).begin(told, descriptors[1:])


def _run_entry(order: Start, descriptors: list[int]) -> int:
    payload = take_over(descriptors)
    sys_.set_name("python3")
    # The agent's own process is open to its own tools again: /proc/self, /dev/stdout, debuggers.
    sys_.prctl(sys_.PR_SET_DUMPABLE, 1)
    os.environ.clear()
    os.environ.update(order.env)
    os.chdir(order.cwd)
    module = importlib.import_module(_ENTRIES + str(order.entry))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
    return int(module.main(payload, descriptors[4:]))


def take_over(descriptors: list[int]) -> bytes:
    """Standard streams from an order's descriptors; its payload is the answer. The entry's own are left to it."""
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    with open(descriptors[3], "rb") as file:
        return file.read()
