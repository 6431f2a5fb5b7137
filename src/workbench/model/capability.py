"""What an engine can promise on this host, in words that `doctor` prints and tests assert."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How far a promise goes."""

    ENFORCED = "enforced"
    """the kernel refuses"""
    WATCHED = "watched"
    """we look from time to time, and end what goes too far"""
    ABSENT = "absent"
    """nothing holds it"""


class Barrier(StrEnum):
    """Each thing that can be promised. The first block is isolation, the second is limits."""

    USER_NAMESPACE = "user-namespace"
    MOUNT_NAMESPACE = "mount-namespace"
    PID_NAMESPACE = "pid-namespace"
    NETWORK_NAMESPACE = "network-namespace"
    IPC_NAMESPACE = "ipc-namespace"
    UTS_NAMESPACE = "uts-namespace"
    CGROUP_NAMESPACE = "cgroup-namespace"
    SYSTEM_CALL_FILTER = "system-call-filter"
    NO_CAPABILITIES = "no-capabilities"
    NO_NEW_PRIVILEGES = "no-new-privileges"
    OWN_UID = "own-uid"

    MEMORY = "memory"
    CPU = "cpu"
    PROCESSES = "processes"
    OPEN_FILES = "open-files"
    SCRATCH_DISK = "scratch-disk"
    FILES_DISK = "files-disk"


LIMITS = (
    Barrier.MEMORY, Barrier.CPU, Barrier.PROCESSES, Barrier.OPEN_FILES, Barrier.SCRATCH_DISK, Barrier.FILES_DISK,
)  # fmt: skip
# An ordinary user has one uid and cannot give its sandboxes others; the user namespace stands in for it.
ISOLATION = tuple(barrier for barrier in Barrier if barrier not in LIMITS and barrier is not Barrier.OWN_UID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One promise: how far it goes, and by what."""

    barrier: Barrier
    grade: Grade
    by: str


class Level(StrEnum):
    """What a host can be told to insist on before it starts."""

    STRICT = "strict"
    """isolation and every session-wide limit enforced by the kernel"""
    ISOLATED = "isolated"
    """isolation enforced; memory, CPU and process limits at least watched"""
    OPEN = "open"
    """nothing is insisted on"""


def shortfall(level: Level, capabilities: tuple[Capability, ...]) -> Capability | None:
    """The first promise that falls short of `level`, or None."""
    if level is Level.OPEN:
        return None
    held = {capability.barrier: capability for capability in capabilities}
    for barrier in ISOLATION:
        if held[barrier].grade is not Grade.ENFORCED:
            return held[barrier]
    for barrier in (Barrier.MEMORY, Barrier.CPU, Barrier.PROCESSES):
        grade = held[barrier].grade
        if grade is Grade.ABSENT or (level is Level.STRICT and grade is not Grade.ENFORCED):
            return held[barrier]
    return None
