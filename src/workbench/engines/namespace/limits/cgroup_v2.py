"""Limits by control groups, version 2: one folder that is ours to divide, with a leaf for the host itself."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Literal

from workbench.contracts.engine import Usage
from workbench.engines import proc
from workbench.engines.namespace.limits import cgroup_files as files
from workbench.engines.namespace.limits.cgroup_v1 import too_much_in_use
from workbench.engines.namespace.limits.keeper import Counters
from workbench.engines.stopping import Stopper
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
    inside = mount / _own_path().lstrip("/")
    if not inside.is_dir():
        return [mount]
    # Started from within another host's leaf: that host is still in it, so our place is beside its folder.
    around = [inside.parent.parent] if inside.name == _LEAF and inside.parent != mount else []
    return list(dict.fromkeys([*around, inside, mount]))


def _own_path() -> str:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")


def _own_processes(group: Path) -> list[int]:
    """Those in `group` that are this process or descend from it: the zygote is there before the limits are."""
    try:
        inside = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []
    return [pid for pid in inside if _descends(pid, os.getpid())]


def _descends(pid: int, ancestor: int) -> bool:
    above: int | None = pid
    while above not in (None, 0, ancestor):
        above = proc.parent(above)
    return above == ancestor


class CgroupV2:
    """A folder for the host with a leaf for its own processes, and one beside the leaf for each sandbox."""

    kind = "cgroup v2"
    watches = False

    def __init__(self, name: str, cpus: int) -> None:
        """Make the host's group where that works.

        Raises:
            OSError: nowhere; the message has the reason of each try.
        """
        self._cpus = cpus
        found = candidates()
        self._origin = found[-1] / _own_path().lstrip("/") if found else Path()
        refusals: list[OSError] = []
        for base in found:
            self._base, self._folder = base, base / name
            try:
                self._divide()
                return
            except OSError as refused:
                self.close()
                refusals.append(refused)
        if not refusals:
            raise OSError(errno.ENOENT, "cgroup v2 is not mounted")
        reasons = [f"{base}: {refused.strerror}" for base, refused in zip(found, refusals, strict=True)]
        raise OSError(refusals[0].errno, "; ".join(reasons))

    def _divide(self) -> None:
        offered = (self._base / "cgroup.controllers").read_text().split()
        if missing := [controller for controller in _CONTROLLERS if controller not in offered]:
            raise OSError(errno.ENOENT, f"no {', '.join(missing)} controller is delegated here")
        leaf = self._folder / _LEAF
        self._folder.mkdir(exist_ok=True)
        leaf.mkdir(exist_ok=True)
        # A group with children may hold no process: the host and its zygote move into a leaf before the rest is
        # divided. What else is in there is not ours to move, and then the kernel refuses the next step.
        for pid in {os.getpid(), *_own_processes(self._origin)}:
            files.write(leaf / "cgroup.procs", pid)
        for group in (self._base, self._folder):
            files.write(group / "cgroup.subtree_control", " ".join(f"+{controller}" for controller in _CONTROLLERS))

    def _undivide(self) -> None:
        """So that the base can hold processes again. Refused while another host divides it.

        Where nothing of ours goes back to the base, as at the top of the tree, others may rely on it as it is.
        """
        home_is_base = self._origin == self._base or not self._origin.is_dir()
        # The one group without a type is the very top, which holds processes however it is divided.
        if home_is_base and (self._base / "cgroup.type").exists():
            for group in (self._folder, self._base):
                with contextlib.suppress(OSError):
                    wanted = " ".join(f"-{controller}" for controller in _CONTROLLERS)
                    files.write(group / "cgroup.subtree_control", wanted)

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
        self._undivide()
        leaf = self._folder / _LEAF
        with contextlib.suppress(OSError):
            for pid in (leaf / "cgroup.procs").read_text().split():
                self._send_home(int(pid))
        with contextlib.suppress(OSError):
            files.remove_tree(self._folder)

    def _send_home(self, pid: int) -> None:
        for home in (self._origin, self._base):
            with contextlib.suppress(OSError):
                files.write(home / "cgroup.procs", pid)
                return


class CgroupV2Group:
    """One sandbox's folder."""

    join: Literal["v2"] = "v2"

    def __init__(self, folder: Path, cpus: int) -> None:
        self._folder = folder
        self._cpus = cpus
        self._pid = 0
        self._stopper = Stopper(lambda: proc.tree(self._pid)[::-1])

    @property
    def rlimits(self) -> dict[str, int]:
        """None: the group does it."""
        return {}

    @property
    def cpus(self) -> tuple[int, ...]:
        """Any: the quota caps them."""
        return ()

    def open_to_join(self) -> list[int]:
        """The folder: the kernel clones straight into it."""
        return [os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]

    def adopt(self, pid: int) -> None:
        """It was born inside."""
        self._pid = pid

    def count_folders(self, folders: list[int]) -> None:
        """The kernel charges their pages to the group."""

    def apply(self, tier: Tier) -> None:
        """Memory first: it is the one that can be refused."""
        self._limit_memory(tier)
        files.write(self._folder / "pids.max", tier.processes)
        files.write(self._folder / "cpu.max", f"{_PERIOD_US * min(tier.vcpus, self._cpus)} {_PERIOD_US}")

    def _limit_memory(self, tier: Tier) -> None:
        """Version 2 would kill to shrink, where version 1 refuses; so we look first."""
        used = self.usage().memory_bytes
        if used > tier.memory_bytes:
            raise too_much_in_use(tier, used)
        if (self._folder / "memory.swap.max").exists():
            files.write(self._folder / "memory.swap.max", 0)
        if files.read_int(self._folder / "memory.current") > tier.memory_bytes:
            self._shrink_memory(tier)
        else:
            files.write(self._folder / "memory.max", tier.memory_bytes)

    def _shrink_memory(self, tier: Tier) -> None:
        """Above `high` the kernel takes back what it can and slows whoever wants more, but kills nobody."""
        files.write(self._folder / "memory.high", tier.memory_bytes)
        try:
            left = files.read_int(self._folder / "memory.current")
            if left > tier.memory_bytes:
                raise too_much_in_use(tier, left)
            files.write(self._folder / "memory.max", tier.memory_bytes)
        finally:
            files.write(self._folder / "memory.high", "max")

    def usage(self) -> Usage:
        """Cached file pages are not counted: the kernel gives them back when asked."""
        stat = files.read_table(self._folder / "memory.stat")
        used = sum(stat.get(name, 0) for name in ("anon", "shmem", "sock")) + _kernel_bytes(stat)
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

    def freeze(self) -> bool:
        """By the group; it came with Linux 5.2."""
        if not (switch := self._folder / "cgroup.freeze").exists():
            return self._stopper.stop()
        files.write(switch, 1)
        return files.read_table(self._folder / "cgroup.events").get("frozen") == 1

    def thaw(self) -> None:
        """By the same."""
        if (switch := self._folder / "cgroup.freeze").exists():
            files.write(switch, 0)
        self._stopper.go_on()

    def remove(self) -> bool:
        """The folder."""
        return files.remove(self._folder)


def _kernel_bytes(stat: dict[str, int]) -> int:
    """What the kernel holds on a sandbox's behalf and cannot give back. The sum came with Linux 5.18."""
    if "kernel" in stat:
        return max(0, stat["kernel"] - stat.get("slab_reclaimable", 0))
    return sum(stat.get(name, 0) for name in ("kernel_stack", "pagetables", "percpu", "slab_unreclaimable"))
