"""Who a sandbox is on the host and what it may call: ids, limits, capabilities, the system-call filter.

The order matters and is explained step by step; mounts are left to `root`, which must be done before.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal

from workbench_guest.confine import seccomp
from workbench_guest.confine import syscalls as sys_
from workbench_guest.messages import INSIDE_UID, SlotPlan

_SHARES_OF_THE_USER = {"max_inotify_instances": 32, "max_inotify_watches": 8192}


def become_nobody_else(plan: SlotPlan, proc: int) -> None:
    """Leave every id behind but one, which is the agent inside and unused outside.

    BARRIER: the user namespace comes last, so that every other namespace belongs to the one outside and even full
    capabilities in here would have no say over mounts or the network; held by tests/security/test_proof.py.
    """
    outside = plan.outside_uid
    if outside is not None:
        os.setgroups([])
        os.setresgid(outside, outside, outside)
        os.setresuid(outside, outside, outside)
        # Changing ids hid our own /proc entries from us, and the maps below are among them.
        sys_.prctl(sys_.PR_SET_DUMPABLE, 1)
    uid, gid = os.geteuid(), os.getegid()
    sys_.unshare(sys_.CLONE_NEWUSER)
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE_UID} {uid} 1"),
        ("gid_map", f"{INSIDE_UID} {gid} 1"),
    ):
        _write(proc, f"self/{name}", line)
    os.setresgid(INSIDE_UID, INSIDE_UID, INSIDE_UID)
    os.setresuid(INSIDE_UID, INSIDE_UID, INSIDE_UID)
    # Counted per user, whom an ordinary user's sandboxes share with each other and with the user.
    for name, most in _SHARES_OF_THE_USER.items():
        with contextlib.suppress(FileNotFoundError):
            _write(proc, f"sys/user/{name}", str(most))


def give_up_rights(plan: SlotPlan, last_capability: int) -> None:
    """Limits, then no capability, then no way to gain one, then the filter. Nothing after this can be taken back."""
    for name, wanted in plan.rlimits.items():
        which = getattr(resource, name)
        _, hard = resource.getrlimit(which)
        # The host itself may have been given less.
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (value, value))
    sys_.drop_all_capabilities(last_capability)
    sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1)
    # Set late: every change of ids above would have cleared it.
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    # BARRIER: pid 1 speaks for the sandbox to the host; not dumpable, its memory and descriptors are out of the
    # agent's reach although both have one uid; held by the proof's `pid1-*` rows.
    sys_.prctl(sys_.PR_SET_DUMPABLE, 0)
    if plan.cpus:
        # Before anything is started: a fork copies the mask long before anyone outside can see the child.
        os.sched_setaffinity(0, plan.cpus)
    sys_.install_filter(seccomp.build_filter(pin_cpus=bool(plan.cpus)))


def last_capability(proc: int) -> int:
    """The highest capability that this kernel knows."""
    return int(_read(proc, "sys/kernel/cap_last_cap"))


def open_oom_preference(proc: int) -> int:
    """How gladly the kernel ends this process, and those it starts later, when memory runs out; as a descriptor.

    Opened while our own /proc entries are still ours: they are not once we cannot be dumped any more.
    """
    return os.open("self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)


def _write(folder: int, name: str, content: str) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(descriptor, content.encode())
    finally:
        os.close(descriptor)


def _read(folder: int, name: str) -> str:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(descriptor, 4096).decode()
    finally:
        os.close(descriptor)
