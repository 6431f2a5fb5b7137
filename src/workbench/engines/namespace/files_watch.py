"""How much /mnt/files holds, measured when the disk it lies on has become fuller, and now and then in any case."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from workbench.contracts.engine import SandboxSpec
from workbench.engines import proc
from workbench.engines.namespace.quota import FilesQuota, Held
from workbench.guest_trees import measure_tree
from workbench.model.tier import Tier

# Looking costs 40 ms per 10,000 files; a disk that lost less than this since the last look is not looked at.
_STEP_BYTES, _STEP_INODES = 256 * 1024 * 1024, 20_000
# What one sandbox takes may be what another gave back at that moment, so all are looked at once in a while: this often,
# or for a fiftieth of the time where that is rarer.
_ROUND_S, _SHARE = 30.0, 50
# On average over a sandbox's processes; more is not looked at, and counts like a folder that cannot be read.
_DESCRIPTORS_PER_PROCESS = 1024
# At what is there before anything runs; more than a million files take longer, and are looked at while it runs.
_FIRST_LOOK_S = 5.0
# Threads for looks at running sandboxes, and for those before one runs, which somebody waits for.
_LOOKING, _LOOKING_FIRST = 4, 2
MOST_THREADS = _LOOKING + _LOOKING_FIRST
"""that looks take, started one by one as they are needed"""
# Mounts that were left too full; who makes more of them than this only loses the leave to tidy them up.
_LEFT_REMEMBERED = 1000


class _Watched(Protocol):
    @property
    def spec(self) -> SandboxSpec: ...
    @property
    def tier(self) -> Tier: ...
    @property
    def root_pid(self) -> int: ...
    @property
    def quota(self) -> FilesQuota: ...


S = TypeVar("S", bound=_Watched)


class _Free(NamedTuple):
    bytes: int
    inodes: int


class FilesWatch:
    """Remembers the free space at its last look, and which mounts were left with more than their bound."""

    def __init__(self, files_root: Path) -> None:
        self._files_root = files_root
        self._free_at_last_look: _Free | None = None
        self._left: OrderedDict[Path, Held] = OrderedDict()
        self._next_round = time.monotonic() + _ROUND_S
        self._looks: set[asyncio.Task[str]] = set()
        self._is_closing = False
        # BARRIER: threads of its own, as a look goes on when nobody waits for it any more: guests with many files must
        # not take those that all else in the host needs; held by tests/unit/engines/namespace/test_files_watch.py.
        self._threads = ThreadPoolExecutor(_LOOKING, thread_name_prefix="files")
        self._threads_for_first = ThreadPoolExecutor(_LOOKING_FIRST, thread_name_prefix="files at first")

    async def begin(self, files: Path, tier: Tier) -> FilesQuota:
        """For a sandbox that is about to be used: what it takes is measured from here."""
        self._set_mark(_free(self._files_root))
        quota = FilesQuota(self._left.get(files))
        quota.begin(await self._first_look(files, tier, quota.most_files(tier)), tier)
        return quota

    async def _first_look(self, files: Path, tier: Tier, most_files: int) -> Held | None:
        if not os.listdir(files):
            # As for every sandbox without a mount: not worth a thread.
            return Held(0, 0)
        running = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LOOK_S):
                return await running.run_in_executor(self._threads_for_first, _measure, files, tier, None, most_files)
        return None

    async def look(self, sandboxes: Iterable[S]) -> list[tuple[S, str]]:
        """At those whose files may have changed; which of them must end, with the reason."""
        began = time.monotonic()
        all_of_them = self._is_fuller() or began >= self._next_round
        found = [
            (sandbox, reason)
            for sandbox in sandboxes
            if all_of_them or sandbox.quota.wants_look(time.monotonic())
            if (reason := await self.look_at(sandbox))
        ]
        if all_of_them:
            now = time.monotonic()
            self._next_round = now + max(_ROUND_S, _SHARE * (now - began))
        return found

    async def look_at(self, sandbox: _Watched) -> str:
        """At this one; why it must end, or nothing. Who gives up waiting leaves the look to others who want one."""
        look = sandbox.quota.next_look
        if look is None:
            look = asyncio.create_task(self._look_at(sandbox), name=f"files of {sandbox.spec.id}")
            sandbox.quota.next_look = look
            self._looks.add(look)
            look.add_done_callback(self._looked)
        return await asyncio.shield(look)

    def _looked(self, look: asyncio.Task[str]) -> None:
        self._looks.discard(look)
        if not look.cancelled():
            look.exception()  # told to whoever waits; nobody may

    async def _look_at(self, sandbox: _Watched) -> str:
        quota, files, tier = sandbox.quota, sandbox.spec.files, sandbox.tier
        async with quota.looking:
            # From here on it may miss what is written; who asks now gets the next one.
            quota.next_look = None
            if self._is_closing:
                return ""
            began = time.monotonic()
            held = await asyncio.get_running_loop().run_in_executor(
                self._threads, _measure, files, tier, sandbox.root_pid, quota.most_files(tier)
            )
            now = time.monotonic()
            reason = quota.found(held, tier, at=now, took_s=now - began)
        left = quota.leaves(held, tier)
        if left is None:
            self._left.pop(files, None)
        else:
            self._left[files] = left
            if len(self._left) > _LEFT_REMEMBERED:
                self._left.popitem(last=False)
        return reason

    async def aclose(self) -> None:
        """Wait for the looks under way."""
        self._is_closing = True
        if self._looks:
            await asyncio.wait(self._looks)
        for threads in (self._threads, self._threads_for_first):
            await asyncio.to_thread(threads.shutdown)

    def may_be_fuller(self) -> bool:
        """Whether the next look will be at all of them, for who does not want to wait for it."""
        before = self._free_at_last_look
        return before is not None and _is_less(_free(self._files_root), before)

    def _set_mark(self, free: _Free) -> None:
        # Space that came back moves the mark up, or the next loss would be measured from the wrong place.
        before = self._free_at_last_look or free
        self._free_at_last_look = _Free(*map(max, before, free))

    def _is_fuller(self) -> bool:
        free, before = _free(self._files_root), self._free_at_last_look
        if before is not None and _is_less(free, before):
            self._free_at_last_look = free
            return True
        self._set_mark(free)
        return False


def _is_less(free: _Free, before: _Free) -> bool:
    return free.bytes <= before.bytes - _STEP_BYTES or free.inodes <= before.inodes - _STEP_INODES


def _measure(files: Path, tier: Tier, root_pid: int | None, most_files: int) -> Held:
    size = measure_tree(files, most_entries=most_files)
    if size.entries > most_files or root_pid is None:
        return Held(size.bytes, size.entries)
    # A file without a name is in no folder, but on the disk for as long as someone has it open.
    pids = proc.tree(root_pid)
    unlinked = proc.unlinked_files(pids, _device(files), most=_DESCRIPTORS_PER_PROCESS * tier.processes)
    return Held(size.bytes + unlinked.bytes, size.entries, size.complete and unlinked.complete)


def _device(folder: Path) -> int:
    try:
        return folder.stat().st_dev
    except OSError:
        return -1


def _free(folder: Path) -> _Free:
    space = os.statvfs(folder)
    return _Free(space.f_bavail * space.f_frsize, space.f_favail)
