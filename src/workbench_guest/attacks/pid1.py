"""Pid 1, which speaks for the sandbox to the host: its memory, its descriptors, its life.

Outside, these aim at pid 1 of fresh namespaces, which is the runner of the attacks itself.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import time

from workbench_guest.attacks.kernel import call, denied_number
from workbench_guest.attacks.processes import memory_vectors
from workbench_guest.attacks.registry import Attack, Given, Outside, Refused, attack, register

_FRESH = (Outside.NAMESPACES,)
_SEIZE = 0x4206
_PATIENCE_S = 0.3
_READ = {"environ": "its variables", "maps": "its memory map", "auxv": "its start-up values", "io": "what it reads"}
_LINKS = {"root": "its root", "cwd": "its folder", "exe": "its program"}


def _read(name: str, _given: Given) -> str:
    with open(f"/proc/1/{name}", "rb") as file:
        return f"{len(file.read(4096))} bytes"


def _follow(name: str, _given: Given) -> str:
    return os.readlink(f"/proc/1/{name}")


for _name, _what in _READ.items():
    register(Attack(name=f"pid1-{_name}", description=f"read pid 1: {_what}", outside=_FRESH,
                    run=functools.partial(_read, _name)))  # fmt: skip
for _name, _what in _LINKS.items():
    register(Attack(name=f"pid1-{_name}", description=f"follow pid 1: {_what}", outside=_FRESH,
                    run=functools.partial(_follow, _name)))  # fmt: skip


@attack("pid1-fd", "open or follow pid 1's descriptors, its control socket among them", outside=_FRESH)
def descriptors(_given: Given) -> str:
    """By number, as their list may be hidden."""
    refusals = []
    for number in range(12):
        for reach in (_follow_descriptor, _open_descriptor):
            try:
                return reach(number)
            except OSError as problem:
                refusals.append(problem)
    raise refusals[0]


def _follow_descriptor(number: int) -> str:
    return f"{number} is {os.readlink(f'/proc/1/fd/{number}')}"


def _open_descriptor(number: int) -> str:
    os.close(os.open(f"/proc/1/fd/{number}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    return f"{number} is open"


@attack("pid1-fd-list", "count pid 1's descriptors", outside=_FRESH)
def descriptor_list(_given: Given) -> str:
    """Their numbers, not what they are."""
    return f"{len(os.listdir('/proc/1/fd'))} descriptors"


@attack("pid1-mem", "open pid 1's memory", outside=_FRESH)
def memory(_given: Given) -> str:
    """For writing."""
    os.close(os.open("/proc/1/mem", os.O_RDWR | os.O_CLOEXEC))
    return "open"


@attack("pid1-ptrace", "trace pid 1", outside=_FRESH)
def trace(_given: Given) -> str:
    """Ends with this process."""
    call(denied_number("ptrace"), _SEIZE, 1, 0, 0)
    return "seized"


@attack("pid1-process-vm", "read pid 1's memory with one call", outside=_FRESH)
def process_vm(_given: Given) -> str:
    """We are its fork, so its addresses are ours."""
    known = ctypes.cast(ctypes.pythonapi.PyOS_AfterFork_Child, ctypes.c_void_p).value
    assert known is not None
    here, there = memory_vectors(known, ctypes.create_string_buffer(16))
    return f"{call(denied_number('process_vm_readv'), 1, here, 1, there, 1, 0)} bytes"


@attack("pid1-pidfd-getfd", "take pid 1's control socket", outside=_FRESH)
def take_socket(_given: Given) -> str:
    """Its standard input stands in for it outside."""
    pidfd = os.pidfd_open(1)
    try:
        for number in (3, 0):
            try:
                os.close(call(denied_number("pidfd_getfd"), pidfd, number, 0))
            except OSError as problem:
                refusal = problem
            else:
                return "taken"
        raise refusal
    finally:
        os.close(pidfd)


@attack("pid1-namespaces", "open pid 1's namespaces, to enter the host's through them", outside=_FRESH)
def namespaces(_given: Given) -> str:
    """Opened only."""
    os.close(os.open("/proc/1/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))
    return "open"


@attack("pid1-kill", "end pid 1 with a signal", outside=(Outside.PLAIN,), alone=True)
def kill(given: Given) -> str:
    """Every signal that ends a process; outside, at a process that the host put there for it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGABRT,
                   signal.SIGSEGV, signal.SIGKILL):  # fmt: skip
        try:
            os.kill(given.target_pid, number)
        except ProcessLookupError:
            break
    time.sleep(_PATIENCE_S)
    try:
        with open(f"/proc/{given.target_pid}/stat", encoding="utf-8") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "it is gone"
    if state in "ZX":
        return "it ended"
    raise Refused("it still runs")
