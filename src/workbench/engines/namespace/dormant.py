"""Snapshots of a sandbox, as pid 1 tells of them, and how gladly the kernel ends each when memory runs out."""

from __future__ import annotations

import asyncio

from workbench.engines import proc
from workbench_guest.messages import OOM_PREFERENCE_OF_CHILDREN

# Below the agent's processes: whoever takes the memory goes, and what would be restored stays.
_OOM_PREFERENCE = 100


class _Process:
    """One of the host's numbers, which may mean another process later."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._began = proc.start_time(pid)

    def set_oom_preference(self, preference: int) -> None:
        """Of this process, and of no other that has its number by now."""
        if self._began is not None and proc.start_time(self.pid) == self._began:
            proc.set_oom_preference(self.pid, preference)


class DormantProcesses:
    """Which there are. Fed by the sandbox, asked by its owner. `root` is pid 1, on the host."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._there: dict[str, _Process] = {}
        self._expected: set[str] = set()
        self._changed = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """The sandbox is gone, and all of them with it."""
        self._closed = True
        self._there.clear()
        self._tell()

    def expect(self, snapshot: str) -> None:
        """It was asked for."""
        self._expected.add(snapshot)

    def offered(self, snapshot: str, inside: int) -> bool:
        """Pid 1 has taken it in, and counts it so; False if nobody waits for it, or it has ended already.

        BARRIER: what nobody asked for is not even looked at, or an agent could keep the host busy with offers; held by
        tests/host/test_hostile_kernels.py.
        """
        if snapshot not in self._expected:
            return False
        self._expected.discard(snapshot)
        process = self._on_host(inside)
        if process is None:
            return False
        process.set_oom_preference(_OOM_PREFERENCE)
        self._there[snapshot] = process
        self._tell()
        return True

    def _on_host(self, inside: int) -> _Process | None:
        """Of a child of pid 1."""
        for pid in proc.children(self._root):
            if proc.numbers(pid, "NSpid:")[-1] == inside:
                return _Process(pid)
        return None

    def woken(self, snapshot: str) -> None:
        """It is a process like any other now."""
        if (process := self._there.get(snapshot)) is not None:
            process.set_oom_preference(OOM_PREFERENCE_OF_CHILDREN)
        self.gone(snapshot)

    def gone(self, snapshot: str) -> None:
        """It ended."""
        self._there.pop(snapshot, None)
        self._tell()

    def discarded(self, snapshot: str) -> None:
        """Nobody wants it: one that has not come yet is not taken when it comes."""
        self._expected.discard(snapshot)
        self.gone(snapshot)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def names(self) -> frozenset[str]:
        """Those that can be started now."""
        return frozenset(self._there)

    def let_go_first(self, snapshot: str) -> None:
        """Before anything else inside."""
        if (process := self._there.get(snapshot)) is not None:
            process.set_oom_preference(proc.FIRST_TO_GO)

    def resident_bytes_of_others(self) -> int:
        """Of everything inside that is none of them."""
        sleeping = {process.pid for process in self._there.copy().values()}
        return sum(proc.resident_bytes(pid) for pid in set(proc.tree(self._root)) - sleeping)

    async def wait(self, snapshot: str, within_s: float) -> bool:
        """Whether it is there, or came in time."""
        try:
            async with asyncio.timeout(within_s):
                while snapshot not in self._there and not self._closed:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return snapshot in self._there
