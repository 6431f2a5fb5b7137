"""One message and its descriptors at a time over a SEQPACKET socket: no path, no port, works in an empty network.

The blocking side, for the zygote and pid 1. The host has its own, asynchronous, in engines/namespace.
"""

from __future__ import annotations

import array
import os
import socket

from workbench_guest.messages import Message, decode, encode

# A control message is a few hundred bytes; environments and arguments are bounded by the host to fit.
MAX_MESSAGE = 160 * 1024
MAX_DESCRIPTORS = 16


class Channel:
    """Owns its socket; closed by whoever made it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def fileno(self) -> int:
        """For poll."""
        return self._sock.fileno()

    def detach(self) -> int:
        """Give the descriptor up; the object must not close a number that will soon mean something else."""
        return self._sock.detach()

    def send(self, message: Message, descriptors: tuple[int, ...] = (), *, wait: bool = True) -> None:
        """Send; the descriptors stay the caller's. Without `wait` a full channel is an OSError."""
        flags = 0 if wait else socket.MSG_DONTWAIT
        socket.send_fds(self._sock, [encode(message)], list(descriptors), flags)

    def receive(self) -> tuple[Message, list[int]] | None:
        """The next message and its descriptors, now the caller's; None when the other side is gone."""
        data, descriptors, _, _ = socket.recv_fds(self._sock, MAX_MESSAGE, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        if not data:
            close_all(descriptors)
            return None
        try:
            return decode(data), descriptors
        except ValueError:
            close_all(descriptors)
            raise

    def close(self) -> None:
        """May be called twice."""
        self._sock.close()


def close_all(descriptors: list[int] | array.array[int]) -> None:
    """Close each."""
    for descriptor in descriptors:
        os.close(descriptor)
