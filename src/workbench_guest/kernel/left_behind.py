"""What of a process a fork of it cannot have, what is put in order before the fork, and what after it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import gc
import io
import os
import socket
import stat
import sys
import threading
import time
import weakref
from collections.abc import Iterable
from typing import Any

_MOST_TOLD = 20
# A thread that runs, or waits for a processor, for more than half of a moment is at work.
_MOMENT_S, _AT_WORK_NS = 0.002, 1_000_000
_PAUSE_HARD = 2
# By `type`, not `isinstance`: the agent's objects may answer that with anything.
_BUFFERED = {io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom}
# Flags that make sense for a file that exists.
_KEPT_FLAGS = ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC)


def open_descriptors() -> set[int]:
    """All of this process, without the one that the list itself was read from."""
    return {descriptor for descriptor in map(int, os.listdir("/proc/self/fd")) if _mode(descriptor)}


def identities(descriptors: Iterable[int]) -> dict[int, str]:
    """What each of them is, as the kernel calls it; those that are closed are left out."""
    found = {}
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            found[descriptor] = os.readlink(f"/proc/self/fd/{descriptor}")
    return found


def local_name(descriptor: int) -> str | bytes | None:
    """Of a socket on this machine: what it, or what it was accepted from, is bound to."""
    if not stat.S_ISSOCK(_mode(descriptor)):
        return None
    one = socket.socket(fileno=descriptor)
    try:
        return one.getsockname() if one.family == socket.AF_UNIX else None
    except OSError:
        return None
    finally:
        one.detach()


def anonymous_bytes() -> int:
    """Memory of this process that no file is behind, shared or not."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def agents_threads(ours: Iterable[threading.Thread | None]) -> list[threading.Thread]:
    """Threads that the agent's code started."""
    return [thread for thread in threading.enumerate() if thread not in {threading.main_thread(), *ours}]


def at_work(threads: list[threading.Thread]) -> list[str]:
    """Names of those that are computing now; one that waits for something can be left behind."""
    before = {thread: _wanted_ns(thread) for thread in threads}
    if before:
        time.sleep(_MOMENT_S)
    return [
        thread.name
        for thread, wanted in before.items()
        if _wanted_ns(thread) - wanted > _AT_WORK_NS or _wants_a_processor(thread)
    ]


def _wanted_ns(thread: threading.Thread) -> int:
    """How long it has run, or would have if a processor had been free: on a busy machine that is most of it."""
    try:
        with open(f"/proc/self/task/{thread.native_id}/schedstat", encoding="ascii") as file:
            ran, waited, _ = file.read().split()
            return int(ran) + int(waited)
    except (OSError, ValueError):
        return 0


def _wants_a_processor(thread: threading.Thread) -> bool:
    """A wait counts only once it is over; one that has not got its turn all the while shows as runnable."""
    try:
        with open(f"/proc/self/task/{thread.native_id}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False


def told(threads: list[threading.Thread], own: set[int], loop: Any) -> dict[str, Any]:
    """What the copy will not have, for whoever must tell it."""
    tasks = [task for task in asyncio.all_tasks(loop) if not task.done()]
    # The task that brought the wish is ours.
    return {
        "threads": [thread.name[:100] for thread in threads[:_MOST_TOLD]],
        "tasks": max(0, len(tasks) - 1),
        "sockets": sum(1 for descriptor in open_descriptors() - own if _is_connected(descriptor)),
        "children": _children(),
    }


def _is_connected(descriptor: int) -> bool:
    if not stat.S_ISSOCK(_mode(descriptor)):
        return False
    sock = socket.socket(fileno=descriptor)
    try:
        sock.getpeername()
    except OSError:
        return False
    else:
        return sock.family != socket.AF_UNIX
    finally:
        sock.detach()


def _children() -> int:
    count = 0
    with contextlib.suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
                count += len(file.read().split())
    return count


def _mode(descriptor: int) -> int:
    try:
        return os.fstat(descriptor).st_mode
    except OSError:
        return 0


class Writers:
    """What is in buffers of open files is written before a fork, or the process and its copy would both write it."""

    def __init__(self) -> None:
        self._files: dict[int, str] = {}
        self._found: list[weakref.ref[Any]] = []

    def flush(self, own: set[int]) -> None:
        """All that are open for writing."""
        files = identities(
            descriptor
            for descriptor in open_descriptors() - own
            if descriptor > 2 and stat.S_ISREG(_mode(descriptor)) and _access(descriptor) != os.O_RDONLY
        )
        if files.items() - self._files.items():
            # Nothing but a look at every object tells whose they are; it is taken only when there is a new one.
            self._found = [weakref.ref(thing) for thing in gc.get_objects() if type(thing) in _BUFFERED]
        self._files = files
        for reference in self._found:
            with contextlib.suppress(Exception):
                if (thing := reference()) is not None and not thing.closed:
                    thing.flush()


def _access(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE


def own_offsets(not_these: set[int]) -> None:
    """In the copy: open files get a position of their own; so far the process and its copy move one together."""
    for descriptor in open_descriptors() - not_these:
        if descriptor > 2 and stat.S_ISREG(_mode(descriptor)):
            # A file that cannot be opened again, say for its permissions, stays shared.
            with contextlib.suppress(OSError):
                flags = fcntl.fcntl(descriptor, fcntl.F_GETFL) & _KEPT_FLAGS
                inheritable = os.get_inheritable(descriptor)
                at = os.lseek(descriptor, 0, os.SEEK_CUR)
                again = os.open(f"/proc/self/fd/{descriptor}", flags | os.O_CLOEXEC)
                try:
                    os.lseek(again, at, os.SEEK_SET)
                    os.dup2(again, descriptor, inheritable=inheritable)
                finally:
                    os.close(again)


class _Library(ctypes.Structure):
    """As far as it is looked at, what the loader tells of a library."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("loads", ctypes.c_ulonglong),
    )


_Visit = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p)


class OpenMP:
    """GNU's runtime hangs in a copy whose original had used it, unless its pools are put down before the fork."""

    def __init__(self) -> None:
        self._loads = -1
        self._runtimes: list[Any] = []
        self._iterate = ctypes.PyDLL(None).dl_iterate_phdr

    def pause(self) -> None:
        """Put all pools down; they come up again with the next use."""
        self._look()
        for runtime in self._runtimes:
            runtime.omp_pause_resource_all(_PAUSE_HARD)

    def _look(self) -> None:
        """Only if a library was loaded since."""
        names: list[str] = []
        loads = 0

        def visit(library: Any, _size: int, _data: Any) -> int:
            nonlocal loads
            loads = library.contents.loads
            if loads == self._loads:
                return 1
            name = os.fsdecode(library.contents.name or b"")
            if "libgomp" in name:
                names.append(name)
            return 0

        self._iterate(_Visit(visit), None)
        if loads != self._loads:
            self._loads = loads
            found = (ctypes.CDLL(name) for name in names)
            self._runtimes = [runtime for runtime in found if hasattr(runtime, "omp_pause_resource_all")]


def revive_pools() -> None:
    """In the copy: thread pools have lost their threads and do not know it; they start new ones when they are used."""
    module = sys.modules.get("concurrent.futures.thread")
    if module is None:
        return
    queues: Any = vars(module)["_threads_queues"]
    for thread in list(queues):
        # The reference that the worker had of its pool; nobody else keeps a list of pools.
        arguments = getattr(thread, "_args", None) or (None,)
        pool = arguments[0]() if callable(arguments[0]) else None
        queues.pop(thread, None)
        if pool is not None:
            vars(pool)["_threads"].clear()
            vars(pool).update(_idle_semaphore=threading.Semaphore(0), _shutdown_lock=threading.Lock())
