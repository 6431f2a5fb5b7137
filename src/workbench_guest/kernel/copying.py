"""How a living kernel leaves a copy of itself: whether it can, what is put in order first, and the fork.

What the copy does is in `sleep`, and what a woken one does in `life`.
"""

from __future__ import annotations

import functools
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench_guest import entering
from workbench_guest.confine import forking
from workbench_guest.kernel import left_behind
from workbench_guest.kernel.sleep import sleep

# Pages that a kernel has for itself from its start, beyond those that it counts as its growth.
_OWN_FROM_START = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SnapshotWish:
    """Asked for between two cells."""

    snapshot: str
    most_bytes: int
    """that the memory may have, if there is to be a copy"""
    answer: Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What of a kernel a copy has to do with."""

    publisher: Any
    loop: Any
    streams: tuple[Any, Any]
    threads: tuple[threading.Thread | None, ...]
    """ours"""
    bury: Callable[[], None]
    """called in the copy, while the numbers of descriptors are still what their owners think"""


class Copier:
    """Of one life of a kernel; `began` is called at its start."""

    def __init__(self) -> None:
        self._agents: set[int] = set()
        """descriptors that were the agent's before this life"""
        self._own: dict[int, str] = {}
        """descriptors that are not the agent's, with what each is: one that was closed may be the agent's by now.
        Connections come on top, and are known by their names."""
        self._names: set[str | bytes] = set()
        self._memory_at_start = 0
        self._openmp = left_behind.OpenMP()
        self._writers = left_behind.Writers()

    def before(self, passed: set[int]) -> None:
        """A life begins: what is open now, but for what was passed, is the agent's."""
        self._agents = left_behind.open_descriptors() - passed

    def listens(self, descriptor: int) -> None:
        """Connections to this socket are not the agent's."""
        listening = socket.socket(fileno=descriptor)
        self._names.add(listening.getsockname())
        listening.detach()

    def began(self) -> None:
        """What has been opened meanwhile is ours."""
        self._own = left_behind.identities(left_behind.open_descriptors() - self._agents)
        self._memory_at_start = self._memory_at_start or left_behind.anonymous_bytes()

    def opened_since(self, before: set[int]) -> None:
        """The same for what came later."""
        self._own |= left_behind.identities(left_behind.open_descriptors() - before)

    def copy(self, kernel: Kernel, wish: SnapshotWish) -> tuple[bytes, list[int]] | None:
        """None in the kernel, which goes on; in the copy, once it is woken, the order that woke it."""
        began = time.perf_counter()
        threads = left_behind.agents_threads(kernel.threads)
        if reason := self._why_not(wish, threads):
            wish.answer({"status": "declined", **reason})
            return None
        own = self._own_now(kernel)
        lost = left_behind.told(threads, own, kernel.loop)
        for stream in kernel.streams:
            stream.flush()
        self._writers.flush(own)
        self._openmp.pause()
        luck = random.getstate()
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with kernel.publisher.still():
                pid = forking.fork_aside()
            if pid == 0:
                return sleep(wish.snapshot, ends, own, functools.partial(_bury, kernel, luck))
        finally:
            for end in ends:
                end.close()
        wish.answer({"status": "ok", "cost_ms": (time.perf_counter() - began) * 1000, **lost})
        return None

    def _why_not(self, wish: SnapshotWish, threads: list[threading.Thread]) -> dict[str, Any]:
        if entering.line() is None:
            return {"reason": "not offered here"}
        grown = left_behind.anonymous_bytes() - self._memory_at_start + _OWN_FROM_START
        if grown > wish.most_bytes:
            reason = f"the kernel's {grown // 2**20} MiB might be needed twice, and there is not that much room"
            return {"reason": reason, "for_memory": True}
        if busy := left_behind.at_work(threads):
            return {"reason": f"thread {busy[0]!r} is at work"}
        return {}

    def _own_now(self, kernel: Kernel) -> set[int]:
        """With connections that were accepted since, and what threads that print have to the publisher."""
        now = left_behind.identities(self._own)
        own = {descriptor for descriptor, what in self._own.items() if now.get(descriptor) == what}
        own |= kernel.publisher.descriptors()
        for descriptor in left_behind.open_descriptors() - own:
            if left_behind.local_name(descriptor) in self._names:
                own.add(descriptor)
        return own


def _bury(kernel: Kernel, luck: Any) -> None:
    # Python gives every fork other random numbers; this one goes on where its original was.
    random.setstate(luck)
    kernel.bury()
