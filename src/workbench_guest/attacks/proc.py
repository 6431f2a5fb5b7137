"""What /proc and /sys tell about the host, and what could be changed through them. Nothing is ever written."""

from __future__ import annotations

import functools
import os
import re

from workbench_guest.attacks.registry import Attack, Given, Outside, Refused, attack, register

_HOST = (Outside.PLAIN,)
# name under /proc: what it tells
_FILES = {
    "keys": "the keys of the host's users",
    "key-users": "how many keys each user has",
    "kcore": "the kernel's memory",
    "kallsyms": "the kernel's symbols",
    "kmsg": "the kernel's log",
    "timer_list": "every timer of the host, with its process",
    "sched_debug": "every process of the host",
    "latency_stats": "where the host waits",
    "kpagecount": "how often each page of the host is mapped",
    "kpageflags": "what each page of the host is for",
    "kpagecgroup": "whose each page of the host is",
    "config.gz": "how the kernel was built",
    "vmallocinfo": "addresses of the kernel's",
    "cmdline": "the kernel's command line, which may hold tokens",
    "interrupts": "when the host's devices were busy",
    "softirqs": "when the host's network was busy",
    "slabinfo": "the kernel's allocator",
    "pagetypeinfo": "the kernel's free pages",
    "iomem": "the machine's physical memory map",
    "modules": "the kernel's modules",
}
_FOLDERS = {
    "acpi": "the machine's power devices",
    "scsi": "the host's disks",
    "driver": "the host's drivers",
    "fs": "the host's mounted disks",
    "irq": "the machine's interrupt routing",
    "bus": "the machine's devices",
    "tty": "the host's terminals",
    "sysvipc": "System V segments",
}
# Opened for writing, and closed again.
_SETTINGS = {
    "proc-sysrq-trigger": ("/proc/sysrq-trigger", "the keys that crash or restart a machine"),
    "proc-sys-core-pattern": ("/proc/sys/kernel/core_pattern", "a program that the kernel runs as root on a crash"),
    "proc-sys-modprobe": ("/proc/sys/kernel/modprobe", "a program that the kernel runs as root to load a module"),
    "proc-sys-hotplug": ("/proc/sys/kernel/hotplug", "a program that the kernel runs as root for a device"),
    "proc-sys-binfmt": ("/proc/sys/fs/binfmt_misc/register", "a program that runs in place of others"),
    "proc-sys-hostname": ("/proc/sys/kernel/hostname", "the machine's name"),
    "proc-sys-net": ("/proc/sys/net/ipv4/ip_forward", "a setting of the network"),
    "proc-sys-memory": ("/proc/sys/vm/overcommit_memory", "how the host gives out memory"),
    "proc-sys-shm": ("/proc/sys/kernel/shmmax", "how much shared memory there may be"),
    "proc-uid-map": ("/proc/self/uid_map", "who this process is outside"),
}
_LIMIT = 4096
_POINTER = re.compile(r"\b(?:0x)?ffff[0-9a-f]{12}\b")
_POINTERS = ("/proc/kallsyms", "/proc/modules", "/proc/self/wchan", "/proc/self/stack", "/proc/net/unix",
             "/proc/timer_list", "/proc/vmallocinfo", "/proc/self/syscall", "/proc/net/tcp",
             "/proc/net/netlink")  # fmt: skip


def _read(path: str, _given: Given) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, _LIMIT)
    finally:
        os.close(descriptor)
    if not data:
        raise Refused("empty")
    return f"{len(data)} bytes"


def _list(path: str, _given: Given) -> str:
    names = os.listdir(path)
    if not names:
        raise Refused("empty")
    return f"{len(names)} entries: {', '.join(sorted(names)[:4])}"


def _open_to_write(path: str, _given: Given) -> str:
    os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
    return f"{path} is open for writing"


for _file, _what in _FILES.items():
    _row = "proc-" + _file.replace("_", "-").replace(".", "-")
    # kallsyms and iomem can be read by all, with zeros in place of addresses; the row on pointers looks at those.
    register(Attack(name=_row, description=f"read {_what}", outside=_HOST,
                    run=functools.partial(_read, f"/proc/{_file}")))  # fmt: skip
for _folder, _what in _FOLDERS.items():
    register(Attack(name=f"proc-{_folder}", description=f"list {_what}", outside=_HOST,
                    run=functools.partial(_list, f"/proc/{_folder}")))  # fmt: skip
for _row, (_path, _what) in _SETTINGS.items():
    register(Attack(name=_row, description=f"change {_what}", run=functools.partial(_open_to_write, _path)))


@attack("proc-oom-score", "have the host's other processes end first when memory runs out")
def oom_score(_given: Given) -> str:
    """Lower is safer; falls back to what any process may ask for where it may write at all."""
    for wanted in ("-1000", "0", "1000"):
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write(wanted)
        except PermissionError:
            continue
        return f"set to {wanted}"
    raise Refused("EACCES")


@attack("proc-kernel-pointers", "find an address of the kernel's anywhere in /proc", outside=_HOST)
def kernel_pointers(_given: Given) -> str:
    """One is enough to undo the kernel's random layout."""
    for path in _POINTERS:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found = _POINTER.search(file.read(1 << 16))
        except OSError:
            continue
        if found:
            return f"one in {path}"
    raise Refused("none")


@attack("proc-host-processes", "find a process of the host's in /proc", outside=_HOST)
def host_processes(given: Given) -> str:
    """One with a certain word among its arguments, which outside is there."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                # Our own arguments never hold the whole word.
                if name.isdigit() and f"{given.marker}-victim".encode() in file.read():
                    return f"process {name}"
        except OSError:
            continue
    raise Refused("not there")


@attack("sys-devices", "list the machine's devices in /sys", outside=_HOST)
def sys_devices(given: Given) -> str:
    """Buses, disks, firmware."""
    return _list("/sys/devices", given)


@attack("sys-kernel", "read the kernel's own files in /sys", outside=_HOST)
def sys_kernel(given: Given) -> str:
    """Debugging, security, module parameters."""
    return _list("/sys/kernel", given)


@attack("sys-write", "change a setting in /sys", outside=_HOST)
def sys_write(given: Given) -> str:
    """Huge pages stand in for all; opened only."""
    return _open_to_write("/sys/kernel/mm/transparent_hugepage/enabled", given)


def _control_groups() -> list[str]:
    with open("/proc/self/mounts", encoding="utf-8") as file:
        return [line.split()[1] for line in file if line.split()[2] in ("cgroup", "cgroup2")]


@attack("cgroup-release-agent", "name a program that the host runs as root when a control group empties", outside=_HOST)
def release_agent(given: Given) -> str:
    """The classic escape from a privileged container; opened only."""
    for folder in _control_groups():
        try:
            return _open_to_write(f"{folder}/release_agent", given)
        except OSError:
            continue
    raise Refused("no control group is mounted, or none has one")


@attack("cgroup-leave", "move into another control group, away from the limits", outside=_HOST)
def leave_group(given: Given) -> str:
    """Opened only."""
    for folder in _control_groups():
        try:
            return _open_to_write(f"{folder}/cgroup.procs", given)
        except OSError:
            continue
    raise Refused("no control group is mounted, or none can be entered")


@attack("cgroup-read", "read the host's control groups", outside=_HOST)
def read_groups(given: Given) -> str:
    """The names of services and containers."""
    for folder in (*_control_groups(), "/sys/fs/cgroup"):
        try:
            return _list(folder, given)
        except (OSError, Refused):
            continue
    raise Refused("no control group is mounted")
