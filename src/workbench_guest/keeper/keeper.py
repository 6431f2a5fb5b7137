"""The keeper: one program that is a Jupyter kernel, from its start to its end, between it and the host's sockets."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import NoReturn

from workbench_guest import working_folder
from workbench_guest.keeper.place import CHANNELS, Place
from workbench_guest.keeper.program import Order, end_program, start_program
from workbench_guest.keeper.pump import Link, Pump
from workbench_guest.keeper.waiting import WaitingProgram

# A program that is not up after this is given up by the host.
_LOOK_MS = 5
_MOST_LINKS = 16
# What libzmq says by itself is less than this, and an answer of the program's is more.
_HANDSHAKE_BYTES = 300
# Nobody on the host's side: its sockets come back sooner, or never.
_ALONE_S = 5.0
# For what a dead program said to be taken by the host, as long as some of it is.
_LEAVE_S = 10.0


class Keeper:
    """One per process. Ends the process as the program ended."""

    def __init__(
        self,
        order: Order,
        listening: Sequence[int],
        printed: Sequence[int],
        waiting: WaitingProgram | None = None,
    ) -> None:
        """`waiting` is the program if it has been started already."""
        self._order = order
        self._waited = waiting
        self._listening = {
            name: socket.socket(fileno=descriptor) for name, descriptor in zip(CHANNELS, listening, strict=True)
        }
        self._printed = printed
        self._poller = select.poll()
        self._pump = Pump(self._poller)
        self._waiting: list[tuple[str, socket.socket]] = []
        """connections of the host's that the program has not taken yet"""
        self._served = False
        self._shells: list[Link] = []
        """until one of them has an answer"""
        self._alone_since: float | None = None
        self._told_to_end = False
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poller.register(self._wake, select.POLLIN)

    def run(self) -> NoReturn:
        """Until the program ends, or nobody wants it any more."""
        # A handler, as what is ignored the program would ignore too. What is sent to the group is for the program.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end_soon)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        place = self._waited.place if self._waited is not None else Place(self._order.kernel)
        try:
            if note := working_folder.enter(self._order.working_folder):
                os.write(2, note.encode("utf-8", "replace"))
            program = self._start(place)
            try:
                self._serve(place, program)
            finally:
                end_program(program)
                self._let_leave()
        finally:
            place.close()
        _end_like(program.returncode)

    def _end_soon(self, _number: int, _frame: object) -> None:
        self._told_to_end = True

    def _start(self, place: Place) -> subprocess.Popen[bytes]:
        try:
            if self._waited is None:
                return start_program(self._order, place, self._printed)
            self._waited.tell()
            return self._waited.program
        finally:
            for descriptor in self._printed:
                os.close(descriptor)

    def _serve(self, place: Place, program: subprocess.Popen[bytes]) -> None:
        ended = os.pidfd_open(program.pid)
        self._poller.register(ended, select.POLLIN)
        try:
            up = False
            while not self._told_to_end and not self._left_alone():
                if not up and (up := place.look()):
                    self._listen()
                self._connect(place)
                for descriptor, events in self._poller.poll(self._patience_ms(up)):
                    if descriptor == ended:
                        return
                    if descriptor == self._wake:
                        os.read(self._wake, 4096)
                    elif not self._pump.serve(descriptor, events):
                        self._accept(descriptor)
                # Not before: a program may look at its connection file again after it has made its sockets.
                if any(link.out.carried > _HANDSHAKE_BYTES for link in self._shells):
                    self._shells.clear()
                    place.hide()
        finally:
            self._poller.unregister(ended)
            os.close(ended)

    def _patience_ms(self, up: bool) -> int | None:
        if not up or self._waiting:
            return _LOOK_MS
        return int(_ALONE_S * 1000) if self._alone_since is not None else None

    def _left_alone(self) -> bool:
        """Whether the host was there and has been gone for a while."""
        if self._pump or self._waiting:
            self._served, self._alone_since = True, None
        elif self._served and self._alone_since is None:
            self._alone_since = time.monotonic()
        return self._alone_since is not None and time.monotonic() - self._alone_since > _ALONE_S

    def _listen(self) -> None:
        for one in self._listening.values():
            one.setblocking(False)
            self._poller.register(one.fileno(), select.POLLIN)

    def _accept(self, descriptor: int) -> None:
        for name, one in self._listening.items():
            if one.fileno() == descriptor:
                with contextlib.suppress(OSError):
                    host, _ = one.accept()
                    if len(self._pump) + len(self._waiting) < _MOST_LINKS:
                        self._waiting.append((name, host))
                    else:
                        host.close()

    def _connect(self, place: Place) -> None:
        waiting, self._waiting = self._waiting, []
        for name, host in waiting:
            program = place.connect(name)
            if program is None:
                self._waiting.append((name, host))
            else:
                link = Link(host, program)
                self._pump.add(link)
                if name == "shell" and place.is_visible:
                    self._shells.append(link)

    def _let_leave(self) -> None:
        """What the program had said is still in its sockets; the host takes it, or is gone."""
        # What is always ready from now on, and nobody hears any more.
        self._poller.unregister(self._wake)
        for one in self._listening.values():
            with contextlib.suppress(KeyError):
                self._poller.unregister(one.fileno())
        until = time.monotonic() + _LEAVE_S
        while not self._pump.take_all() and time.monotonic() < until:
            for descriptor, events in self._poller.poll(_LOOK_MS):
                self._pump.serve(descriptor, events)
        self._pump.close()
        for _, host in self._waiting:
            host.close()


def _end_like(status: int) -> NoReturn:
    """The host is to see how the program ended; that is all that it sees of it."""
    if status < 0:
        with contextlib.suppress(OSError, ValueError):
            # No core of ours.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if -status not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(-status, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
            os.kill(os.getpid(), -status)
            ctypes.CDLL(None).pause()
    os._exit(status if status >= 0 else 128 - status)
