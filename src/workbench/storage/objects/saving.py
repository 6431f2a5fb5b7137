"""Saves in the background: each mount by one task at a time, and however often it is asked for meanwhile, once more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from workbench.errors import WorkbenchError
from workbench.model.ids import MountId

_AT_ONCE = 4
# To look through a large mount after every one of many short cells would take a core for itself.
_PAUSE_SHARE, _MOST_PAUSE_S = 10.0, 10.0


class BackgroundSaves:
    """The saves of a store. Owned by it, and closed with it."""

    def __init__(self, save: Callable[[MountId], Awaitable[bool]]) -> None:
        """`save` tells whether something is left to do."""
        self._save = save
        self._wanted: set[MountId] = set()
        self._tasks: dict[MountId, asyncio.Task[None]] = {}
        self._left: set[MountId] = set()
        self._problems: dict[MountId, str] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._closing = asyncio.Event()

    def soon(self, mount: MountId) -> None:
        """Have it saved, beginning at once if nothing is in the way."""
        if self._closing.is_set():
            return
        self._wanted.add(mount)
        if mount not in self._tasks:
            task = asyncio.create_task(self._keep_saving(mount), name=f"save {mount}")
            self._tasks[mount] = task
            task.add_done_callback(lambda _: self._tasks.pop(mount, None))

    def again(self) -> tuple[str, ...]:
        """Have those saved whose last save left something; and what was in the way of it."""
        for mount in self._left:
            self.soon(mount)
        problems = tuple(f"files of {mount}: {problem}" for mount, problem in self._problems.items())
        self._problems.clear()
        return problems

    def forget(self, mount: MountId) -> None:
        """It is gone."""
        for one in (self._wanted, self._left):
            one.discard(mount)
        self._problems.pop(mount, None)

    async def _keep_saving(self, mount: MountId) -> None:
        while mount in self._wanted:
            self._wanted.discard(mount)
            async with self._slots:
                began = time.monotonic()
                await self._save_once(mount)
                lasted_s = time.monotonic() - began
            await self._pause(min(_PAUSE_SHARE * lasted_s, _MOST_PAUSE_S))

    async def _save_once(self, mount: MountId) -> None:
        try:
            left = await self._save(mount)
        except WorkbenchError as problem:
            self._problems[mount] = problem.message
            left = True
        except Exception as problem:  # noqa: BLE001 - a save that ends without a word would be the last of its mount
            self._problems[mount] = f"{type(problem).__name__}: {problem}"
            left = True
        if left:
            self._left.add(mount)
        else:
            self._left.discard(mount)
            self._problems.pop(mount, None)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return

    async def aclose(self, wait_s: float, stop: Callable[[], None]) -> None:
        """Wait for what is being saved, for so long; then `stop` has it end. May be called twice."""
        self._closing.set()
        late = set(self._tasks.values())
        if late:
            _, late = await asyncio.wait(late, timeout=wait_s)
        stop()
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
