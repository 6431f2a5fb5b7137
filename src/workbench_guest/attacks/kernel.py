"""Calling the kernel by number, and telling its answer from a refusal."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
from collections.abc import Iterator

from workbench_guest.attacks.registry import Refused
from workbench_guest.confine.seccomp import DENIED
from workbench_guest.confine.syscalls import MACHINE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_COLUMN = ("x86_64", "aarch64").index(MACHINE)
# What a filter or a missing capability answers. Anything else was said by the code behind the permission check.
_REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)

Argument = int | bytes | None


def denied_number(name: str) -> int:
    """The number of a call of the filter's list.

    Raises:
        Refused: this architecture has no such call.
    """
    found = DENIED[name][_COLUMN]
    if found is None:
        raise Refused(f"{MACHINE} has no {name}")
    return found


def call(number: int, *arguments: Argument) -> int:
    """One system call, all 64 bits of every number.

    Raises:
        OSError: what the kernel answered.
    """
    words = [ctypes.c_long(_signed(word)) if isinstance(word, int) else word for word in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def reach(number: int, *arguments: Argument) -> str:
    """Call with arguments that can do no harm: an answer from behind the permission check counts as got through.

    Raises:
        Refused: no permission, or no such call.
    """
    try:
        return f"the kernel answered {call(number, *arguments)}"
    except OSError as problem:
        if problem.errno in _REFUSALS:
            raise Refused(name_of(problem)) from problem
        return f"the kernel answered {name_of(problem)}"


def name_of(problem: OSError) -> str:
    """EPERM and the like."""
    return errno.errorcode.get(problem.errno or 0, str(problem))


@contextlib.contextmanager
def waiting_child() -> Iterator[int]:
    """A process of our own that waits; killed and reaped at the end."""
    pid = os.fork()
    if pid == 0:
        while True:
            signal.pause()
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
