"""What /proc tells about processes; one that is gone counts as nothing."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import stat
import time
from collections.abc import Collection
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
        queue += children(pid)
    return found


def children(pid: int) -> list[int]:
    """Of all its threads, by host pid."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += (int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split())
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
    found = dict.fromkeys(("Pss:", "Private_Clean:", "Private_Dirty:"), 0)
    with contextlib.suppress(OSError):
        try:
            table = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
        except ProcessLookupError:
            # Only the group as a whole has a rolled-up table, and none once its leader has gone before its threads.
            table = Path(f"{_living_task(pid)}/smaps").read_bytes()
        for line in table.splitlines():
            name, size, *_ = (*line.decode(errors="replace").split(), "", "")
            if name in found:
                found[name] += int(size) * 1024
    return Memory(found.get("Pss:", 0), found.get("Private_Clean:", 0) + found.get("Private_Dirty:", 0))


def resident_bytes(pid: int) -> int:
    """Memory, with shared pages in full; cheap."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return (pages or int(Path(f"{_living_task(pid)}/statm").read_text().split()[1])) * _PAGE
    return 0


def _living_task(pid: int) -> str:
    """A thread that shows what the process has: its leader, unless that has ended before the others.

    BARRIER: a process whose first thread is gone shows no memory and no descriptor of its own; held by
    tests/unit/engines/test_proc.py.
    """
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/task/{task}/statm").read_text().split()[0] != "0":
                return f"/proc/{pid}/task/{task}"
    return f"/proc/{pid}"


def _stat_fields(pid: int) -> list[str]:
    """What follows the name in /proc/<pid>/stat: the state, the parent, and so on; empty if there is no such process.

    The name may hold anything, also what is no text or looks like the end of it.
    """
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


def states(pid: int) -> set[str]:
    """Of all its threads, in the kernel's letters; empty if it is gone. The first thread may end before the others."""
    return look(pid).states


@dataclass(frozen=True, slots=True)
class Look:
    """What can be told of a process in a hurry."""

    states: set[str]
    began: int | None
    """as `start_time` has it"""


def look(pid: int) -> Look:
    """In one read where it has one thread."""
    fields = _stat_fields(pid)
    if not fields:
        return Look(set(), None)
    found = {fields[0]}
    if fields[17] != "1":
        for task in _listed(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, IndexError):
                found.add(Path(f"{task}/stat").read_text(errors="replace").rpartition(")")[2].split()[0])
    return Look(found, int(fields[19]))


def parent(pid: int) -> int | None:
    """Whose child it is; None if it is gone."""
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else None


def cpu_seconds(pid: int) -> float:
    """Spent by it and by the children that it has waited for."""
    fields = _stat_fields(pid)
    return sum(int(fields[index]) for index in (11, 12, 13, 14)) / _TICKS if fields else 0.0


def threads(pid: int) -> int:
    """How many it has."""
    fields = _stat_fields(pid)
    return int(fields[17]) if fields else 0


def start_time(pid: int) -> int | None:
    """When it began, in the kernel's ticks, which with its number names it for good; None if it is gone."""
    fields = _stat_fields(pid)
    return int(fields[19]) if fields else None


def group(pid: int) -> int:
    """The leader of its group, as its own namespace counts; 0 if it is gone."""
    return numbers(pid, "NSpgid:")[-1]


def numbers(pid: int, field: str) -> list[int]:
    """A line of /proc/<pid>/status with a number for each namespace, the host's first; [0] if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith(field):
                return [int(number) for number in line.split()[1:]]
    return [0]


def command(pid: int) -> str:
    """As it was started, or its name in brackets; both are the guest's own word."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()[:4096].rstrip(b"\0").split(b"\0")
        text = " ".join(word.decode("utf-8", "replace") for word in words).strip()
        return text or f"[{name(pid)}]"
    return ""


def name(pid: int) -> str:
    """What it calls itself."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return ""


def age_s(pid: int) -> float:
    """How long it has run."""
    began = start_time(pid)
    return 0.0 if began is None else max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began / _TICKS)


@dataclass(frozen=True, slots=True)
class Unlinked:
    """Files without a name that processes keep."""

    bytes: int
    complete: bool
    """False if there was too much to look at"""


def unlinked_files(pids: Collection[int], device: int, *, most: int) -> Unlinked:
    """Blocks of files on `device` that have no name any more and are open, or mapped where we may see that.

    Looks at `most` descriptors altogether; a mapping costs a sixteenth of one.
    """
    sizes: dict[int, int] = {}
    left = float(most)
    for pid in pids:
        descriptors = [name for task in _listed(f"/proc/{pid}/task") for name in _own_descriptors(task, pid)]
        mappings = _mappings(pid)
        left -= len(descriptors) + len(mappings) / 16
        if left < 0:
            return Unlinked(sum(sizes.values()), complete=False)
        # Only root may follow these; of an ordinary user's guests, what is mapped and closed goes uncounted.
        deleted = (line.split(None, 1)[0].decode() for line in mappings if line.endswith(b" (deleted)"))
        for name in (*descriptors, *(f"/proc/{pid}/map_files/{span}" for span in deleted)):
            with contextlib.suppress(OSError):
                found = os.stat(name)
                if found.st_nlink == 0 and found.st_dev == device and stat.S_ISREG(found.st_mode):
                    sizes[found.st_ino] = found.st_blocks * 512
    return Unlinked(sum(sizes.values()), complete=True)


def _own_descriptors(task: str, pid: int) -> list[str]:
    """A thread's, where they may be others than its leader's: the leader is gone, or does not share its table."""
    if os.path.basename(task) == str(pid):
        return _listed(f"{task}/fd")
    names = _listed(f"{task}/fd")
    leader = _listed(f"/proc/{pid}/fd")
    return [] if len(names) == len(leader) else names


def _listed(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    return []


def _mappings(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"{_living_task(pid)}/maps").read_bytes().splitlines()
    return []


FIRST_TO_GO = 1000


def set_oom_preference(pid: int, preference: int) -> None:
    """How gladly it is ended when memory runs out; of the same uid, or by root."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(preference))


def goes_first(pid: int) -> bool:
    """Whether it is to be ended before all others."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text()) == FIRST_TO_GO
    return False


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


def kill_marked(assignment: bytes) -> int:
    """Kill the processes that `with_variable` finds; how many there were. What is killed may just have forked."""
    found = with_variable(assignment)
    for pid in found:
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
            try:
                # The number may mean another process by now; the descriptor cannot.
                if has_variable(pid, assignment, os.geteuid()):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            finally:
                os.close(pidfd)
    return len(found)
