"""What /proc tells about processes; one that is gone counts as nothing."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = resource.getpagesize()


def tree(root: int) -> list[int]:
    """`root` and all its descendants, by host pid; orphans inside fall to pid 1, so none is missed."""
    found, queue = [], [root] if root else []
    while queue:
        pid = queue.pop()
        found.append(pid)
        with contextlib.suppress(OSError, ValueError):
            for task in os.listdir(f"/proc/{pid}/task"):
                queue.extend(int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process."""

    proportional_bytes: int = 0
    """with pages that several share divided among them"""
    private_bytes: int = 0
    """pages that nobody shares"""


def memory(pid: int) -> Memory:
    """Exact, and dear: the kernel walks all its pages."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, size, *_ = line.split()
            found[name] = int(size) * 1024
    return Memory(found.get("Pss:", 0), found.get("Private_Clean:", 0) + found.get("Private_Dirty:", 0))


def resident_bytes(pid: int) -> int:
    """Memory, with shared pages in full; cheap."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _stat_fields(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        # The name in parentheses may hold anything, so fields are counted from its end.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


def cpu_seconds(pid: int) -> float:
    """Spent by it and by the children that it has waited for."""
    fields = _stat_fields(pid)
    return sum(int(fields[index]) for index in (11, 12, 13, 14)) / _TICKS if fields else 0.0


def threads(pid: int) -> int:
    """How many it has."""
    fields = _stat_fields(pid)
    return int(fields[17]) if fields else 0


def with_variable(assignment: bytes) -> list[int]:
    """Processes of this user that were started with `assignment`, NAME=value, in their environment."""
    uid = os.geteuid()
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if has_variable(pid, assignment, uid)]


def has_variable(pid: int, assignment: bytes, uid: int) -> bool:
    """Whether `pid` belongs to `uid` and was started with `assignment`."""
    with contextlib.suppress(OSError):
        if os.stat(f"/proc/{pid}").st_uid == uid:
            return assignment in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return False
