"""How much /mnt/files holds, measured only when the disk it lies on has become fuller."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from workbench.contracts.engine import SandboxSpec
from workbench.model.tier import Tier

# Looking costs 40 ms per 10,000 files; a disk that lost less than this since the last look is not looked at.
_STEP_BYTES = 256 * 1024 * 1024


class _Watched(Protocol):
    @property
    def spec(self) -> SandboxSpec: ...
    @property
    def tier(self) -> Tier: ...


S = TypeVar("S", bound=_Watched)


class FilesWatch:
    """Remembers the free space at its last look."""

    def __init__(self, files_root: Path) -> None:
        self._files_root = files_root
        self._free_at_last_look: int | None = None

    async def over_quota(self, sandboxes: Iterable[S]) -> list[tuple[S, str]]:
        """Those whose files have outgrown their tier, with the reason."""
        free = _free_bytes(self._files_root)
        if self._free_at_last_look is None:
            self._free_at_last_look = free
        if free > self._free_at_last_look - _STEP_BYTES:
            # Space that came back moves the mark up, or the next loss would be measured from the wrong place.
            self._free_at_last_look = max(self._free_at_last_look, free)
            return []
        self._free_at_last_look = free
        found = []
        for sandbox in list(sandboxes):
            used = await asyncio.to_thread(folder_bytes, sandbox.spec.files)
            limit = sandbox.tier.files_bytes
            if used > limit:
                found.append((sandbox, f"disk full: /mnt/files holds {used} of {limit} bytes"))
        return found


def _free_bytes(folder: Path) -> int:
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


def folder_bytes(folder: Path) -> int:
    """Blocks in use below `folder`; links are not followed, and what vanishes meanwhile is not counted."""
    total, queue = 0, [os.fspath(folder)]
    while queue:
        try:
            with os.scandir(queue.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
        except OSError:
            continue
    return total
