"""Pid 1 of a sandbox: starts processes, reaps them, and tells the host. Runs no agent's code itself.

It is a clone of the zygote, so a process that wants the warm interpreter is one fork away. What a forked process does
is left to the modules in `entries`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

from workbench_guest.channel import Channel, close_all
from workbench_guest.confine import syscalls as sys_
from workbench_guest.dormant import Dormant, Waiting
from workbench_guest.entering import HELD_BACK, become_entry, check_entry, lower_open_files
from workbench_guest.messages import (
    OOM_PREFERENCE_OF_CHILDREN,
    OWN_NAME,
    SCRATCH,
    Configure,
    Discard,
    Exited,
    Message,
    NotStarted,
    Offer,
    Offered,
    Prepare,
    Signal,
    Start,
    Started,
    Unprepared,
    Withdrawn,
)

# A minute: a bomb of processes that takes all memory is ended by the host after 24 s, on a busy machine later.
_TELL_TRIES, _TELL_PAUSE_S = 3000, 0.02


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
        self._spares: dict[str | None, Waiting] = {}
        """forked interpreters that wait for an order: one that can be anything, and those prepared for one entry"""
        self._dormant = Dormant()
        self._lines: dict[int, Channel] = {}
        """to processes that may offer snapshots of themselves, by descriptor"""
        self._poller = select.poll()

    def serve(self) -> None:
        """Return when the host is gone."""
        self._poller.register(self._control.fileno(), select.POLLIN)
        self._poller.register(self._wake_read, select.POLLIN)
        while True:
            for descriptor, _ in self._poller.poll():
                if descriptor == self._wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                    self._reap()
                elif descriptor in self._lines:
                    self._hear(self._lines[descriptor])
                elif not self._obey():
                    return

    def _hear(self, line: Channel) -> None:
        """From a process that the agent's code runs in: an offer, or nothing that is listened to."""
        with contextlib.suppress(OSError, ValueError):
            if (received := line.receive()) is not None:
                offer, descriptors = received
                if isinstance(offer, Offer):
                    known = {*self._processes, *(spare.pid for spare in self._spares.values())}
                    if self._dormant.take_in(offer, descriptors, known):
                        self._tell(Offered(snapshot=offer.snapshot, pid=offer.pid))
                    return
                close_all(descriptors)
        self._poller.unregister(line.fileno())
        del self._lines[line.fileno()]
        line.close()

    def _obey(self) -> bool:
        try:
            received = self._control.receive()
        except ConnectionResetError:
            return False
        except OSError as problem:
            if problem.errno not in (errno.ENOMEM, errno.ENOBUFS):
                raise
            # It is still there when there is memory again.
            time.sleep(_TELL_PAUSE_S)
            return True
        if received is None:
            return False
        request, descriptors = received
        try:
            match request:
                case Configure():
                    self._env = request.env
                    self._drop_prepared(keep=request.keep_prepared)
                case Prepare():
                    self._prepare(request, descriptors)
                case Start():
                    self._tell(self._start(request, descriptors))
                case Signal():
                    self._signal(request)
                case Discard():
                    self._dormant.discard(request.snapshot)
                case _:
                    pass
        finally:
            close_all(descriptors)
        return True

    def _tell(self, message: Message) -> None:
        """To the host. A sandbox at the limit of its memory has none for a message either, until someone was ended."""
        for _ in range(_TELL_TRIES):
            try:
                self._control.send(message)
            except OSError as problem:
                if problem.errno not in (errno.ENOMEM, errno.ENOBUFS):
                    raise
                time.sleep(_TELL_PAUSE_S)
            else:
                return
        raise OSError(errno.ENOMEM, "the host cannot be told anything any more")

    def _start(self, request: Start, descriptors: list[int]) -> Message:
        env = {**self._env, **request.env}
        try:
            if request.entry is None:
                with self._child_goes_first():
                    pid = _execute(request, env, descriptors)
                with contextlib.suppress(ProcessLookupError):
                    lower_open_files(pid, self._open_files)
            else:
                pid = self._begin_entry(request, env, descriptors)
        except OSError as problem:
            return NotStarted(process=request.process, error=_explained(problem, request))
        except ValueError as problem:
            # Text that cannot be an argument. The host checks first; pid 1 must not die of what it missed.
            return NotStarted(process=request.process, error=str(problem))
        self._processes[pid] = request.process
        return Started(process=request.process, pid=pid)

    @contextlib.contextmanager
    def _child_goes_first(self) -> Iterator[None]:
        """When memory runs out, the agent's processes; pid 1 holds the sandbox together.

        Around the fork alone: pid 1 itself would go as gladly meanwhile.
        """
        os.pwrite(self._oom_preference, b"%d" % OOM_PREFERENCE_OF_CHILDREN, 0)
        try:
            yield
        finally:
            os.pwrite(self._oom_preference, b"0", 0)

    def _begin_entry(self, request: Start, env: dict[str, str], descriptors: list[int]) -> int:
        if request.snapshot is not None:
            found = self._dormant.pop(request.snapshot)
            if found is None:
                raise ValueError(f"{_NO_SNAPSHOT}: {request.snapshot}")
            self._order(found, request, descriptors)
            return found.pid
        check_entry(request)
        order = Start(process=request.process, entry=request.entry, env=env, cwd=request.cwd, line=request.line)
        for waiting in (request.entry, None):
            spare = self._spares.pop(waiting, None)
            if spare is not None:
                # The spare is the agent's to kill, like any process of its uid; a fresh one is as good.
                with contextlib.suppress(OSError):
                    self._order(spare, order, descriptors)
                    return spare.pid
        spare = self._forked_spare()
        self._order(spare, order, descriptors)
        return spare.pid

    def _order(self, waiting: Waiting, order: Start, descriptors: list[int]) -> None:
        """Tell it what to be. Its channel is kept as the line of one that may offer snapshots, else closed."""
        try:
            waiting.channel.send(order, tuple(descriptors), wait=False)
        except OSError:
            waiting.channel.close()
            raise
        if order.line:
            self._lines[waiting.channel.fileno()] = waiting.channel
            self._poller.register(waiting.channel.fileno(), select.POLLIN)
        else:
            waiting.channel.close()

    def fork_spare(self) -> None:
        """Have an interpreter ready for the first process."""
        self._spares[None] = self._forked_spare()

    def _prepare(self, request: Prepare, descriptors: list[int]) -> None:
        # Without room for one more process nothing is lost but the head start.
        with contextlib.suppress(OSError):
            if request.entry not in self._spares:
                spare = self._spares[request.entry] = self._forked_spare(request.entry)
                if descriptors:
                    spare.channel.send(request, tuple(descriptors), wait=False)

    def _drop_prepared(self, keep: str | None) -> None:
        for entry in [entry for entry in self._spares if entry not in (None, keep)]:
            spare = self._spares.pop(entry)
            spare.channel.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(spare.pid, signal.SIGKILL)

    def _forked_spare(self, entry: str | None = None) -> Waiting:
        """A forked interpreter that waits to be told what to be: the fork is paid before anyone asks."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A signal that comes before the child is ready for it waits, instead of meeting the handlers of pid 1.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
        try:
            with self._child_goes_first():
                pid = sys_.fork_unfinished()
            if pid == 0:
                ours.close()
                become_entry(Channel(theirs), self._open_files, entry)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return Waiting(pid, Channel(ours))

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
                if entry is not None:
                    self._tell(Unprepared(entry=entry))
            if (snapshot := self._dormant.ended(pid)) is not None:
                self._tell(Withdrawn(snapshot=snapshot))
            process = self._processes.pop(pid, None)
            if process is None:
                continue  # an orphan that the kernel gave to us
            space = os.statvfs(SCRATCH)
            self._tell(
                Exited(
                    process=process,
                    status=status,
                    cpu_s=usage.ru_utime + usage.ru_stime,
                    peak_bytes=usage.ru_maxrss * 1024,
                    scratch_free_bytes=space.f_bavail * space.f_frsize,
                    scratch_free_inodes=space.f_favail,
                )
            )


# What the host looks for.
_NO_SNAPSHOT = "no such snapshot in the sandbox"


def _nothing(_number: int, _frame: object) -> None:
    """A handler must exist for the wake-up descriptor to be written."""


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


def _explained(problem: OSError, request: Start) -> str:
    if problem.errno == errno.EAGAIN:
        return "too many processes: the sandbox is at its limit; end some, or choose a larger tier"
    if problem.errno == errno.ENOENT and request.entry is None:
        missing = problem.filename or request.argv[0]
        what = "working folder" if missing == request.cwd else "program"
        return f"no such {what} in the sandbox: {missing}"
    return str(problem)
