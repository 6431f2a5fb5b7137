"""How much mounts hold and what is on its way into them, so that no upload goes beyond the quota.

Counting a million files takes seconds, and uploads come by the thousand. So a count is used for a while, together with
what we ourselves added and removed since; only a refusal needs a count that is fresh. What code inside wrote in between
is not seen until the next one: who watches the sandbox sees that.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.errors import QuotaExceeded
from workbench.guest_trees import TreeSize
from workbench.model.ids import MountId
from workbench.model.mounts import INSIDE, FilePath, Quota
from workbench.storage.leftovers import clear

_BLOCK = 512
_UPLOAD = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
# Counting takes a fortieth of the time at most; and, for who is refused again and again, a fourth.
_GOOD_SHARE, _SURE_SHARE, _CHEAP_S = 40, 4, 0.25
# An upload of unknown size takes room in steps, not with every few bytes.
_STEP = 4 * 1024 * 1024
_MOST_KEPT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a mount has more than before, or less."""

    bytes: int
    entries: int
    began: float
    """when the change was begun, by the monotonic clock"""


@dataclass(slots=True)
class _Mount:
    lock: threading.Lock = field(default_factory=threading.Lock)
    commits: threading.Lock = field(default_factory=threading.Lock)
    """held for the moment in which a file is put in its place"""
    size: TreeSize = field(default_factory=lambda: TreeSize(0, 0, complete=True))
    counted: float = 0.0
    """when the count ended"""
    good_until: float = 0.0
    """to accept by"""
    sure_until: float = 0.0
    """to refuse by"""
    claims: dict[str, Room] = field(default_factory=dict)
    """uploads of this process"""


class Measured:
    """What is known of mounts. For threads."""

    def __init__(self, count: Callable[[MountId], TreeSize], uploads: Path) -> None:
        self._count = count
        self._uploads = uploads
        self._mounts: dict[MountId, _Mount] = {}
        self._lock = threading.Lock()

    def changed(self, mount: MountId, change: Change) -> None:
        """By us. What a count may have seen or not is added, and not taken off: to be too careful is only to count."""
        known = self._known(mount)
        with known.lock:
            if min(change.bytes, change.entries) < 0 and known.counted > change.began:
                return
            size = known.size
            known.size = TreeSize(
                max(0, size.bytes + change.bytes), max(0, size.entries + change.entries), size.complete
            )

    def forget(self, mount: MountId) -> None:
        """It was removed."""
        known = self._known(mount)
        with known.lock:
            known.good_until = known.sure_until = 0.0

    def take(self, room: Room, wanted: int) -> None:
        """Keep so many bytes for it, and the names it needs.

        Raises:
            QuotaExceeded: there is no room; nothing is kept for it from here on, for it comes to nothing.
        """
        known = self._known(room.mount)
        with known.lock:
            known.claims[room.name] = room
            clear(self._uploads / room.mount, set(known.claims))
            coming = self._coming(known, room)
            for fresh in (False, True):
                held = self._held(known, room.mount, fresh=fresh)
                refusal = _refusal(held, coming, room, wanted)
                if refusal is None:
                    step = min(wanted + _STEP, wanted + _left(held, coming, room, wanted))
                    room.taken = wanted if room.is_sized else step
                    return
            room.taken = -1
        assert refusal is not None
        raise refusal

    def committing(self, mount: MountId) -> threading.Lock:
        """Held by the one who puts a file in its place."""
        return self._known(mount).commits

    def coming_bytes(self, mount: MountId) -> int:
        """What is on the disk of uploads that are not done."""
        return sum(_sizes(self._uploads / mount).values())

    def release(self, room: Room) -> None:
        """It is in its place, or left: what is on the disk counts, and nothing else."""
        known = self._known(room.mount)
        with known.lock:
            if known.claims.get(room.name) is room:
                del known.claims[room.name]

    def _known(self, mount: MountId) -> _Mount:
        with self._lock:
            if len(self._mounts) > _MOST_KEPT:
                self._mounts = {
                    name: one
                    for name, one in self._mounts.items()
                    if one.claims or one.lock.locked() or one.commits.locked()
                }
            return self._mounts.setdefault(mount, _Mount())

    def _held(self, known: _Mount, mount: MountId, *, fresh: bool) -> TreeSize:
        began = time.monotonic()
        if began < (known.sure_until if fresh else known.good_until):
            return known.size
        known.size = self._count(mount)
        known.counted = time.monotonic()
        lasted = known.counted - began
        known.good_until = known.counted + _GOOD_SHARE * lasted
        known.sure_until = known.counted + (_SURE_SHARE * lasted if lasted > _CHEAP_S else 0.0)
        return known.size

    def _coming(self, known: _Mount, room: Room) -> TreeSize:
        """What the other uploads have or will have; of those of other processes, and those that were left, what is on
        the disk.
        """
        total, entries = 0, 0
        on_disk = _sizes(self._uploads / room.mount)
        for name in on_disk.keys() | known.claims.keys():
            if name == room.name:
                continue
            claim = known.claims.get(name)
            if claim is None:
                total, entries = total + on_disk[name], entries + 1
            elif claim.taken >= 0:
                total, entries = total + max(claim.taken, on_disk.get(name, 0)), entries + claim.new_entries
            # One that was refused is about to go: it does not take the other along.
        return TreeSize(total, entries, True)


@dataclass(slots=True, eq=False)
class Room:
    """What one upload may have. What it replaces does not count twice."""

    measured: Measured
    mount: MountId
    name: str
    path: FilePath
    quota: Quota
    is_sized: bool
    replaced: int = 0
    """bytes of what is in its place now"""
    new_entries: int = 1
    """it, and the folders that have to be made for it"""
    taken: int = 0
    """bytes that are kept for it; -1 if it was refused"""

    def need(self, wanted: int) -> None:
        """Have room for so many bytes in all.

        Raises:
            QuotaExceeded: there is none.
        """
        if wanted > self.taken:
            self.measured.take(self, wanted)


def is_upload(name: str) -> bool:
    """Whether an upload can be called so, and not what is kept beside it."""
    return _UPLOAD.fullmatch(name) is not None


def _left(held: TreeSize, coming: TreeSize, room: Room, wanted: int) -> int:
    return room.quota.bytes - held.bytes - coming.bytes + room.replaced - wanted


def _refusal(held: TreeSize, coming: TreeSize, room: Room, wanted: int) -> QuotaExceeded | None:
    quota = room.quota
    staged = f", with {coming.bytes:,} of other uploads on their way" if coming.bytes else ""
    if room.new_entries and held.entries + coming.entries + room.new_entries > quota.files:
        return QuotaExceeded(
            f"{INSIDE} holds {held.entries:,} files and folders, and may hold {quota.files:,}: there is no room for "
            f"{room.path!r}; delete some first",
            {"path": room.path, "files": str(held.entries), "most_files": str(quota.files)},
        )
    if _left(held, coming, room, wanted) < 0:
        return QuotaExceeded(
            f"{INSIDE} holds {held.bytes:,} bytes{staged}, and may hold {quota.bytes:,}: there is no room for "
            f"{room.path!r} with {wanted:,} or more; delete files there, or send less",
            {
                "path": room.path,
                "bytes": str(wanted),
                "held_bytes": str(held.bytes),
                "coming_bytes": str(coming.bytes),
                "most_bytes": str(quota.bytes),
            },
        )
    return None


def _sizes(folder: Path) -> dict[str, int]:
    """Blocks in use by each file of a folder that only we write to."""
    sizes = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not is_upload(entry.name):
                    continue
                try:
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                except FileNotFoundError:
                    continue
    except FileNotFoundError:
        pass
    return sizes
