"""Attacks that get through and are left so, each with its reason. SECURITY.md has the same list; a test compares."""

from __future__ import annotations

from workbench.model.capability import Barrier

_STATISTICS = "the kernel has one count for the whole machine, and programs that size themselves need to read it"

ACCEPTED: dict[str, str] = {
    "host-meminfo": _STATISTICS,
    "host-cpuinfo": "libraries choose their code by the processor, which a program can ask directly in any case",
    "host-loadavg": _STATISTICS,
    "host-uptime": _STATISTICS,
    "host-stat": _STATISTICS,
    "host-version": "any program can ask with uname; an old kernel is to be updated, not hidden",
    "host-diskstats": _STATISTICS,
    "host-vmstat": _STATISTICS,
    "host-zoneinfo": _STATISTICS,
    "host-swaps": _STATISTICS,
    "host-devices": "the same list on every machine with this kernel",
    "host-pressure-cpu": _STATISTICS,
    "host-boot-id": "two sandboxes of one host can tell so by timing in any case; it names no person and no secret",
    "host-mounts": "a mount tells where it comes from; the paths are the image's and the mount's id, and open nothing",
    "pid1-fd-list": (
        "an ordinary user's sandbox has the uid that owns pid 1's folder in /proc, so the numbers of its descriptors "
        "can be listed; what they are cannot be read, and none can be opened (row pid1-fd)"
    ),
    "shared-layout": (
        "clones of one zygote share its address layout and hash seed, which is what makes them fast; a zygote is "
        "replaced every hour and every 5000 clones, and an address alone opens nothing"
    ),
}

_NO_GROUP = "an ordinary user without a delegated control group: "
_TOO_LATE = (
    "memory is watched four times a second, so a fast process is ended only after it went over; `doctor` grades it "
    "`watched`, and level `strict` refuses to start"
)
_KERNELS = "messages that nobody reads are the kernel's memory, which only a control group counts"
# Only where the engine grades the barrier as watched; where the kernel enforces it, these rows must hold.
ACCEPTED_WHERE_WATCHED: dict[str, tuple[Barrier, str]] = {
    "memory-bomb": (Barrier.MEMORY, _NO_GROUP + _TOO_LATE),
    "memory-bomb-sockets": (Barrier.MEMORY, _NO_GROUP + _KERNELS),
}
