"""New namespaces by every road, mounts inside them, and calls that try to slip under the filter."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import signal
import struct

from workbench_guest.attacks.kernel import call, denied_number, reach
from workbench_guest.attacks.registry import Attack, Given, Outside, Refused, attack, register
from workbench_guest.confine import syscalls as sys_
from workbench_guest.confine.seccomp import NEWEST_REVIEWED

_CLONE3, _PERSONALITY = 435, {"x86_64": 135, "aarch64": 92}
_NEWTIME = 0x80
_KINDS = {"user": sys_.CLONE_NEWUSER, "mount": sys_.CLONE_NEWNS, "pid": sys_.CLONE_NEWPID, "net": sys_.CLONE_NEWNET,
          "ipc": sys_.CLONE_NEWIPC, "uts": sys_.CLONE_NEWUTS, "cgroup": sys_.CLONE_NEWCGROUP,
          "time": _NEWTIME}  # fmt: skip
_NO_RANDOM_LAYOUT = 0x0040000
_HIGH_BIT = 1 << 40
_X32_BIT = 0x40000000
# mov eax, 20 (getpid, as 32-bit programs number it); int 0x80; ret
_GETPID_32 = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
_A_FEW_CALLS = 16


def _reap(pid: int) -> str:
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "a child in new namespaces"


def _clone(flags: int, _given: Given) -> str:
    return _reap(call(sys_.number("clone"), flags | signal.SIGCHLD, 0, 0, 0, 0))


def _unshare(flags: int, _given: Given) -> str:
    call(denied_number("unshare"), flags)
    return "in a new namespace"


@attack("unshare", "make a namespace of every kind at once")
def unshare_everything(given: Given) -> str:
    """The road of every known container escape that begins with becoming root somewhere."""
    everything = 0
    for flag in _KINDS.values():
        everything |= flag
    return _unshare(everything, given)


for _kind, _flag in _KINDS.items():
    _as_root_somewhere = sys_.CLONE_NEWUSER | _flag
    register(Attack(name=f"unshare-{_kind}", description=f"make a {_kind} namespace with unshare",
                    run=functools.partial(_unshare, _as_root_somewhere)))  # fmt: skip
    # The time flag lies where clone has the signal number.
    if _kind != "time":
        register(Attack(name=f"clone-{_kind}", description=f"make a {_kind} namespace with clone",
                        run=functools.partial(_clone, _as_root_somewhere)))  # fmt: skip


@attack("clone3-user", "make a user namespace with clone3, whose flags a filter cannot see")
def clone3(_given: Given) -> str:
    """Flags behind a pointer."""
    return _reap(call(_CLONE3, struct.pack("11Q", sys_.CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0), 88))


@attack("clone-high-bits", "make a user namespace with a clone flag that only 64 bits can hold")
def clone_high_bits(_given: Given) -> str:
    """The kernel looks at the low half only; so must the filter."""
    return _reap(call(sys_.number("clone"), sys_.CLONE_NEWUSER | signal.SIGCHLD | _HIGH_BIT, 0, 0, 0, 0))


@attack("personality", "switch the random layout of memory off")
def personality(_given: Given) -> str:
    """For the programs this process starts."""
    return reach(_PERSONALITY[sys_.MACHINE], _NO_RANDOM_LAYOUT)


@attack("personality-high-bits", "the same, with a number that only 64 bits can hold")
def personality_high_bits(_given: Given) -> str:
    """Looks like a mere question to a filter that compares the wrong half."""
    return reach(_PERSONALITY[sys_.MACHINE], _NO_RANDOM_LAYOUT | (0xFFFFFFFF << 32))


@attack("x32-calls", "call mount under its x32 number")
def x32_mount(_given: Given) -> str:
    """A second set of numbers for the same calls."""
    return reach(denied_number("mount") | _X32_BIT, None, None, None, 0, None)


@attack("foreign-calls", "make a system call as a 32-bit program would")
def foreign_call(_given: Given) -> str:
    """A third set of numbers, entered through an interrupt."""
    if sys_.MACHINE != "x86_64":
        raise Refused("only x86_64 has them")
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(_GETPID_32)
        holder = ctypes.c_char.from_buffer(page)
        answer = int(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(holder))())
        del holder
    if answer != os.getpid():
        raise Refused(f"answered {answer}")
    return f"getpid answered {answer}"


@attack("new-calls", "call what was added to the kernel after the filter was reviewed")
def newer_than_reviewed(_given: Given) -> str:
    """Bad descriptors and no pointers: nothing can come of it but an answer."""
    for number in range(NEWEST_REVIEWED + 1, NEWEST_REVIEWED + 1 + _A_FEW_CALLS):
        try:
            return f"call {number}: {reach(number, -1, 0, 0, 0, 0, 0)}"
        except Refused:
            continue
    raise Refused("ENOSYS for all")


@attack("mount", "mount a tmpfs on a folder of one's own")
def mount(given: Given) -> str:
    """Outside, in a mount namespace that goes away with the process."""
    where = f"{given.folder}/{given.marker}-mount-{os.getpid()}"
    os.mkdir(where)
    try:
        sys_.mount("tmpfs", where, "tmpfs")
        sys_.unmount(where)
    finally:
        os.rmdir(where)
    return f"mounted on {where}"


@attack("mount-over-usr", "bind a folder of one's own over /usr/local", outside=(Outside.PLAIN, Outside.NAMESPACES))
def mount_over_usr(given: Given) -> str:
    """Needs no file system at all."""
    sys_.mount(given.folder, "/usr/local", None, sys_.MS_BIND)
    sys_.unmount("/usr/local", sys_.MNT_DETACH)
    return "mounted over /usr/local"


@attack("remount-writable", "make the read-only root writable again")
def remount_root(_given: Given) -> str:
    """Outside the root is writable already; the call says the same again."""
    kept = os.statvfs("/").f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_RELATIME)
    relatime = 0x200000 if kept & os.ST_RELATIME else 0
    flags = kept & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME) | relatime
    sys_.mount(None, "/", None, sys_.MS_REMOUNT | sys_.MS_BIND | flags)
    return "remounted /"
