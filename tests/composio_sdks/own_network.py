"""A network of the test's own: nothing in it but a loopback, so that no packet of an SDK leaves the machine.

On that loopback is a second address, from a range that counts as public and leads nowhere else here: the newer SDKs
refuse links into private networks, and cannot be told not to. Root only: a network needs no less.

    python own_network.py   makes it ready within the one that it was started in, says so, and holds it until its
                            standard input ends
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")

# AS112's: for servers that answer what should never have been asked, so routed anywhere, and nobody's in particular.
PUBLIC_LOOKING = "192.31.196.1"
_READY = b"ready\n"
_STOP_S = 10.0
_SIOCSIFADDR, _SIOCSIFFLAGS, _SIOCSIFNETMASK = 0x8916, 0x8914, 0x891C
_UP_AND_RUNNING = 0x1 | 0x40
_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True)
class OwnNetwork:
    """One that is held open by a process."""

    holder: int

    def within(self, *command: str) -> list[str]:
        """The command, to be run in it. It becomes the process itself: signals reach it."""
        return ["nsenter", f"--net=/proc/{self.holder}/ns/net", "--", *command]

    def run(self, work: Callable[[], _T]) -> _T:
        """In a thread of this process that is in it. Sockets that it makes stay in it."""
        with ThreadPoolExecutor(1, initializer=self._enter) as thread:
            return thread.submit(work).result()

    def _enter(self) -> None:
        with open(f"/proc/{self.holder}/ns/net", "rb") as network:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(network.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def own_network() -> Iterator[OwnNetwork]:
    """Gone with the last process in it."""
    with subprocess.Popen(
        ["unshare", "--net", "--", sys.executable, str(Path(__file__).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == _READY, "there is no network of its own; are you root?"
            yield OwnNetwork(holder.pid)
        finally:
            holder.stdin.close()
            try:
                holder.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                holder.kill()


def _named(interface: str, rest: bytes) -> bytes:
    return struct.pack("16s24s", interface.encode(), rest)


def _inet(address: str) -> bytes:
    return struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(address))


def _make_ready() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, _named("lo", struct.pack("=h", _UP_AND_RUNNING)))
        fcntl.ioctl(any_socket, _SIOCSIFADDR, _named("lo:1", _inet(PUBLIC_LOOKING)))
        fcntl.ioctl(any_socket, _SIOCSIFNETMASK, _named("lo:1", _inet("255.255.255.255")))


if __name__ == "__main__":
    _make_ready()
    sys.stdout.buffer.write(_READY)
    sys.stdout.flush()
    sys.stdin.buffer.read()
