"""Other processes: their memory, their descriptors, their lives; and one's own rank among them."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import resource
import signal
import struct
import termios

from workbench_guest.attacks.kernel import call, denied_number, waiting_child
from workbench_guest.attacks.registry import Given, Judge, Outside, Refused, attack
from workbench_guest.confine import syscalls as sys_

_TRACEME, _SEIZE = 0, 0x4206
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_GET_NO_NEW_PRIVILEGES = 39
_HOST = (Outside.PLAIN,)
_libc = ctypes.CDLL(None, use_errno=True)


@attack("ptrace", "let oneself be traced")
def trace_me(_given: Given) -> str:
    """The mildest of all requests."""
    call(denied_number("ptrace"), _TRACEME, 0, 0, 0)
    return "traced"


@attack("ptrace-sibling", "trace another process of the same user")
def trace_sibling(_given: Given) -> str:
    """Ends with this process."""
    with waiting_child() as pid:
        call(denied_number("ptrace"), _SEIZE, pid, 0, 0)
        return "seized"


def memory_vectors(address: int, buffer: ctypes.Array[ctypes.c_char]) -> tuple[bytes, bytes]:
    """Of `buffer` here and of `address` there."""
    here = struct.pack("QQ", ctypes.addressof(buffer), len(buffer))
    return here, struct.pack("QQ", address, len(buffer))


def _transfer(name: str, pid: int) -> str:
    mark = ctypes.create_string_buffer(b"workbench-proof")
    # A fork has the same things at the same addresses.
    here, there = memory_vectors(ctypes.addressof(mark), ctypes.create_string_buffer(len(mark)))
    return f"{call(denied_number(name), pid, here, 1, there, 1, 0)} bytes"


@attack("process_vm_readv", "read another process's memory")
def read_memory(_given: Given) -> str:
    """A forked one's, whose addresses are known."""
    with waiting_child() as pid:
        return _transfer("process_vm_readv", pid)


@attack("process_vm_writev", "write another process's memory")
def write_memory(_given: Given) -> str:
    """The same the other way round."""
    with waiting_child() as pid:
        return _transfer("process_vm_writev", pid)


@attack("kcmp", "learn the order of the kernel's objects")
def compare(_given: Given) -> str:
    """Of two descriptors of one's own."""
    return f"answered {call(denied_number('kcmp'), os.getpid(), os.getpid(), 0, 0, 1)}"


@attack("pidfd_getfd", "take a descriptor out of another process")
def take_descriptor(_given: Given) -> str:
    """Its standard input."""
    with waiting_child() as pid:
        pidfd = os.pidfd_open(pid)
        try:
            os.close(call(denied_number("pidfd_getfd"), pidfd, 0, 0))
        finally:
            os.close(pidfd)
    return "taken"


@attack("signal-host", "kill a process of the host's", judge=Judge.SEEN, outside=_HOST)
def signal_host(given: Given) -> str:
    """By the pid that it has there."""
    os.kill(given.victim_pid, signal.SIGKILL)
    return "sent"


@attack("descriptors", "find a descriptor that the host left open", outside=_HOST)
def descriptors(_given: Given) -> str:
    """Anything beyond 0, 1, 2 and what the runner of the attacks has made itself."""
    left = []
    for name in sorted(os.listdir("/proc/self/fd")):
        number = int(name)
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # the listing's own
        if number > 2 and number != _report_descriptor():
            left.append(f"{number} is {target}")
    if not left:
        raise Refused("0, 1 and 2 only")
    return ", ".join(left)


def _report_descriptor() -> int:
    from workbench_guest.entries import attack as entry

    return entry.report_descriptor


@attack("capabilities", "have a capability, or be able to get one back")
def capabilities(_given: Given) -> str:
    """Any bit in any of the five sets."""
    with open("/proc/self/status", encoding="utf-8") as file:
        sets = dict(line.split() for line in file if line.startswith("Cap"))
    held = {name: bits for name, bits in sets.items() if int(bits, 16)}
    if not held:
        raise Refused("all five sets are empty")
    return ", ".join(f"{name} {bits}" for name, bits in held.items())


@attack("new-privileges", "start programs that may gain privileges")
def new_privileges(_given: Given) -> str:
    """The flag that forbids it cannot be taken back, so looking is enough."""
    if sys_.prctl(_GET_NO_NEW_PRIVILEGES):
        raise Refused("no_new_privs is set")
    return "no_new_privs is not set"


@attack("become-root", "become root by asking")
def become_root(_given: Given) -> str:
    """For all three ids."""
    os.setresuid(0, 0, 0)
    os.setresgid(0, 0, 0)
    return "uid 0"


@attack("become-other", "become another user by asking")
def become_other(_given: Given) -> str:
    """The owner of another session's files, say."""
    os.setgroups([])
    return "groups set"


@attack("priority", "run before everyone else", outside=_HOST)
def priority(_given: Given) -> str:
    """A negative nice value."""
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    return "nice -5"


@attack("realtime", "run without ever being interrupted", outside=_HOST)
def realtime(_given: Given) -> str:
    """For an instant."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return "SCHED_FIFO"


@attack("core-dump", "leave a core dump, which the host's handler would take", outside=_HOST)
def core_dump(given: Given) -> str:
    """In a child that has raised its own limit, in a folder that is cleaned."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    pid = os.fork()
    if pid == 0:
        os.chdir(given.folder)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.abort()
    _, status = os.waitpid(pid, 0)
    for name in os.listdir(given.folder):
        if name == "core" or name.startswith("core."):
            os.unlink(f"{given.folder}/{name}")
    if not os.WCOREDUMP(status):
        raise Refused("none was written")
    return "written"


def _on_terminal(request: int, argument: bytes) -> str:
    """In a session of our own, with a terminal of our own."""
    primary, secondary = pty.openpty()
    try:
        fcntl.ioctl(secondary, termios.TIOCSCTTY, 0)
        done = _libc.ioctl(secondary, ctypes.c_ulong(request), argument)
        if done < 0 and ctypes.get_errno() in (1, 5, 13):
            raise Refused(os.strerror(ctypes.get_errno()))
        return "the terminal answered"
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.close(secondary)
        os.close(primary)


@attack("terminal-input", "type into the terminal of whoever started this (TIOCSTI)")
def terminal_input(_given: Given) -> str:
    """Into one of our own, here."""
    return _on_terminal(_TIOCSTI, b"x")


@attack("terminal-input-high-bits", "the same, with a number that only 64 bits can hold")
def terminal_input_high_bits(_given: Given) -> str:
    """The kernel looks at the low half only; so must the filter."""
    return _on_terminal(_TIOCSTI | 1 << 40, b"x")


@attack("terminal-console", "select and paste on the console (TIOCLINUX)")
def terminal_console(_given: Given) -> str:
    """A terminal that is no console says so, which is an answer."""
    return _on_terminal(_TIOCLINUX, b"\x06")


@attack("terminal-discipline", "load a line discipline (TIOCSETD)")
def terminal_discipline(_given: Given) -> str:
    """The one that it already has."""
    return _on_terminal(_TIOCSETD, struct.pack("i", 0))
