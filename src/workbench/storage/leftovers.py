"""What uploads leave behind that came to no end: of those that nobody can come back to, nothing; of others, what came.

A server that is killed closes no file and gives back no reservation. Whoever holds an upload has a lock on it, which
goes with its process; so who gets the lock knows that nobody is at work on it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import QuotaExceeded
from workbench.model.mounts import INSIDE
from workbench.storage.holding import take_staged

ONCE = "once-"
"""how uploads are called that are made in one go, and can never be gone on with"""
_BLOCK = 512
# An upload that is just being opened has no lock yet.
_SETTLED_S = 5.0
# Of one mount, with the lines that are kept of them; each costs an inode that no quota counts.
MOST_STAGED = 1000
# What is known of an upload that is done is asked for by who lost its answer, and that is soon.
_DONE_S = 3600.0


def clear(folder: Path, busy: set[str]) -> None:
    """Drop what nobody can go on with, and give back what was reserved for the rest; `busy` are at work here."""
    before = time.time() - _SETTLED_S
    for entry in _entries(folder):
        if entry.name in busy or "." in entry.name:
            continue
        with contextlib.suppress(OSError):
            found = entry.stat(follow_symlinks=False)
            is_once = entry.name.startswith(ONCE)
            if found.st_mtime < before and (is_once or found.st_blocks * _BLOCK > found.st_size + 2**20):
                _let_go(Path(entry.path), drop=is_once)


def _let_go(staged: Path, *, drop: bool) -> None:
    held = os.open(staged, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if take_staged(staged, held):
            if drop:
                staged.unlink()
            else:
                os.ftruncate(held, os.fstat(held).st_size)
    finally:
        os.close(held)


def check_count(folder: Path) -> None:
    """Raises: QuotaExceeded if a mount has too many uploads that came to no end."""
    names = {entry.name: entry for entry in _entries(folder)}
    if len(names) < MOST_STAGED:
        return
    gone, before = 0, time.time() - _DONE_S
    for name, entry in names.items():
        upload, dot, _ = name.partition(".")
        if dot and upload not in names:
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    os.unlink(entry.path)
                    gone += 1
    # BARRIER: each is a file of the machine's that no quota counts; held by tests/unit/storage/test_leftovers.py.
    if len(names) - gone >= MOST_STAGED:
        raise QuotaExceeded(
            f"{len(names) - gone} uploads to {INSIDE} were begun and came to no end, and {MOST_STAGED} may be: finish "
            "some, or end them by DELETE on their links",
            {"uploads": str(len(names) - gone), "most_uploads": str(MOST_STAGED)},
        )


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from entries
