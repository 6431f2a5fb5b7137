"""Snapshots as pid 1 keeps them: processes that wait, each with a channel of its own, to be started by an order."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from workbench_guest.channel import Channel, close_all
from workbench_guest.messages import Offer

# A session keeps a handful; an agent that offers without end gets no further.
_MOST = 256
# The host is told of it by this name, in one message.
_MOST_NAME = 200


class Waiting:
    """A process, and the channel that its order goes to."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel


class Dormant:
    """Those of one sandbox, by the name that the host chose for each.

    BARRIER: offers are the agent's word. What is not a process that pid 1 may wait for, or not a channel, is refused,
    and pid 1 never waits for the other end; held by tests/host/test_hostile_kernels.py.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}

    def take_in(self, offer: Offer, descriptors: list[int], known: set[int]) -> bool:
        """Whether it is kept. `known` are pids that are something else; the descriptors are ours from here on."""
        refused = (
            len(self._waiting) >= _MOST
            or len(offer.snapshot) > _MOST_NAME
            or not offer.snapshot.isascii()
            or len(descriptors) != 1
            or offer.snapshot in self._waiting
            or offer.pid in known
            or any(offer.pid == one.pid for one in self._waiting.values())
            or not _is_child(offer.pid)
        )
        channel = None if refused else _channel(descriptors[0])
        if channel is None:
            close_all(descriptors)
            return False
        self._waiting[offer.snapshot] = Waiting(offer.pid, channel)
        return True

    def pop(self, snapshot: str) -> Waiting | None:
        """To be started, by the caller, who closes its channel."""
        return self._waiting.pop(snapshot, None)

    def discard(self, snapshot: str) -> None:
        """End it. Nothing happens if it is gone."""
        if (found := self._waiting.pop(snapshot, None)) is not None:
            found.channel.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)

    def ended(self, pid: int) -> str | None:
        """It was reaped: the name of the snapshot that is no more, if it was one."""
        for snapshot, found in self._waiting.items():
            if found.pid == pid:
                found.channel.close()
                del self._waiting[snapshot]
                return snapshot
        return None


def _is_child(pid: int) -> bool:
    """Whether it is ours to wait for; a stranger's number could mean any process tomorrow."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (OSError, OverflowError, ValueError):
        return False
    return True


def _channel(descriptor: int) -> Channel | None:
    try:
        sock = socket.socket(fileno=descriptor)
    except OSError:
        return None
    if (sock.family, sock.type) != (socket.AF_UNIX, socket.SOCK_SEQPACKET):
        sock.detach()
        return None
    return Channel(sock)
