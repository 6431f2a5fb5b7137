"""What one sandbox's /mnt/files was found to hold, and what follows: a word to the host first, the end only later."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from workbench.contracts.engine import OverQuota
from workbench.model.mounts import Quota
from workbench.model.tier import Tier

_MIB = 1024 * 1024
# An upload that the quota just had room for takes a little more of the disk: its last block, and what the file system
# needs to find all of them.
_ROUNDING_SHARE, _ROUNDING_BYTES = 1024, 64 * 1024
# Beyond the quota by this much, who writes on is ended: a tenth, which at a gigabyte a second is the time in which what
# runs comes to its end after it was interrupted, and never less than what a few writes can have been before anyone
# looked.
_MARGIN_SHARE, _MARGIN_BYTES, _MARGIN_FILES = 10, 64 * _MIB, 1000
# Beyond it by this much it ends though nothing more is written: as much again, and never less than two margins.
_LIMIT_BYTES, _LIMIT_FILES = 2 * _MARGIN_BYTES, 2 * _MARGIN_FILES
# What runs is interrupted again, or ended, only when it has added as much as this: who deletes may write a little
# meanwhile.
_STEP_SHARE, _STEP_BYTES, _STEP_FILES = 20, 64 * _MIB, 1000
# Files that are over are looked at whenever it is time, but for no more than a fifth of the time.
_PAUSE_SHARE = 4
_CLOSED = "disk full: /mnt/files cannot be measured, as parts of it stay closed to the host"


class Held(NamedTuple):
    """What was found."""

    bytes: int
    files: int
    complete: bool = True
    """False if a part of it could not be seen"""


class FilesQuota:
    """Of one sandbox, for its life. `left` is what one before it left beyond the bound, if that is known.

    Its bounds count from there then, as it could not be tidied up by code otherwise; and no later one gets more.
    """

    def __init__(self, left: Held | None = None) -> None:
        self.looking = asyncio.Lock()
        """one look at a time, so that an older one cannot come after a newer"""
        self.next_look: asyncio.Task[str] | None = None
        """one that has not begun, for all who want to know what is there from now on"""
        self.over: OverQuota | None = None
        """as last seen"""
        self.is_far = False
        """the next look ends it, if that finds as much"""
        self._left = left
        self._at_first = Held(0, 0)
        """or the least since"""
        self._is_unseen = False
        self._lowest = Held(0, 0)
        """since the host was last told"""
        self._beyond: Held | None = None
        """the least since it was first seen beyond the bound"""
        self._must_look = False
        self._was_unmeasured = False
        self._next_look_at = 0.0
        self._told = asyncio.Event()
        self._last_told: OverQuota | None = None

    def begin(self, held: Held | None, tier: Tier) -> None:
        """With what is there before anything runs: nobody's doing, so nobody is interrupted or ended for it.

        None if that is not known: then the first look is taken for it, except that it is no leave to hold so much.
        """
        if held is None:
            self._is_unseen = True
            return
        self._at_first = held
        is_beyond = _is_more(held, _with_margin(_quota(tier), tier))
        self._left = _least(self._left or held, held) if is_beyond else None
        self._note(held, tier, quietly=True)
        self._beyond = held if _is_more(held, self._bound(tier)) else None

    def wants_look(self, now: float) -> bool:
        """Whatever the disk says."""
        is_due = self.over is not None and now >= self._next_look_at
        return self._is_unseen or self._was_unmeasured or self._must_look or is_due

    def most_files(self, tier: Tier) -> int:
        """Beyond which nobody need count."""
        return max(self._limit(tier).files, self._at_first.files)

    def leaves(self, held: Held, tier: Tier) -> Held | None:
        """What the next sandbox on the same files is told that this one left, if it is beyond the bound."""
        is_beyond = _is_more(held, _with_margin(_quota(tier), tier))
        return (self._left or held) if is_beyond else None

    def _base(self, tier: Tier) -> Held:
        quota = _quota(tier)
        left = self._left or quota
        return Held(max(quota.bytes, left.bytes), max(quota.files, left.files))

    def _bound(self, tier: Tier) -> Held:
        return _with_margin(self._base(tier), tier)

    def _limit(self, tier: Tier) -> Held:
        base = self._base(tier)
        return Held(base.bytes + max(tier.files_bytes, _LIMIT_BYTES), base.files + max(tier.files_inodes, _LIMIT_FILES))

    def found(self, held: Held, tier: Tier, *, at: float, took_s: float) -> str:
        """Take note of it, and tell the host if that is due; why the sandbox must end, or nothing."""
        self._next_look_at = at + _PAUSE_SHARE * took_s
        again, self._was_unmeasured = self._was_unmeasured, not held.complete
        if again and not held.complete:
            # BARRIER: what is hidden from the count by `chmod 0` may be anything; held by the proof's row
            # `files-fill-closed`. Once may be a folder that was just being moved.
            return _CLOSED
        unseen, self._is_unseen = self._is_unseen, False
        self._note(held, tier, quietly=unseen)
        return self._must_end(held, tier)

    def _note(self, held: Held, tier: Tier, *, quietly: bool) -> None:
        rounding = max(tier.files_bytes // _ROUNDING_SHARE, _ROUNDING_BYTES)
        if not _is_more(held, Held(tier.files_bytes + rounding, tier.files_inodes)):
            self.over = None
            return
        first, lowest = self.over is None, self._lowest
        quota = Quota(bytes=tier.files_bytes, files=tier.files_inodes)
        self.over = OverQuota(bytes=held.bytes, files=held.files, quota=quota)
        if quietly:
            self._lowest = held
        elif first or _has_grown(held, lowest, tier):
            self._lowest, self._last_told = held, self.over
            self._told.set()
        else:
            self._lowest = _least(lowest, held)

    def _must_end(self, held: Held, tier: Tier) -> str:
        """BARRIER: who is interrupted and writes on, or writes in the background, comes to its end; held by the proof's
        rows `files-fill` and tests/unit/engines/namespace/test_quota.py.
        """
        bound, limit, at_first = self._bound(tier), self._limit(tier), self._at_first
        self._at_first = _least(at_first, held)
        if self._left is not None:
            self._left = _least(self._left, held)
        if not _is_more(held, bound):
            self._beyond, self._must_look, self.is_far = None, False, False
            return ""
        before = self._beyond
        self._beyond = _least(before or held, held)
        self.is_far = _is_more(held, limit) and _is_more(held, at_first)
        # Only at the second look: what was interrupted at the first may take back what it wrote. And not while nothing
        # is added, unless it is far too much: who was told to delete files needs the time to do so.
        must_end = before is not None and (self.is_far or _has_grown(held, before, tier))
        self._must_look = must_end or before is None
        if not must_end:
            return ""
        if held.files > bound.files:
            return f"disk full: /mnt/files holds more than {bound.files} of {tier.files_inodes} files"
        return f"disk full: /mnt/files holds {held.bytes} of {tier.files_bytes} bytes"

    async def wait(self) -> OverQuota:
        """The next time that the host is told; what came before anyone waited is told at once."""
        await self._told.wait()
        self._told.clear()
        assert self._last_told is not None
        return self._last_told


def _quota(tier: Tier) -> Held:
    return Held(tier.files_bytes, tier.files_inodes)


def _with_margin(held: Held, tier: Tier) -> Held:
    more_bytes = max(tier.files_bytes // _MARGIN_SHARE, _MARGIN_BYTES)
    more_files = max(tier.files_inodes // _MARGIN_SHARE, _MARGIN_FILES)
    return Held(held.bytes + more_bytes, held.files + more_files)


def _has_grown(held: Held, since: Held, tier: Tier) -> bool:
    return held.bytes >= since.bytes + max(tier.files_bytes // _STEP_SHARE, _STEP_BYTES) or (
        held.files >= since.files + max(tier.files_inodes // _STEP_SHARE, _STEP_FILES)
    )


def _is_more(held: Held, than: Held) -> bool:
    return held.bytes > than.bytes or held.files > than.files


def _least(one: Held, other: Held) -> Held:
    return Held(min(one.bytes, other.bytes), min(one.files, other.files))
