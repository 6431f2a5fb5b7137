"""Limits by control groups, version 2: one folder that is ours to divide, with a leaf for the host itself."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Literal

from workbench.contracts.engine import Usage
from workbench.engines.namespace.limits import cgroup_files as files
from workbench.engines.namespace.limits.cgroup_v1 import too_much_in_use
from workbench.engines.namespace.limits.keeper import Counters
from workbench.model.capability import Barrier, Capability, Grade
from workbench.model.tier import Tier

_CONTROLLERS = ("memory", "cpu", "pids")
_PERIOD_US = 100_000
_LEAF = "host"


def candidates() -> list[Path]:
    """Where our folder might go, best first: the group we were started in, then the top of the tree."""
    mount = next(
        (Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines()
         if line.split()[2] == "cgroup2"), None)  # fmt: skip
    if mount is None:
        return []
    own = next(
        (
            line.split("::", 1)[1]
            for line in Path("/proc/self/cgroup").read_text().splitlines()
            if line.startswith("0::")
        ),
        "/",
    )
    inside = mount / own.lstrip("/")
    return [inside, mount] if inside.is_dir() and inside != mount else [mount]


class CgroupV2:
    """A folder for the host with a leaf for its own processes, and one beside the leaf for each sandbox."""

    kind = "cgroup v2"
    watches = False

    def __init__(self, name: str, cpus: int) -> None:
        """Make the host's group where that works.

        Raises:
            OSError: nowhere; the message has the reason of the last try.
        """
        self._cpus = cpus
        self._back: Path | None = None
        problem = OSError(errno.ENOENT, "cgroup v2 is not mounted")
        for base in candidates():
            try:
                self._folder = self._divide(base, name)
                return
            except OSError as refused:
                problem = OSError(refused.errno, f"{base}: {refused.strerror}")
                self._undo(base, name)
        raise problem

    def _divide(self, base: Path, name: str) -> Path:
        offered = (base / "cgroup.controllers").read_text().split()
        if missing := [controller for controller in _CONTROLLERS if controller not in offered]:
            raise OSError(errno.ENOENT, f"no {', '.join(missing)} controller is delegated here")
        wanted = " ".join(f"+{controller}" for controller in _CONTROLLERS)
        folder = base / name
        folder.mkdir(exist_ok=True)
        (folder / _LEAF).mkdir(exist_ok=True)
        # A group with children may hold no process: the host moves into a leaf before it divides the rest.
        files.write(folder / _LEAF / "cgroup.procs", os.getpid())
        self._back = base
        files.write(base / "cgroup.subtree_control", wanted)
        files.write(folder / "cgroup.subtree_control", wanted)
        return folder

    def _undo(self, base: Path, name: str) -> None:
        with contextlib.suppress(OSError):
            if self._back is not None:
                files.write(self._back / "cgroup.procs", os.getpid())
        with contextlib.suppress(OSError):
            files.remove_tree(base / name)

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """All three by the kernel."""
        return tuple(
            Capability(barrier=barrier, grade=Grade.ENFORCED, by=self.kind)
            for barrier in (Barrier.MEMORY, Barrier.CPU, Barrier.PROCESSES)
        )

    def group(self, name: str) -> CgroupV2Group:
        """A new folder."""
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        return CgroupV2Group(folder, self._cpus)

    def close(self) -> None:
        """Step back out and remove the folder, as far as others let us."""
        self._undo(self._folder.parent, self._folder.name)


class CgroupV2Group:
    """One sandbox's folder."""

    join: Literal["v2"] = "v2"
    pin_cpus = False

    def __init__(self, folder: Path, cpus: int) -> None:
        self._folder = folder
        self._cpus = cpus

    @property
    def rlimits(self) -> dict[str, int]:
        """None: the group does it."""
        return {}

    def open_to_join(self) -> list[int]:
        """The folder: the kernel clones straight into it."""
        return [os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]

    def adopt(self, pid: int) -> None:
        """It was born inside."""

    def apply(self, tier: Tier) -> None:
        """Version 2 would kill to shrink, where version 1 refuses; so we look first."""
        used = self.usage().memory_bytes
        if used > tier.memory_bytes:
            raise too_much_in_use(tier, used)
        files.write(self._folder / "memory.max", tier.memory_bytes)
        if (self._folder / "memory.swap.max").exists():
            files.write(self._folder / "memory.swap.max", 0)
        files.write(self._folder / "pids.max", tier.processes)
        files.write(self._folder / "cpu.max", f"{_PERIOD_US * min(tier.vcpus, self._cpus)} {_PERIOD_US}")

    def usage(self) -> Usage:
        """Cached file pages are not counted: the kernel gives them back when asked."""
        stat = files.read_table(self._folder / "memory.stat")
        used = sum(stat.get(name, 0) for name in ("anon", "shmem", "kernel_stack", "pagetables", "sock"))
        return Usage(
            memory_bytes=used,
            # memory.peak came with Linux 5.19.
            peak_memory_bytes=max(used, files.read_int(self._folder / "memory.peak")),
            cpu_s=files.read_table(self._folder / "cpu.stat").get("usage_usec", 0) / 1e6,
            processes=files.read_int(self._folder / "pids.current"),
        )

    def counters(self) -> Counters:
        """From the kernel's own."""
        return Counters(
            memory_kills=files.read_table(self._folder / "memory.events").get("oom_kill", 0),
            process_refusals=files.read_table(self._folder / "pids.events").get("max", 0),
        )

    def watch(self) -> str | None:
        """Nothing to do."""
        return None

    def remove(self) -> bool:
        """The folder."""
        return files.remove(self._folder)
