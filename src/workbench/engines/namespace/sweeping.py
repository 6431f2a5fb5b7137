"""Ends what a lost cell left running: also a bomb, whose processes fork faster than they can be killed one by one."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from workbench.engines import proc
from workbench.engines.pidfd import has_exited
from workbench_guest.messages import OWN_NAME

# The kernel counts a process's age in hundredths of a second.
_TICK_S = 0.02
# At the limit of processes nothing new can begin while the old ones are only stopped, so few passes do.
_MOST_PASSES = 20
_GONE_S = 3.0


def end_newer(root: int, newer_than_s: float, started: frozenset[int]) -> tuple[int, frozenset[int]]:
    """Stop all of them, then kill them; how many there were, and which of the groups in `started` still exist.

    Args:
        root: pid 1, on the host.
        newer_than_s: the age that a process must not have.
        started: pids inside of those that the host started, now or earlier; they, their groups, and what they have
            started are left alone.
    """
    held: dict[int, int] = {}
    try:
        for _ in range(_MOST_PASSES):
            fresh = [pid for pid in _victims(root, newer_than_s, started) if pid not in held]
            if not fresh:
                break
            for pid in fresh:
                if (pidfd := _held(pid)) is not None:
                    held[pid] = pidfd
                    _send(pidfd, signal.SIGSTOP)
        for pidfd in held.values():
            _send(pidfd, signal.SIGKILL)
        _until_gone(list(held.values()))
        return len(held), started & {proc.group(pid) for pid in proc.tree(root)}
    finally:
        for pidfd in held.values():
            os.close(pidfd)


def _victims(root: int, newer_than_s: float, started: frozenset[int]) -> list[int]:
    """Walked from pid 1 down, past everything that the host started or keeps."""
    found, queue = [], proc.children(root)
    while queue:
        pid = queue.pop()
        # A copy that a living kernel is just making of itself is in that kernel's group, and then has our name.
        if {proc.numbers(pid, "NSpid:")[-1], proc.group(pid)} & started or proc.name(pid) == OWN_NAME:
            continue
        queue += proc.children(pid)
        if proc.age_s(pid) <= newer_than_s + _TICK_S:
            found.append(pid)
    return found


def _held(pid: int) -> int | None:
    """A number may mean another process from one moment to the next; a descriptor cannot."""
    began = proc.start_time(pid)
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(pid)
        if began is not None and proc.start_time(pid) == began:
            return pidfd
        os.close(pidfd)
    return None


def _until_gone(pidfds: list[int]) -> None:
    """Their room and their memory are needed next; but nobody waits long for what is stuck in the system."""
    deadline = time.monotonic() + _GONE_S
    for pidfd in pidfds:
        has_exited(pidfd, within_s=max(0.0, deadline - time.monotonic()))


def _send(pidfd: int, number: int) -> None:
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(pidfd, number)
