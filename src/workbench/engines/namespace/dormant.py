"""Snapshots of a sandbox, as pid 1 tells of them."""

from __future__ import annotations

import asyncio


class DormantProcesses:
    """Which there are. Fed by the sandbox, asked by its owner."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}
        self._unwanted: set[str] = set()
        self._changed = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """The sandbox is gone, and all of them with it."""
        self._closed = True
        self._pids.clear()
        self._tell()

    def offered(self, snapshot: str, pid: int) -> bool:
        """Pid 1 has taken it in, `pid` is the host's; False if nobody wants it any more."""
        if snapshot in self._unwanted:
            self._unwanted.discard(snapshot)
            return False
        self._pids[snapshot] = pid
        self._tell()
        return True

    def gone(self, snapshot: str) -> None:
        """It ended, or was started."""
        self._pids.pop(snapshot, None)
        self._tell()

    def discarded(self, snapshot: str) -> None:
        """Nobody wants it: one that has not come yet is not taken when it comes."""
        if self._pids.pop(snapshot, None) is None:
            self._unwanted.add(snapshot)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def names(self) -> frozenset[str]:
        """Those that can be started now."""
        return frozenset(self._pids)

    def pid(self, snapshot: str) -> int | None:
        """On the host."""
        return self._pids.get(snapshot)

    @property
    def pids(self) -> set[int]:
        """All of them."""
        return set(self._pids.values())

    async def wait(self, snapshot: str, within_s: float) -> bool:
        """Whether it is there, or came in time."""
        try:
            async with asyncio.timeout(within_s):
                while snapshot not in self._pids and not self._closed:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return snapshot in self._pids
