"""Limits by control groups, version 1: one hierarchy a controller, found where the host's own process is in each."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Literal

from workbench.contracts.engine import Usage
from workbench.engines import proc
from workbench.engines.namespace.limits import cgroup_files as files
from workbench.engines.namespace.limits.keeper import Counters
from workbench.engines.stopping import Stopper
from workbench.errors import QuotaExceeded
from workbench.model.capability import Barrier, Capability, Grade
from workbench.model.tier import Tier

# `freezer` limits nothing, and is not required: where it is missing, processes are stopped one by one.
CONTROLLERS = ("memory", "cpu", "pids", "cpuacct", "freezer")
_REQUIRED = ("memory", "cpu", "pids")
_PERIOD_US = 100_000


def own_groups() -> dict[str, Path]:
    """Controller: the folder of the group that this process is in, for the controllers mounted as version 1."""
    mounts: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            for controller in set(options.split(",")) & set(CONTROLLERS):
                mounts.setdefault(controller, Path(where))
    found: dict[str, Path] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for controller in names.split(","):
            if controller in mounts:
                inside = mounts[controller] / path.lstrip("/")
                # In a container the path is the outer one and does not exist here; the mount is then our group.
                found[controller] = inside if inside.is_dir() else mounts[controller]
    return found


class CgroupV1:
    """A group for the host in each hierarchy, and one below it for each sandbox."""

    kind = "cgroup v1"
    watches = False

    def __init__(self, name: str, cpus: int) -> None:
        """Make the host's groups.

        Raises:
            OSError: a controller is missing or its hierarchy is not ours to write.
        """
        self._cpus = cpus
        own = own_groups()
        if missing := [controller for controller in _REQUIRED if controller not in own]:
            raise OSError(errno.ENOENT, f"no version 1 hierarchy for {', '.join(missing)}")
        self._folders = {controller: path / name for controller, path in own.items()}
        try:
            for folder in self._folders.values():
                folder.mkdir(exist_ok=True)
            trial = self.group("trial")
            for descriptor in trial.open_to_join():
                os.close(descriptor)
            trial.remove()
        except OSError:
            self.close()
            raise

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """All three by the kernel."""
        return tuple(
            Capability(barrier=barrier, grade=Grade.ENFORCED, by=self.kind)
            for barrier in (Barrier.MEMORY, Barrier.CPU, Barrier.PROCESSES)
        )

    def group(self, name: str) -> CgroupV1Group:
        """A new folder in each hierarchy."""
        folders = {controller: folder / name for controller, folder in self._folders.items()}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        return CgroupV1Group(folders, self._cpus)

    def close(self) -> None:
        """Remove the host's groups; what is still full is left to the next sweep."""
        for folder in self._folders.values():
            with contextlib.suppress(OSError):
                files.remove_tree(folder)


class CgroupV1Group:
    """One sandbox's folders, a controller each."""

    join: Literal["v1"] = "v1"

    def __init__(self, folders: dict[str, Path], cpus: int) -> None:
        self._folders = folders
        self._memory, self._cpu, self._pids = (folders[controller] for controller in _REQUIRED)
        self._cpus = cpus
        self._pid = 0
        self._stopper = Stopper(lambda: proc.tree(self._pid)[::-1])

    @property
    def rlimits(self) -> dict[str, int]:
        """None: the groups do it."""
        return {}

    @property
    def cpus(self) -> tuple[int, ...]:
        """Any: the quota caps them."""
        return ()

    def open_to_join(self) -> list[int]:
        """The `tasks` file of each hierarchy, once each where controllers share one."""
        unique = {os.path.realpath(folder) for folder in self._folders.values()}
        return [os.open(f"{folder}/tasks", os.O_WRONLY | os.O_CLOEXEC) for folder in sorted(unique)]

    def adopt(self, pid: int) -> None:
        """It joins by itself."""
        self._pid = pid

    def count_folders(self, folders: list[int]) -> None:
        """The kernel charges their pages to the group."""

    def apply(self, tier: Tier) -> None:
        """Memory first: it is the one that can be refused."""
        self._limit_memory(tier)
        # Buffers of TCP have a count of their own in version 1, outside of the memory limit.
        if (sockets := self._memory / "memory.kmem.tcp.limit_in_bytes").exists():
            files.write(sockets, tier.memory_bytes // 4)
        files.write(self._pids / "pids.max", tier.processes)
        files.write(self._cpu / "cpu.cfs_period_us", _PERIOD_US)
        files.write(self._cpu / "cpu.cfs_quota_us", _PERIOD_US * min(tier.vcpus, self._cpus))

    def _limit_memory(self, tier: Tier) -> None:
        limit = self._memory / "memory.limit_in_bytes"
        with_swap = self._memory / "memory.memsw.limit_in_bytes"
        growing = tier.memory_bytes >= files.read_int(limit)
        # Memory with swap may never be below memory alone, so the order depends on the direction.
        order = [with_swap, limit] if growing else [limit, with_swap]
        try:
            for path in order:
                if path.exists():
                    files.write(path, tier.memory_bytes)
        except OSError as problem:
            if problem.errno != errno.EBUSY:
                raise
            raise too_much_in_use(tier, self.usage().memory_bytes) from problem

    def usage(self) -> Usage:
        """Cached file pages are not counted: the kernel gives them back when asked."""
        stat = files.read_table(self._memory / "memory.stat")
        kernel = files.read_int(self._memory / "memory.kmem.usage_in_bytes")
        acct = self._folders.get("cpuacct", self._cpu)
        return Usage(
            memory_bytes=stat.get("total_rss", 0) + stat.get("total_shmem", 0) + kernel,
            peak_memory_bytes=files.read_int(self._memory / "memory.max_usage_in_bytes"),
            cpu_s=files.read_int(acct / "cpuacct.usage") / 1e9,
            processes=files.read_int(self._pids / "pids.current"),
        )

    def counters(self) -> Counters:
        """From the kernel's own."""
        return Counters(
            memory_kills=files.read_table(self._memory / "memory.oom_control").get("oom_kill", 0),
            process_refusals=files.read_table(self._pids / "pids.events").get("max", 0),
        )

    def watch(self) -> str | None:
        """Nothing to do."""
        return None

    def freeze(self) -> bool:
        """By the freezer's hierarchy, if there is one."""
        if (freezer := self._folders.get("freezer")) is None:
            return self._stopper.stop()
        files.write(freezer / "freezer.state", "FROZEN")
        # Some may still be on their way, and reading is what makes the kernel look.
        return (freezer / "freezer.state").read_text().strip() == "FROZEN"

    def thaw(self) -> None:
        """By the same."""
        if (freezer := self._folders.get("freezer")) is None:
            self._stopper.go_on()
        else:
            files.write(freezer / "freezer.state", "THAWED")

    def remove(self) -> bool:
        """Each folder."""
        removed = [files.remove(folder) for folder in self._folders.values()]
        return all(removed)


def too_much_in_use(tier: Tier, used: int) -> QuotaExceeded:
    """The error for shrinking below what is in use, with the numbers."""
    return QuotaExceeded(
        f"the sandbox uses {used / 2**20:.0f} MiB of memory and tier {tier.name} has {tier.memory_bytes / 2**20:.0f}; "
        "free some, or keep the larger tier",
        {"used_bytes": str(used), "limit_bytes": str(tier.memory_bytes)},
    )
