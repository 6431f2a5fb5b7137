"""Pid 1 of a sandbox: starts processes, reaps them, and tells the host. Runs no agent's code itself.

It is a clone of the zygote, so a process that wants the warm interpreter is one fork away. What a forked process does
is left to the modules in `entries`.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import importlib
import importlib.util
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import NoReturn

from workbench_guest.channel import Channel, close_all
from workbench_guest.confine import syscalls as sys_
from workbench_guest.messages import (
    OWN_NAME,
    SCRATCH,
    Configure,
    Exited,
    Message,
    NotStarted,
    Prepare,
    Signal,
    Start,
    Started,
)

# The agent's processes go first when memory runs out; pid 1 holds the sandbox together.
_OOM_PREFERENCE_OF_CHILDREN = 300
_ENTRIES = "workbench_guest.entries."
_HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Init:
    """The loop of pid 1. Ends, and the whole sandbox with it, when the host's end of the socket closes."""

    def __init__(self, control: Channel, oom_preference: int, open_files: int) -> None:
        self._control = control
        self._open_files = open_files
        self._oom_preference = oom_preference
        self._env: dict[str, str] = {}
        self._processes: dict[int, str] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, _nothing)
        # A stray group's interrupt is not for pid 1. Not SIG_IGN, which every program started from here would inherit.
        signal.signal(signal.SIGINT, _nothing)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        # Before the first fork: what has not become anything yet is called the same.
        sys_.set_name(OWN_NAME)
        self._spares: dict[str | None, _Spare] = {}
        """forked interpreters that wait for an order: one that can be anything, and those prepared for one entry"""

    def serve(self) -> None:
        """Return when the host is gone."""
        poller = select.poll()
        poller.register(self._control.fileno(), select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == self._wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                    self._reap()
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        try:
            received = self._control.receive()
        except ConnectionResetError:
            return False
        if received is None:
            return False
        request, descriptors = received
        try:
            match request:
                case Configure():
                    self._env = request.env
                    self._drop_prepared(keep=request.keep_prepared)
                case Prepare():
                    self._prepare(request.entry)
                case Start():
                    self._control.send(self._start(request, descriptors))
                case Signal():
                    self._signal(request)
                case _:
                    pass
        finally:
            close_all(descriptors)
        return True

    def _start(self, request: Start, descriptors: list[int]) -> Message:
        env = {**self._env, **request.env}
        try:
            with self._children_go_first():
                if request.entry is None:
                    pid = _execute(request, env, descriptors)
                    with contextlib.suppress(ProcessLookupError):
                        _lower_open_files(pid, self._open_files)
                else:
                    pid = self._fork_entry(request, env, descriptors)
        except OSError as problem:
            return NotStarted(process=request.process, error=_explained(problem, request))
        except ValueError as problem:
            # Text that cannot be an argument. The host checks first; pid 1 must not die of what it missed.
            return NotStarted(process=request.process, error=str(problem))
        self._processes[pid] = request.process
        return Started(process=request.process, pid=pid)

    @contextlib.contextmanager
    def _children_go_first(self) -> Iterator[None]:
        os.pwrite(self._oom_preference, b"%d" % _OOM_PREFERENCE_OF_CHILDREN, 0)
        try:
            yield
        finally:
            os.pwrite(self._oom_preference, b"0", 0)

    def _fork_entry(self, request: Start, env: dict[str, str], descriptors: list[int]) -> int:
        _check_entry(request)
        order = Start(process=request.process, entry=request.entry, env=env, cwd=request.cwd)
        for waiting in (request.entry, None):
            spare = self._spares.pop(waiting, None)
            if spare is not None:
                try:
                    spare.channel.send(order, tuple(descriptors))
                except OSError:
                    # The spare is the agent's to kill, like any process of its uid; a fresh one is as good.
                    continue
                else:
                    return spare.pid
                finally:
                    spare.channel.close()
        spare = self._forked_spare()
        spare.channel.send(order, tuple(descriptors))
        spare.channel.close()
        return spare.pid

    def fork_spare(self) -> None:
        """Have an interpreter ready for the first process."""
        self._spares[None] = self._forked_spare()

    def _prepare(self, entry: str) -> None:
        # Without room for one more process nothing is lost but the head start.
        with contextlib.suppress(OSError):
            if entry not in self._spares:
                self._spares[entry] = self._forked_spare(entry)

    def _drop_prepared(self, keep: str | None) -> None:
        for entry in [entry for entry in self._spares if entry not in (None, keep)]:
            spare = self._spares.pop(entry)
            spare.channel.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(spare.pid, signal.SIGKILL)

    def _forked_spare(self, entry: str | None = None) -> _Spare:
        """A forked interpreter that waits to be told what to be: the fork is paid before anyone asks."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A signal that comes before the child is ready for it waits, instead of meeting the handlers of pid 1.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
        try:
            with self._children_go_first():
                pid = sys_.fork_unfinished()
            if pid == 0:
                ours.close()
                _become_entry(Channel(theirs), self._open_files, entry)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return _Spare(pid, Channel(ours))

    def _signal(self, request: Signal) -> None:
        for pid, process in self._processes.items():
            if process == request.process:
                # Every process is started as the leader of its own group, or is about to be and still alone.
                with contextlib.suppress(OSError, OverflowError):
                    try:
                        os.killpg(pid, request.number)
                    except ProcessLookupError:
                        os.kill(pid, request.number)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for entry in [entry for entry, spare in self._spares.items() if spare.pid == pid]:
                self._spares.pop(entry).channel.close()
            process = self._processes.pop(pid, None)
            if process is None:
                continue  # an orphan that the kernel gave to us
            space = os.statvfs(SCRATCH)
            self._control.send(
                Exited(
                    process=process,
                    status=status,
                    cpu_s=usage.ru_utime + usage.ru_stime,
                    peak_bytes=usage.ru_maxrss * 1024,
                    scratch_free_bytes=space.f_bavail * space.f_frsize,
                    scratch_free_inodes=space.f_favail,
                )
            )


class _Spare:
    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel


def _nothing(_number: int, _frame: object) -> None:
    """A handler must exist for the wake-up descriptor to be written."""


def _lower_open_files(pid: int, wanted: int) -> None:
    """Below pid 1's own limit; 0 is the caller itself."""
    most = min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


def _execute(request: Start, env: dict[str, str], descriptors: list[int]) -> int:
    # Popen uses vfork here: no copy of the warm interpreter's page tables.
    child = subprocess.Popen(
        request.argv,
        stdin=descriptors[0],
        stdout=descriptors[1],
        stderr=descriptors[2],
        env=env,
        cwd=request.cwd,
        start_new_session=True,
    )
    # Reaped by pid 1's own loop; Popen must not wait for it a second time.
    child.returncode = 0
    return child.pid


def _check_entry(request: Start) -> None:
    """What a fork could only find out after it began, and with it the process."""
    name = str(request.entry)
    if not name.isidentifier() or importlib.util.find_spec(_ENTRIES + name) is None:
        raise ValueError(f"no such entry in the guest: {name}")
    if not os.path.isdir(request.cwd):
        raise ValueError(f"no such working folder in the sandbox: {request.cwd}")


def _explained(problem: OSError, request: Start) -> str:
    if problem.errno == errno.EAGAIN:
        return "too many processes: the sandbox is at its limit; end some, or choose a larger tier"
    if problem.errno == errno.ENOENT and request.entry is None:
        missing = problem.filename or request.argv[0]
        what = "working folder" if missing == request.cwd else "program"
        return f"no such {what} in the sandbox: {missing}"
    return str(problem)


def _become_entry(channel: Channel, open_files: int, prepared_for: str | None) -> NoReturn:
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
        if received is None or not isinstance(received[0], Start):
            os._exit(0)
        control.close()
        if prepared_for is None:
            sys_.finish_fork()
        _lower_open_files(0, open_files)
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


def _run_entry(order: Start, descriptors: list[int]) -> int:
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys_.set_name("python3")
    # The agent's own process is open to its own tools again: /proc/self, /dev/stdout, debuggers.
    sys_.prctl(sys_.PR_SET_DUMPABLE, 1)
    os.environ.clear()
    os.environ.update(order.env)
    os.chdir(order.cwd)
    with open(descriptors[3], "rb") as file:
        payload = file.read()
    module = importlib.import_module(_ENTRIES + str(order.entry))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
    return int(module.main(payload, descriptors[4:]))
