"""A control: the same attacks outside, where they must succeed to count. Started by `workbench.doctor`.

Plain is as the user who asks, in a mount namespace that goes away afterwards where that can be had. The other kind is
as pid 1 and root of fresh namespaces, with every capability there and no filter.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from workbench_guest.attacks.registry import Outside
from workbench_guest.confine import syscalls as sys_
from workbench_guest.entries import attack as entry

_EVERYTHING = (sys_.CLONE_NEWUSER | sys_.CLONE_NEWNS | sys_.CLONE_NEWPID | sys_.CLONE_NEWNET | sys_.CLONE_NEWIPC
               | sys_.CLONE_NEWUTS | sys_.CLONE_NEWCGROUP)  # fmt: skip


def main() -> None:
    """The orders come through standard input; the kind is the last argument."""
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    kind = Outside(sys.argv[-1])
    orders = sys.stdin.buffer.read()
    if kind is Outside.PLAIN:
        with contextlib.suppress(OSError):
            sys_.unshare(sys_.CLONE_NEWNS)
            sys_.mount(None, "/", None, sys_.MS_REC | sys_.MS_PRIVATE)
        sys.exit(entry.main(orders, ()))
    _enter_fresh_namespaces()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    sys_.mount(None, "/", None, sys_.MS_REC | sys_.MS_PRIVATE)
    sys_.mount("proc", "/proc", "proc", sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC)
    sys.exit(entry.main(orders, ()))


def _enter_fresh_namespaces() -> None:
    uid, gid = os.geteuid(), os.getegid()
    sys_.unshare(_EVERYTHING)
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(line)
