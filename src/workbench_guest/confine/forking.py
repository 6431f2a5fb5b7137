"""A fork whose child is nobody's but pid 1's.

A program may wait for any child of its own; one that it never started must not be among them. So the fork is made by a
process in between, which shares our memory while we stand still, becomes our sibling instead of our child, and ends:
the copy is then an orphan, and orphans fall to pid 1. The memory is copied once, as by any fork; C's own fork makes it,
so that locks of its allocator are what they should be in the copy.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import warnings

_CLONE_VM, _CLONE_VFORK, _CLONE_PARENT, _SIGCHLD = 0x100, 0x4000, 0x8000, 17
_FLAGS = _CLONE_VM | _CLONE_VFORK | _CLONE_PARENT | _SIGCHLD
# int between(int (*fork)(void), int *told), for x86-64. The process in between runs on our stack, below our frame, as
# after a vfork; only the copy and we return.
_X86_64 = b"".join(
    (
        b"\x53\x41\x54\x41\x55",  # keep rbx, r12, r13; the stack is aligned now
        b"\x48\x89\xfb\x49\x89\xf4",  # rbx = fork, r12 = told
        b"\xb8\x38\x00\x00\x00",  # clone(
        b"\xbf" + _FLAGS.to_bytes(4, "little"),  # flags,
        b"\x31\xf6\x31\xd2\x4d\x31\xd2\x4d\x31\xc0",  # the same stack, nothing else)
        b"\x0f\x05\x85\xc0\x78\x1e",  # it could not be made: to the end
        b"\x75\x13",  # we go on below
        b"\xff\xd3\x85\xc0\x74\x16",  # in between: fork(); the copy goes to the end
        b"\x41\x89\x04\x24",  # *told = its pid, or -1
        b"\x31\xff\xb8\x3c\x00\x00\x00\x0f\x05",  # exit(0)
        # We: if nothing was told, someone killed it while it held the locks of our memory, and we would wait for them
        # for ever. A death is something that can be restored from.
        b"\x41\x83\x3c\x24\x00\x75\x02\x0f\x0b",
        b"\x41\x5d\x41\x5c\x5b\xc3",
    )
)
_with_gil = ctypes.PyDLL(None)
_between = None
_code: list[mmap.mmap] = []
"""where the code lies; kept, or it would be unmapped"""
_told = ctypes.c_int(0)


def prepare() -> None:
    """Before the first fork, once for all forks of this process."""
    global _between
    if _between is not None or platform.machine() != "x86_64":
        return
    # BARRIER: private, so that every fork of this process has its own: a page that all sandboxes share, with code in
    # it, would be a door between them; held by tests/security/test_no_inheritance.py.
    code = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    code.write(_X86_64)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    if _with_gil.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        return  # a machine that lets nobody make code; the fork by two works there too
    _code.append(code)
    _between = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)


def fork_aside() -> int:
    """As os.fork: 0 in the copy, its pid here. The copy has one thread, and pid 1 for a parent or soon will have.

    Raises:
        BlockingIOError: there may be no more processes, or no memory for one.
    """
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = _by_one() if _between is not None else _by_two()
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    with warnings.catch_warnings():
        # Python warns of forks beside threads; ours are told what they lose.
        warnings.simplefilter("ignore", DeprecationWarning)
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        # Or ENOMEM, which nobody could do anything else about.
        raise BlockingIOError(errno.EAGAIN, "there is no room for one more process")
    return pid


def _by_one() -> int:
    assert _between is not None
    _told.value = 0
    done = int(_between(ctypes.cast(_with_gil.fork, ctypes.c_void_p), ctypes.byref(_told)))
    return done and (_told.value or -1)


def _by_two() -> int:
    """Where the code above is not for this machine: twice the page tables, and the same in the end."""
    reading, writing = os.pipe()
    between = int(_with_gil.fork())
    if between == 0:
        pid = int(_with_gil.fork())
        if pid == 0:
            os.close(reading)
            os.close(writing)
            return 0
        os.write(writing, pid.to_bytes(8, "little", signed=True))
        os._exit(0)
    os.close(writing)
    try:
        if between < 0:
            return -1
        told = os.read(reading, 8)
        os.waitpid(between, 0)
        return int.from_bytes(told, "little", signed=True) if told else -1
    finally:
        os.close(reading)
