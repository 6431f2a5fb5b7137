"""Carries bytes between pairs of sockets: both ways, in order, none lost, never more in hand than a bound.

What the bytes mean is not looked at. Who is slow makes the other side wait.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket

_CHUNK = 256 * 1024
# Towards the host: a stock kernel drops what its socket does not take at once, so we take much.
MOST_OUT, MOST_IN = 16 * 1024 * 1024, 1024 * 1024
# What the system holds of one connection, where it lets us choose.
_SYSTEM_BYTES = 4 * 1024 * 1024
_GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF)


class Flow:
    """One direction."""

    def __init__(self, source: socket.socket, target: socket.socket, most: int) -> None:
        self.source = source
        self.target = target
        self._most = most
        self._held = bytearray()
        self.carried = 0
        """bytes so far"""
        self.ended = False
        """nothing more comes"""
        self.broken = False
        """nothing more is taken"""

    @property
    def wants_to_read(self) -> bool:
        """Whether there is room."""
        return not self.ended and not self.broken and len(self._held) < self._most

    @property
    def wants_to_write(self) -> bool:
        """Whether there is something in hand."""
        return bool(self._held) and not self.broken

    @property
    def over(self) -> bool:
        """Everything that came has left, or cannot."""
        return self.broken or (self.ended and not self._held)

    def read(self) -> int:
        """Take what is there, once, and pass it on at once if that is possible; how much it was."""
        try:
            data = self.source.recv(_CHUNK)
        except BlockingIOError:
            return 0
        except OSError as problem:
            self._check(problem)
            data = b""
        if not data:
            self.ended = True
            return 0
        self.carried += len(data)
        if self._held:
            self._held += data
        else:
            sent = self._send(data)
            self._held += memoryview(data)[sent:]
        return len(data)

    def write(self) -> int:
        """Pass on what is in hand, as much as is taken."""
        with memoryview(self._held) as held:
            sent = self._send(held[:_CHUNK])
        del self._held[:sent]
        return sent

    def _send(self, data: bytes | memoryview) -> int:
        try:
            return self.target.send(data)
        except BlockingIOError:
            return 0
        except OSError as problem:
            self._check(problem)
            self.broken = True
            return 0

    @staticmethod
    def _check(problem: OSError) -> None:
        if problem.errno not in _GONE:
            raise problem


class Link:
    """A connection of the host's and the one to the program that belongs to it. Owns both."""

    def __init__(self, host: socket.socket, program: socket.socket) -> None:
        self.host, self.program = host, program
        for one in (host, program):
            one.setblocking(False)
            with contextlib.suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SYSTEM_BYTES)
        self.out = Flow(program, host, MOST_OUT)
        self.into = Flow(host, program, MOST_IN)

    @property
    def over(self) -> bool:
        """One side has gone, and what it had said has arrived. A half of a conversation is none."""
        return self.out.over or self.into.over

    def close(self) -> None:
        """Both ends."""
        self.host.close()
        self.program.close()


class Pump:
    """Several links on one poller that others may wait with."""

    def __init__(self, poller: select.poll) -> None:
        self._poller = poller
        self._links: dict[int, Link] = {}
        self._asked: dict[int, int] = {}

    def __len__(self) -> int:
        return len(set(map(id, self._links.values())))

    def add(self, link: Link) -> None:
        """From now on it is carried, and closed when it is over."""
        for one in (link.host, link.program):
            self._links[one.fileno()] = link
        self._ask(link)

    def serve(self, descriptor: int, events: int) -> bool:
        """What the poller said; False if it is none of ours."""
        link = self._links.get(descriptor)
        if link is None:
            return False
        here, there = (link.out, link.into) if descriptor == link.program.fileno() else (link.into, link.out)
        # `here` is read from this socket, `there` is written to it.
        if events & (select.POLLIN | select.POLLHUP | select.POLLERR) and here.wants_to_read:
            here.read()
        if events & (select.POLLOUT | select.POLLHUP | select.POLLERR) and there.wants_to_write:
            there.write()
        self._ask(link)
        return True

    def _ask(self, link: Link) -> None:
        """Wait for what can be done now, and for nothing else: a socket whose other side has gone is always ready."""
        if link.over:
            self._drop(link)
            return
        for one, read, written in ((link.program, link.out, link.into), (link.host, link.into, link.out)):
            descriptor = one.fileno()
            wanted = (select.POLLIN if read.wants_to_read else 0) | (select.POLLOUT if written.wants_to_write else 0)
            if wanted == self._asked.get(descriptor, 0):
                continue
            if wanted:
                self._poller.register(descriptor, wanted)
                self._asked[descriptor] = wanted
            else:
                self._poller.unregister(descriptor)
                del self._asked[descriptor]

    def _drop(self, link: Link) -> None:
        for one in (link.host, link.program):
            descriptor = one.fileno()
            if self._asked.pop(descriptor, 0):
                self._poller.unregister(descriptor)
            del self._links[descriptor]
        link.close()

    def take_all(self) -> bool:
        """For a program that has ended: read what it had said. Whether all of that has left us."""
        for link in set(self._links.values()):
            while link.out.wants_to_read and link.out.read():
                pass
            self._ask(link)
        return not any(link.out.wants_to_write for link in self._links.values())

    def close(self) -> None:
        """All of them."""
        for link in set(self._links.values()):
            self._drop(link)
