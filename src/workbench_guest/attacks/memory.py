"""Taking more memory than the tier has, by the road that everyone watches and by those that are easily forgotten."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import socket
import time
from collections.abc import Callable

from workbench_guest.attacks.registry import Given, Judge, Measured, Outside, Refused, attack
from workbench_guest.confine import syscalls as sys_

_HOST, _FRESH = (Outside.PLAIN,), (Outside.NAMESPACES,)
_STEP = 16 << 20
_SEGMENT = 1 << 20
_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p

Take = Callable[[], object]
"""takes one more step of memory, and returns what holds it"""


def _available() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))


def _bomb(given: Given, take: Take) -> Measured:
    """In a child, so that its death is something we can tell about."""
    if _available() < 2 * given.ceiling:
        raise Refused("too little memory is free to try")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        _take_until(given, take, write)
    os.close(write)
    steps = 0
    while told := os.read(read, 4096):
        steps += len(told)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    amount = steps * _STEP
    # The child ends by itself only after it has held the ceiling for a while.
    ended = os.WIFSIGNALED(status) or os.WEXITSTATUS(status) != 0
    how = "ended by the kernel or a watchdog" if os.WIFSIGNALED(status) else "refused" if ended else "kept"
    return Measured(amount=amount, detail=f"{amount >> 20} MiB, {how}", ended=ended)


def _take_until(given: Given, take: Take, tell: int) -> None:
    held, taken = [], 0
    code = 1
    try:
        while taken < given.ceiling:
            held.append(take())
            taken += _STEP
            os.write(tell, b".")
        time.sleep(given.hold_s)
        code = 0
    finally:
        os._exit(code)


def _anonymous() -> mmap.mmap:
    block = mmap.mmap(-1, _STEP)
    block[:: mmap.PAGESIZE] = b"x" * (_STEP // mmap.PAGESIZE)
    return block


def _unmapped_file() -> int:
    descriptor = os.memfd_create("proof")
    block = b"\xa5" * _SEGMENT
    for _ in range(_STEP // _SEGMENT):
        os.write(descriptor, block)
    return descriptor


def _detached_segment() -> int:
    segment = int(_libc.shmget(0, _STEP, 0o1600))
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    address = _libc.shmat(segment, None, 0)
    ctypes.memset(address, 0xA5, _STEP)
    _libc.shmdt(ctypes.c_void_p(address))
    return segment


@attack("memory-bomb", "take more memory than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True,
        time_limit_s=40.0)  # fmt: skip
def memory_bomb(given: Given) -> Measured:
    """Mapped and touched."""
    return _bomb(given, _anonymous)


@attack("memory-bomb-unmapped", "take memory as files without a name or a mapping (memfd)", judge=Judge.BOUNDED,
        outside=_HOST, alone=True, time_limit_s=40.0)  # fmt: skip
def memory_bomb_unmapped(given: Given) -> Measured:
    """No process's resident size shows it, and no mount's size limits it."""
    os.close(os.memfd_create("proof"))
    return _bomb(given, _unmapped_file)


@attack("memory-bomb-segments", "take memory as System V segments that nobody has attached", judge=Judge.BOUNDED,
        outside=_FRESH, alone=True, time_limit_s=40.0)  # fmt: skip
def memory_bomb_segments(given: Given) -> Measured:
    """They outlive the process; outside, they go away with their namespace."""
    segment = int(_libc.shmget(0, _SEGMENT, 0o1600))
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    _libc.shmctl(segment, 0, None)
    return _bomb(given, _detached_segment)


def _full_sockets() -> int:
    """A process of its own, as one may not have enough descriptors; it goes with the attack's session."""
    ready_read, ready_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Above all the pipe on which the attack waits for the end of the process that forked us.
        os.closerange(3, ready_write)
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        pairs, taken, block = [], 0, bytes(64 * 1024)
        while taken < _STEP:
            pairs.append(socket.socketpair())
            for end in pairs[-1]:
                end.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        taken += end.send(block)
        os.write(ready_write, b".")
        while True:
            signal.pause()
    os.close(ready_write)
    if not os.read(ready_read, 1):
        raise MemoryError
    os.close(ready_read)
    return pid


@attack("memory-bomb-sockets", "take memory as unread messages in sockets", judge=Judge.BOUNDED, outside=_HOST,
        alone=True, time_limit_s=40.0)  # fmt: skip
def memory_bomb_sockets(given: Given) -> Measured:
    """The kernel's own memory, which no process's size shows."""
    return _bomb(given, _full_sockets)


@attack("memory-bomb-files", "fill /tmp and /dev/shm, then take memory besides", judge=Judge.BOUNDED, outside=_HOST,
        alone=True, time_limit_s=60.0)  # fmt: skip
def memory_bomb_files(given: Given) -> Measured:
    """Files in memory are memory."""
    paths = [f"{folder}/{given.marker}-memory" for folder in (given.folder, given.shm)]
    descriptors = [os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600) for path in paths]
    for path in paths:
        os.unlink(path)
    per_folder = dict.fromkeys(descriptors, int(given.ceiling / 3))

    def take() -> object:
        block = b"\xa5" * _STEP
        for descriptor, left in per_folder.items():
            with contextlib.suppress(OSError):
                if left >= _STEP and os.write(descriptor, block) == _STEP:
                    per_folder[descriptor] = left - _STEP
                    return None
        return _anonymous()

    return _bomb(given, take)
