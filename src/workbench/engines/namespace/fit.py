"""Whether the files that a sandbox keeps in memory fit into another tier."""

from __future__ import annotations

import os

from workbench.errors import QuotaExceeded
from workbench.model.tier import Tier

_MIB = 2**20


def check_fit(scratch: int, shm: int, tier: Tier) -> None:
    """By descriptors of the two folders.

    Raises:
        QuotaExceeded: they hold more than `tier` has; with both numbers.
    """
    _check("/home/user and /tmp hold", scratch, tier.scratch_bytes, tier)
    _check("/dev/shm holds", shm, tier.shm_bytes, tier)


def _check(subject: str, folder: int, limit_bytes: int, tier: Tier) -> None:
    space = os.statvfs(folder)
    used = (space.f_blocks - space.f_bfree) * space.f_frsize
    if used > limit_bytes:
        raise QuotaExceeded(
            f"{subject} {used / _MIB:.0f} MiB and tier {tier.name} has {limit_bytes / _MIB:.0f} MiB for that: "
            "remove some files first",
            {"used_bytes": str(used), "limit_bytes": str(limit_bytes)},
        )
    files = space.f_files - space.f_ffree
    if files > tier.scratch_inodes:
        raise QuotaExceeded(
            f"{subject} {files} files and tier {tier.name} has {tier.scratch_inodes} for that: remove some first",
            {"used_files": str(files), "limit_files": str(tier.scratch_inodes)},
        )
