"""Secrets that could have come along: in variables, in memory. And what two sandboxes have in common."""

from __future__ import annotations

import ctypes
import os
import sys

from workbench_guest.attacks.registry import Given, Judge, Outside, Refused, attack

_HOST = (Outside.PLAIN,)
_BLOCK = 1 << 20


def environments() -> str:
    """Every variable that can be seen: our own and those of every process in sight."""
    seen = [f"{name}={value}" for name, value in os.environ.items()]
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", encoding="utf-8", errors="replace") as file:
                    seen += file.read().split("\0")
            except OSError:
                continue
    return "\n".join(sorted(set(seen)))


@attack("environment", "find the host's variables in any process's environment", judge=Judge.CANARY, outside=_HOST)
def environment(_given: Given) -> str:
    """The host put the canary into its own."""
    return environments()


def find_in_memory(first: bytes, second: bytes) -> str | None:
    """The mapping of our own that holds both halves side by side; the whole is never built here."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        mappings = [line.split(maxsplit=5) for line in file if line.split()[1][0] == "r"]
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for fields in mappings:
            start, end = (int(bound, 16) for bound in fields[0].split("-"))
            place = fields[5].strip() if len(fields) > 5 else "anonymous memory"
            if place not in ("[vvar]", "[vsyscall]", "[vvar_vclock]") and _holds(memory, start, end, first, second):
                return place
    return None


def _holds(memory: object, start: int, end: int, first: bytes, second: bytes) -> bool:
    overlap = len(first) + len(second)
    descriptor: int = memory.fileno()  # type: ignore[attr-defined]
    while start < end:
        try:
            block = os.pread(descriptor, min(_BLOCK, end - start), start)
        except (OSError, OverflowError):
            return False
        at = block.find(first)
        while at >= 0:
            if block[at + len(first) : at + overlap] == second:
                return True
            at = block.find(first, at + 1)
        if len(block) <= overlap:
            return False
        start += len(block) - overlap
    return False


@attack("memory-inheritance", "find the host's secrets in one's own memory", outside=_HOST, time_limit_s=20.0)
def memory_inheritance(given: Given) -> str:
    """A forked host would have left everything there."""
    place = find_in_memory(given.canary_halves[0].encode(), given.canary_halves[1].encode())
    if place is None:
        raise Refused("not there")
    return f"in {place}"


def _layout() -> str:
    """Where the C library lies, where the interpreter's heap lies, and how strings are hashed."""
    libc = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
    return f"libc {libc:#x}, heap {id(sys.modules['os']):#x}, hash {hash('workbench'):#x}"


def _layout_of_a_fork() -> str:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, _layout().encode())
        os._exit(0)
    os.close(write)
    with open(read, encoding="ascii") as told:
        layout = told.read()
    os.waitpid(pid, 0)
    return layout


@attack("shared-layout", "know another sandbox's memory layout and hash seed from one's own", outside=_HOST)
def shared_layout(given: Given) -> str:
    """Refused, with our own layout, if the other's is not the same."""
    if _layout() != (given.other_layout or _layout_of_a_fork()):
        raise Refused(_layout())
    return "the same"
