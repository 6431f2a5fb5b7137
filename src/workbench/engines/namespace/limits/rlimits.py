"""Limits where no control group can be had: CPU by affinity, memory and processes by a watchdog over /proc.

The kernel's own per-process limits stand behind it: an ordinary user cannot raise a hard limit again, so the hard one
is the largest tier's and the soft one, which a guest may raise, is the tier's.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from typing import Literal

from workbench.contracts.engine import Usage
from workbench.engines import proc
from workbench.engines.namespace.limits.cgroup_v1 import too_much_in_use
from workbench.engines.namespace.limits.keeper import Counters
from workbench.engines.stopping import Stopper
from workbench.model.capability import Barrier, Capability, Grade
from workbench.model.tier import STANDARD, TIERS, Tier

_MOST_PROCESSES = max(tier.processes for tier in TIERS.values())
# Looks in a row that end nobody because something has just ended.
_MOST_SPARED = 2


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

    def __init__(self, name: str, shared_bytes: int, load: dict[int, int]) -> None:
        self.name = name
        self._shared_bytes = shared_bytes
        self._load = load
        self._cpus: set[int] = set()
        self._take_cpus(STANDARD)
        self._pid = 0
        self._tier: Tier | None = None
        self._counters = Counters()
        self._folders: list[int] = []
        self._peak = 0
        self._looks_spared = 0
        self._cpu_s = 0.0
        # Pid 1 last: what falls to it while the others are stopped is still reaped.
        self._stopper = Stopper(lambda: proc.tree(self._pid)[::-1])

    @property
    def rlimits(self) -> dict[str, int]:
        """The hard limit that can never be raised again."""
        return {"RLIMIT_NPROC": _MOST_PROCESSES}

    @property
    def cpus(self) -> tuple[int, ...]:
        """Of the standard tier until `apply` says otherwise."""
        return tuple(sorted(self._cpus))

    def open_to_join(self) -> list[int]:
        """Nothing to join."""
        return []

    def adopt(self, pid: int) -> None:
        """The root of the tree that is watched."""
        self._pid = pid

    def count_folders(self, folders: list[int]) -> None:
        """No process holds what lies in them, so they are asked themselves."""
        self._folders = folders

    def _in_folders(self) -> int:
        used = 0
        for folder in self._folders:
            with contextlib.suppress(OSError):
                space = os.statvfs(folder)
                used += (space.f_blocks - space.f_bfree) * space.f_frsize
        return used

    def apply(self, tier: Tier) -> None:
        """Check, then set the affinity and the soft process limit of everything inside."""
        if self._tier is not None:
            used = self.usage().memory_bytes
            if used > tier.memory_bytes:
                raise too_much_in_use(tier, used)
        self._tier = tier
        self._take_cpus(tier)
        # Again until nothing new is found: a process may fork between the listing and the setting.
        done: set[int] = set()
        while fresh := [pid for pid in proc.tree(self._pid) if pid not in done]:
            for pid in fresh:
                _pin(pid, self._cpus)
                with contextlib.suppress(OSError):
                    resource.prlimit(pid, resource.RLIMIT_NPROC, (tier.processes, _MOST_PROCESSES))
            done.update(fresh)

    def _take_cpus(self, tier: Tier) -> None:
        wanted = min(tier.vcpus, len(self._load))
        if len(self._cpus) == wanted:
            return
        self._release_cpus()
        self._cpus = set(sorted(self._load, key=lambda cpu: self._load[cpu])[:wanted])
        for cpu in self._cpus:
            self._load[cpu] += 1

    def _release_cpus(self) -> None:
        for cpu in self._cpus:
            self._load[cpu] -= 1
        self._cpus = set()

    def usage(self) -> Usage:
        """Summed over the tree; shared pages in proportion, less what the zygote brought; with files in memory."""
        pids = proc.tree(self._pid)
        memory = self._charged([proc.memory(pid) for pid in pids]) + self._in_folders()
        self._peak = max(self._peak, memory)
        # Whoever waits for a child inherits its count, so those that are gone are in here; only if nobody waited does
        # the sum fall, and what was spent stays spent.
        self._cpu_s = max(self._cpu_s, sum(proc.cpu_seconds(pid) for pid in pids))
        return Usage(
            memory_bytes=memory,
            peak_memory_bytes=self._peak,
            cpu_s=self._cpu_s,
            processes=sum(proc.threads(pid) for pid in pids),
        )

    def _charged(self, tree: list[proc.Memory]) -> int:
        """What is held here and not by the zygote. `tree` begins with pid 1, which shares all that can be shared.

        A process that was executed shares little of it, and no more is taken off than it shares with anybody.
        """
        if not tree:
            return 0
        shared = [max(0, one.proportional_bytes - one.private_bytes) for one in tree]
        brought = min(self._shared_bytes, sum(min(one, shared[0]) for one in shared))
        return max(0, sum(one.proportional_bytes for one in tree) - brought)

    def counters(self) -> Counters:
        """What the watchdog has done, and whether the tree stands at its process limit now."""
        return self._counters

    def watch(self) -> str | None:
        """Memory: end the largest process, as the kernel would. Processes: end the sandbox, as forks outrun us."""
        if self._tier is None or not self._pid:
            return None
        pids = proc.tree(self._pid)
        # A fork that was under way when the tier changed copied the old mask before it could be seen here.
        for pid in pids:
            _pin(pid, self._cpus)
        threads = sum(proc.threads(pid) for pid in pids)
        if threads >= self._tier.processes:
            self._counters = Counters(memory_kills=self._counters.memory_kills,
                                      process_refusals=self._counters.process_refusals + 1)  # fmt: skip
        # Half again: threads do not count for the kernel's limit as exactly as they do here.
        if threads > self._tier.processes * 1.5:
            return f"too many processes: {threads} of {self._tier.processes}"
        # The cheap number counts shared pages in full; only if that is too much is the exact one worth its price.
        if sum(proc.resident_bytes(pid) for pid in pids) + self._in_folders() > self._tier.memory_bytes:
            self._end_largest_if_over(pids)
        return None

    def _end_largest_if_over(self, pids: list[int]) -> None:
        assert self._tier is not None
        found = {pid: proc.memory(pid) for pid in pids}
        used = self._charged(list(found.values())) + self._in_folders()
        self._peak = max(self._peak, used)
        if used <= self._tier.memory_bytes:
            self._looks_spared = 0
            return
        sizes = {pid: one.proportional_bytes for pid, one in found.items() if pid != self._pid}
        # As the kernel's own killer has it: what was said to go first does.
        first = [pid for pid in sizes if proc.goes_first(pid)]
        if (
            not first
            and self._looks_spared < _MOST_SPARED
            and any(size and _has_ended(pid) for pid, size in sizes.items())
        ):
            # What held the memory is gone since it was counted, perhaps a snapshot that was given up: there may be
            # enough now, and who has done nothing wrong must not pay. Not for ever: a guest can have ends without end.
            self._looks_spared += 1
            return
        self._looks_spared = 0
        largest = max(first or sizes, key=sizes.__getitem__, default=None)
        if largest is not None:
            self._counters = Counters(memory_kills=self._counters.memory_kills + 1,
                                      process_refusals=self._counters.process_refusals)  # fmt: skip
            with contextlib.suppress(ProcessLookupError):
                os.kill(largest, signal.SIGKILL)

    def freeze(self) -> bool:
        """One process after the other."""
        return self._stopper.stop()

    def thaw(self) -> None:
        """The same."""
        self._stopper.go_on()

    def remove(self) -> bool:
        """Give the CPUs back."""
        self._release_cpus()
        return True


def _has_ended(pid: int) -> bool:
    return proc.states(pid) <= {"Z", "X"}


def _pin(pid: int, cpus: set[int]) -> None:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            if os.sched_getaffinity(int(task)) != cpus:
                os.sched_setaffinity(int(task), cpus)
