"""How much /mnt/files holds, measured when the disk it lies on has become fuller, and now and then in any case."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from workbench.contracts.engine import SandboxSpec
from workbench.engines import proc
from workbench.guest_trees import measure_tree
from workbench.model.ids import SandboxId
from workbench.model.tier import Tier

# Looking costs 40 ms per 10,000 files; a disk that lost less than this since the last look is not looked at.
_STEP_BYTES, _STEP_INODES = 256 * 1024 * 1024, 20_000
# What one sandbox takes may be what another gave back at that moment, so all are looked at once in a while: this often,
# or for a fiftieth of the time where that is rarer.
_ROUND_S, _SHARE = 30.0, 50
# On average over a sandbox's processes; more is not looked at, and counts like a folder that cannot be read.
_DESCRIPTORS_PER_PROCESS = 1024


class _Watched(Protocol):
    @property
    def spec(self) -> SandboxSpec: ...
    @property
    def tier(self) -> Tier: ...
    @property
    def root_pid(self) -> int: ...


S = TypeVar("S", bound=_Watched)


class _Free(NamedTuple):
    bytes: int
    inodes: int


class FilesWatch:
    """Remembers the free space at its last look, and whose files it could not measure then."""

    def __init__(self, files_root: Path) -> None:
        self._files_root = files_root
        self._free_at_last_look: _Free | None = None
        self._unmeasured: set[SandboxId] = set()
        self._next_round = time.monotonic() + _ROUND_S

    async def over_quota(self, sandboxes: Iterable[S]) -> list[tuple[S, str]]:
        """Those whose files have outgrown their tier, with the reason."""
        began = time.monotonic()
        all_of_them = self._is_fuller() or began >= self._next_round
        found, unmeasured = [], set()
        for sandbox in sandboxes:
            again = sandbox.spec.id in self._unmeasured
            if not all_of_them and not again:
                continue
            reason, complete = await asyncio.to_thread(_look, sandbox.spec.files, sandbox.tier, sandbox.root_pid)
            if not complete:
                unmeasured.add(sandbox.spec.id)
            if not complete and again:
                # BARRIER: what is hidden from the count by `chmod 0` may be anything; held by the proof's row
                # `files-fill-closed`. Once may be a folder that was just being moved.
                reason = reason or "disk full: /mnt/files cannot be measured, as parts of it stay closed to the host"
            if reason:
                found.append((sandbox, reason))
        self._unmeasured = unmeasured
        if all_of_them:
            now = time.monotonic()
            self._next_round = now + max(_ROUND_S, _SHARE * (now - began))
        return found

    def note_free(self) -> None:
        """For a sandbox that is about to be used: what it takes is measured from here."""
        self._set_mark(_free(self._files_root))

    def _set_mark(self, free: _Free) -> None:
        # Space that came back moves the mark up, or the next loss would be measured from the wrong place.
        before = self._free_at_last_look or free
        self._free_at_last_look = _Free(*map(max, before, free))

    def _is_fuller(self) -> bool:
        free, before = _free(self._files_root), self._free_at_last_look
        if before is not None and (
            free.bytes <= before.bytes - _STEP_BYTES or free.inodes <= before.inodes - _STEP_INODES
        ):
            self._free_at_last_look = free
            return True
        self._set_mark(free)
        return False


def _look(files: Path, tier: Tier, root_pid: int) -> tuple[str, bool]:
    """Why the sandbox must end, or nothing; and whether all was seen."""
    size = measure_tree(files, most_entries=tier.files_inodes)
    if size.entries > tier.files_inodes:
        return f"disk full: /mnt/files holds {size.entries} of {tier.files_inodes} files", True
    # A file without a name is in no folder, but on the disk for as long as someone has it open.
    pids = proc.tree(root_pid)
    unlinked = proc.unlinked_files(pids, _device(files), most=_DESCRIPTORS_PER_PROCESS * tier.processes)
    used = size.bytes + unlinked.bytes
    if used > tier.files_bytes:
        return f"disk full: /mnt/files holds {used} of {tier.files_bytes} bytes", True
    return "", size.complete and unlinked.complete


def _device(folder: Path) -> int:
    try:
        return folder.stat().st_dev
    except OSError:
        return -1


def _free(folder: Path) -> _Free:
    space = os.statvfs(folder)
    return _Free(space.f_bavail * space.f_frsize, space.f_favail)
