"""Limits where no control group can be had: CPU by affinity, memory and processes by a watchdog over /proc.

The kernel's own per-process limits stand behind it: an ordinary user cannot raise a hard limit again, so the hard one
is the largest tier's and the soft one, which a guest may raise, is the tier's.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from pathlib import Path
from typing import Literal

from workbench.contracts.engine import Usage
from workbench.engines.namespace.limits.cgroup_v1 import too_much_in_use
from workbench.engines.namespace.limits.keeper import Counters
from workbench.model.capability import Barrier, Capability, Grade
from workbench.model.tier import TIERS, Tier

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = resource.getpagesize()
_MOST_PROCESSES = max(tier.processes for tier in TIERS.values())


class Rlimits:
    """Spreads sandboxes over the CPUs and watches them."""

    kind = "rlimits and a watchdog"
    watches = True

    def __init__(self, shared_bytes: int) -> None:
        """`shared_bytes` is what a sandbox shares with its zygote and is not charged for."""
        self._shared_bytes = shared_bytes
        self._load = dict.fromkeys(sorted(os.sched_getaffinity(0)), 0)

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """Affinity cannot be undone from inside, since the filter refuses the call; the rest is watched."""
        return (
            Capability(barrier=Barrier.MEMORY, grade=Grade.WATCHED, by="a watchdog over /proc"),
            Capability(barrier=Barrier.CPU, grade=Grade.ENFORCED, by="CPU affinity"),
            Capability(barrier=Barrier.PROCESSES, grade=Grade.WATCHED, by="RLIMIT_NPROC and a watchdog"),
        )

    def group(self, name: str) -> RlimitGroup:
        """A group with a pid to come."""
        return RlimitGroup(name, self._shared_bytes, self._load)

    def close(self) -> None:
        """Nothing was made."""


class RlimitGroup:
    """One sandbox, seen through its process tree."""

    join: Literal["none"] = "none"
    pin_cpus = True

    def __init__(self, name: str, shared_bytes: int, load: dict[int, int]) -> None:
        self.name = name
        self._shared_bytes = shared_bytes
        self._load = load
        self._cpus: set[int] = set()
        self._pid = 0
        self._tier: Tier | None = None
        self._counters = Counters()
        self._peak = 0
        self._spent_by_gone = 0.0
        self._cpu_seen: dict[int, float] = {}

    @property
    def rlimits(self) -> dict[str, int]:
        """The hard limit that can never be raised again."""
        return {"RLIMIT_NPROC": _MOST_PROCESSES}

    def open_to_join(self) -> list[int]:
        """Nothing to join."""
        return []

    def adopt(self, pid: int) -> None:
        """The root of the tree that is watched."""
        self._pid = pid

    def apply(self, tier: Tier) -> None:
        """Check, then set the affinity and the soft process limit of everything inside."""
        if self._tier is not None:
            used = self.usage().memory_bytes
            if used > tier.memory_bytes:
                raise too_much_in_use(tier, used)
        self._tier = tier
        self._release_cpus()
        wanted = min(tier.vcpus, len(self._load))
        self._cpus = set(sorted(self._load, key=lambda cpu: self._load[cpu])[:wanted])
        for cpu in self._cpus:
            self._load[cpu] += 1
        # Again until nothing new is found: a process may fork between the listing and the setting.
        done: set[int] = set()
        while fresh := [pid for pid in tree(self._pid) if pid not in done]:
            for pid in fresh:
                _pin(pid, self._cpus)
                with contextlib.suppress(OSError):
                    resource.prlimit(pid, resource.RLIMIT_NPROC, (tier.processes, _MOST_PROCESSES))
            done.update(fresh)

    def _release_cpus(self) -> None:
        for cpu in self._cpus:
            self._load[cpu] -= 1
        self._cpus = set()

    def usage(self) -> Usage:
        """Summed over the tree; shared pages in proportion, less what the zygote brought."""
        pids = tree(self._pid)
        memory = max(0, sum(_proportional_bytes(pid) for pid in pids) - self._shared_bytes)
        self._peak = max(self._peak, memory)
        now = {pid: _cpu_seconds(pid) for pid in pids}
        self._spent_by_gone += sum(spent for pid, spent in self._cpu_seen.items() if pid not in now)
        self._cpu_seen = now
        return Usage(
            memory_bytes=memory,
            peak_memory_bytes=self._peak,
            cpu_s=self._spent_by_gone + sum(now.values()),
            processes=sum(_threads(pid) for pid in pids),
        )

    def counters(self) -> Counters:
        """What the watchdog has done, and whether the tree stands at its process limit now."""
        return self._counters

    def watch(self) -> str | None:
        """Memory: end the largest process, as the kernel would. Processes: end the sandbox, as forks outrun us."""
        if self._tier is None or not self._pid:
            return None
        pids = tree(self._pid)
        threads = sum(_threads(pid) for pid in pids)
        if threads >= self._tier.processes:
            self._counters = Counters(memory_kills=self._counters.memory_kills,
                                      process_refusals=self._counters.process_refusals + 1)  # fmt: skip
        # Half again: threads do not count for the kernel's limit as exactly as they do here.
        if threads > self._tier.processes * 1.5:
            return f"too many processes: {threads} of {self._tier.processes}"
        # The cheap number counts shared pages in full; only if that is too much is the exact one worth its price.
        if sum(_resident_bytes(pid) for pid in pids) > self._tier.memory_bytes:
            self._end_largest_if_over(pids)
        return None

    def _end_largest_if_over(self, pids: list[int]) -> None:
        assert self._tier is not None
        used = self.usage().memory_bytes
        if used <= self._tier.memory_bytes:
            return
        largest = max((pid for pid in pids if pid != self._pid), key=_proportional_bytes, default=None)
        if largest is not None:
            self._counters = Counters(memory_kills=self._counters.memory_kills + 1,
                                      process_refusals=self._counters.process_refusals)  # fmt: skip
            with contextlib.suppress(ProcessLookupError):
                os.kill(largest, signal.SIGKILL)

    def remove(self) -> bool:
        """Give the CPUs back."""
        self._release_cpus()
        return True


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


def _proportional_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _stat_fields(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        # The name in parentheses may hold anything, so fields are counted from its end.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def _cpu_seconds(pid: int) -> float:
    fields = _stat_fields(pid)
    return sum(int(fields[index]) for index in (11, 12, 13, 14)) / _TICKS if fields else 0.0


def _threads(pid: int) -> int:
    fields = _stat_fields(pid)
    return int(fields[17]) if fields else 0


def _pin(pid: int, cpus: set[int]) -> None:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), cpus)
