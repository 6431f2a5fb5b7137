"""What a sandbox learns about the machine it shares. Most of it is accepted, with its reason in SECURITY.md."""

from __future__ import annotations

import functools
import os

from workbench_guest.attacks.registry import Attack, Given, Judge, Outside, Refused, attack, register

_HOST = (Outside.PLAIN,)
# file of /proc: what it tells
_FACTS = {
    "meminfo": "how much memory the host has and uses", "cpuinfo": "the host's processor",
    "loadavg": "how busy the host is", "uptime": "since when the host runs", "stat": "how busy each CPU is",
    "version": "the kernel's version", "diskstats": "how busy the host's disks are",
    "vmstat": "how the host uses its memory", "zoneinfo": "how the host's memory is laid out",
    "swaps": "where the host swaps to", "devices": "which drivers the host has",
    "pressure/cpu": "how long the host's processes wait",
}  # fmt: skip


def _first_line(name: str, _given: Given) -> str:
    with open(f"/proc/{name}", encoding="utf-8", errors="replace") as file:
        return file.readline().strip()


for _name, _what in _FACTS.items():
    register(Attack(name=f"host-{_name.replace('/', '-')}", description=f"learn {_what}", outside=_HOST,
                    run=functools.partial(_first_line, _name)))  # fmt: skip


@attack("host-boot-id", "learn an id by which two sandboxes know that they share a host", outside=_HOST)
def boot_id(given: Given) -> str:
    """The same for every process since the machine started."""
    return _first_line("sys/kernel/random/boot_id", given)


@attack("host-name", "learn the host's name", judge=Judge.CANARY, outside=_HOST)
def host_name(_given: Given) -> str:
    """Inside it is that of the sandbox's own namespace."""
    return os.uname().nodename


@attack("host-mounts", "learn the host's disks and folders from the list of mounts", outside=_HOST)
def mounts(_given: Given) -> str:
    """Devices, and folders of the host's that are bound into the sandbox."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields, _, source = line.partition(" - ")
            root = fields.split()[3]
            if source.split()[1].startswith("/dev/") or root.count("/") > 2:
                found.append(f"{source.split()[1]} {root}")
    if not found:
        raise Refused("only file systems in memory")
    return ", ".join(dict.fromkeys(found))


@attack("host-users", "learn the host's users", outside=_HOST)
def users(_given: Given) -> str:
    """Anyone in /etc/passwd beyond root, user and nobody."""
    with open("/etc/passwd", encoding="utf-8") as file:
        names = [line.split(":")[0] for line in file]
    others = [name for name in names if name not in ("root", "user", "nobody")]
    if not others:
        raise Refused("root, user and nobody only")
    return f"{len(others)} users"


@attack("host-passwords", "read the host's password hashes", outside=_HOST)
def passwords(_given: Given) -> str:
    """Opened only."""
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/ssl/private"):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            continue
        return f"{path} is open"
    raise Refused("not there")


@attack("host-folders", "list folders where people keep things", outside=_HOST)
def folders(given: Given) -> str:
    """/root, /srv, /var/lib, /var/log, /home: anything but the way to our own home and to the image."""
    expected = ("/home/user", *given.image_roots)
    found = []
    for folder in ("/root", "/srv", "/var/lib", "/var/log", "/home"):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        paths = [f"{folder}/{name}" for name in names]
        found += [path for path in paths if not any(f"{root}/".startswith(f"{path}/") for root in expected)]
    if not found:
        raise Refused("nothing but the image")
    return f"{len(found)} entries"
