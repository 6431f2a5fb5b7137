"""Snapshots of a sandbox, as pid 1 tells of them, and how gladly the kernel ends each when memory runs out."""

from __future__ import annotations

import asyncio
from collections import deque

from workbench.engines import proc
from workbench_guest.messages import OOM_PREFERENCE_OF_CHILDREN

# Below the agent's processes: whoever takes the memory goes, and what would be restored stays.
_OOM_PREFERENCE = 100
# That were discarded before they came; what comes later than so many others never comes.
_MOST_UNWANTED = 256


class DormantProcesses:
    """Which there are. Fed by the sandbox, asked by its owner. `root` is pid 1, on the host."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._pids: dict[str, int] = {}
        """on the host"""
        self._unwanted: deque[str] = deque(maxlen=_MOST_UNWANTED)
        self._changed = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """The sandbox is gone, and all of them with it."""
        self._closed = True
        self._pids.clear()
        self._tell()

    def offered(self, snapshot: str, inside: int) -> bool:
        """Pid 1 has taken it in, and counts it so; False if nobody wants it any more, or it has ended already."""
        pid = self._on_host(inside)
        if not pid or snapshot in self._unwanted:
            return False
        proc.set_oom_preference(pid, _OOM_PREFERENCE)
        self._pids[snapshot] = pid
        self._tell()
        return True

    def _on_host(self, inside: int) -> int:
        """Of a child of pid 1; 0 if there is none."""
        for pid in proc.children(self._root):
            if proc.numbers(pid, "NSpid:")[-1] == inside:
                return pid
        return 0

    def woken(self, snapshot: str) -> None:
        """It is a process like any other now."""
        if (pid := self._pids.get(snapshot)) is not None:
            proc.set_oom_preference(pid, OOM_PREFERENCE_OF_CHILDREN)
        self.gone(snapshot)

    def gone(self, snapshot: str) -> None:
        """It ended."""
        self._pids.pop(snapshot, None)
        self._tell()

    def discarded(self, snapshot: str) -> None:
        """Nobody wants it: one that has not come yet is not taken when it comes."""
        if self._pids.pop(snapshot, None) is None:
            self._unwanted.append(snapshot)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def names(self) -> frozenset[str]:
        """Those that can be started now."""
        return frozenset(self._pids)

    def let_go_first(self, snapshot: str) -> None:
        """Before anything else inside."""
        if (pid := self._pids.get(snapshot)) is not None:
            proc.set_oom_preference(pid, proc.FIRST_TO_GO)

    def resident_bytes_of_others(self) -> int:
        """Of everything inside that is none of them."""
        return sum(proc.resident_bytes(pid) for pid in set(proc.tree(self._root)) - set(self._pids.values()))

    async def wait(self, snapshot: str, within_s: float) -> bool:
        """Whether it is there, or came in time."""
        try:
            async with asyncio.timeout(within_s):
                while snapshot not in self._pids and not self._closed:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return snapshot in self._pids
