"""The kernel calls that Python's standard library does not offer, by number, as functions that raise OSError.

Leaves every decision to its callers: nothing here knows what a sandbox is.
"""

from __future__ import annotations

import ctypes
import os
import platform

# Per architecture: x86_64 and aarch64 differ below number 424 and agree above it.
_NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {"clone": 56, "capset": 126, "pivot_root": 155, "seccomp": 317},
    "aarch64": {"clone": 220, "capset": 91, "pivot_root": 41, "seccomp": 277},
}
MACHINE = platform.machine()
_MOVE_MOUNT, _OPEN_TREE, _CLONE3, _CLOSE_RANGE, _MOUNT_SETATTR = 429, 428, 435, 436, 442

CLONE_PARENT = 0x00008000
CLONE_CHILD_CLEARTID = 0x00200000
CLONE_CHILD_SETTID = 0x01000000
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_INTO_CGROUP = 0x200000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_REMOUNT, MS_BIND, MS_REC = 0x20, 0x1000, 0x4000
MS_PRIVATE, MS_SLAVE, MS_SHARED = 0x40000, 0x80000, 0x100000
MNT_DETACH = 2

OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, AT_EMPTY_PATH, AT_RECURSIVE = 1, os.O_CLOEXEC, 0x1000, 0x8000
MOVE_MOUNT_F_EMPTY_PATH = 0x4
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_IDMAP = 0x1, 0x2, 0x4, 0x100000

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME, PR_CAPBSET_DROP = 1, 4, 15, 24
PR_SET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS, PR_CAP_AMBIENT = 38, 40, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
NS_GET_USERNS = 0xB701

_libc = ctypes.CDLL(None, use_errno=True)
# Held GIL: between the clone and the child's first Python instruction nothing else may run.
_with_gil = ctypes.PyDLL(None, use_errno=True)


_HUGE_PAGE, _MADV_COLLAPSE = 2 * 1024 * 1024, 25


def join_pages(start: int, end: int) -> int:
    """Put the memory between two addresses into huge pages, where it fills them; how many could be made.

    A fork copies one entry for a huge page where it copied 512: a third of its time for a warm interpreter. Needs
    Linux 6.1; where it fails nothing changes.
    """
    first, last = -(-start // _HUGE_PAGE), end // _HUGE_PAGE
    pages = [ctypes.c_void_p(page * _HUGE_PAGE) for page in range(first, last)]
    return sum(_libc.madvise(page, ctypes.c_size_t(_HUGE_PAGE), _MADV_COLLAPSE) == 0 for page in pages)


def number(name: str) -> int:
    """The number of a call on this machine.

    Raises:
        OSError: the architecture is not one we know the numbers of.
    """
    try:
        return _NUMBERS[MACHINE][name]
    except KeyError:
        raise OSError(38, f"no system call numbers for {MACHINE}; supported: {', '.join(_NUMBERS)}") from None


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _text(value: str | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """mount(2)."""
    done = _libc.mount(_text(source), _text(target), _text(kind), ctypes.c_ulong(flags), _text(data))
    _checked(done, f"mount {kind or source or ''} on {target}")


def unmount(target: str, flags: int = 0) -> None:
    """umount2(2)."""
    _checked(_libc.umount2(_text(target), flags), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2)."""
    _checked(_libc.syscall(number("pivot_root"), _text(new), _text(old)), f"pivot_root to {new}")


def unshare(flags: int) -> None:
    """unshare(2)."""
    _checked(_libc.unshare(flags), f"unshare {flags:#x}")


def setns(fd: int, kind: int) -> None:
    """setns(2)."""
    _checked(_libc.setns(fd, kind), f"setns {kind:#x}")


def prctl(option: int, *values: int) -> int:
    """prctl(2) with up to four numbers."""
    filled = [ctypes.c_ulong(v) for v in (*values, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(option, *filled), f"prctl {option}")


def set_name(name: str) -> None:
    """What the process is called in lists; 15 bytes of it."""
    _checked(_libc.prctl(PR_SET_NAME, _text(name), 0, 0, 0), "prctl PR_SET_NAME")


def close_above(first: int) -> None:
    """Close every descriptor from `first` on; what is left is what the caller named."""
    _checked(_libc.syscall(_CLOSE_RANGE, first, 0xFFFFFFFF, 0), "close_range")


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_all_capabilities(last: int) -> None:
    """Empty the bounding, ambient, effective, permitted and inheritable sets of this process."""
    for capability in range(last + 1):
        prctl(PR_CAPBSET_DROP, capability)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header, nothing = _CapHeader(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _checked(_libc.syscall(number("capset"), ctypes.byref(header), ctypes.byref(nothing)), "capset")


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(program: bytes) -> None:
    """Load a classic BPF program as this process's seccomp filter, for good."""
    loaded = _FilterProgram(len(program) // 8, program)
    _checked(_libc.syscall(number("seccomp"), 1, 0, ctypes.byref(loaded)), "seccomp")


def clone_tree(path: str) -> int:
    """A detached copy of the mount at `path`, as a descriptor that the caller closes."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
    return _checked(_libc.syscall(_OPEN_TREE, -100, _text(path), flags), f"open_tree {path}")


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def set_mount_attributes(tree: int, attributes: int, userns: int = 0) -> None:
    """mount_setattr(2) on a detached tree; `userns` counts with MOUNT_ATTR_IDMAP only."""
    wanted = _MountAttr(attributes, 0, 0, userns)
    done = _libc.syscall(_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, ctypes.byref(wanted), ctypes.sizeof(wanted))
    _checked(done, "mount_setattr")


def attach_tree(tree: int, target: str) -> None:
    """move_mount(2): put a detached tree where everyone sees it."""
    done = _libc.syscall(_MOVE_MOUNT, tree, b"", -100, _text(target), MOVE_MOUNT_F_EMPTY_PATH)
    _checked(done, f"move_mount on {target}")


class _CloneArgs(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls",
                     "set_tid", "set_tid_size", "cgroup")
    )  # fmt: skip


def _tid_address() -> int:
    """Where the C library keeps this thread's id, or 0 where the kernel does not tell."""
    address = ctypes.c_void_p()
    if _libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) < 0:
        return 0
    return address.value or 0


def clone_as_sibling(flags: int, cgroup: int | None = None) -> int:
    """Fork, with new namespaces, a child whose parent is *our* parent; 0 in the child, as os.fork has it.

    A plain os.fork would make the zygote the parent: its death would then decide over the sandboxes it made.
    Only for a process with one thread, whose child keeps to one thread and starts all else by os.fork. The C
    library's fork also runs handlers that matter to threads, and stores the child's id; the kernel does the second
    for us here. Python's own handlers are not run either: they reset locks that nobody holds, and would copy half a
    megabyte of pages into every sandbox to do so; each os.fork in the child runs them.
    """
    tid_address = _tid_address()
    if tid_address:
        flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID
    if cgroup is not None:
        flags |= CLONE_INTO_CGROUP
    args = _CloneArgs(flags=flags | CLONE_PARENT, child_tid=tid_address, cgroup=cgroup or 0)
    result = int(_with_gil.syscall(_CLONE3, ctypes.byref(args), ctypes.sizeof(args)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"clone3 with namespaces {flags:#x}: {os.strerror(code)}")
    return result


def fork_unfinished() -> int:
    """os.fork, except that the child must call `finish_fork` before it runs anything but its own waiting.

    Python's handlers in the child write to half a megabyte of pages; a child that may wait for hours before it is
    given anything to do can have them copied then.
    """
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(_with_gil.fork())
    if pid != 0:
        code = ctypes.get_errno()
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        if pid < 0:
            raise OSError(code, f"fork: {os.strerror(code)}")
    return pid


def finish_fork() -> None:
    """In the child of `fork_unfinished`, once."""
    ctypes.pythonapi.PyOS_AfterFork_Child()


_FSCONFIG, _FSPICK = 431, 433
_FSPICK_EMPTY_PATH, _FSPICK_CLOEXEC = 8, 1
_FSCONFIG_SET_STRING, _FSCONFIG_CMD_RECONFIGURE = 1, 7


def reconfigure(mounted: int, options: dict[str, str]) -> None:
    """Change the options of a mounted file system, given any descriptor of its root."""
    context = _checked(_libc.syscall(_FSPICK, mounted, b"", _FSPICK_EMPTY_PATH | _FSPICK_CLOEXEC), "fspick")
    try:
        for key, value in options.items():
            done = _libc.syscall(_FSCONFIG, context, _FSCONFIG_SET_STRING, key.encode(), value.encode(), 0)
            _checked(done, f"fsconfig {key}={value}")
        _checked(_libc.syscall(_FSCONFIG, context, _FSCONFIG_CMD_RECONFIGURE, None, None, 0), "reconfigure")
    finally:
        os.close(context)
