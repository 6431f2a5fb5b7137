"""A line that is kept with an upload, beside what is staged of it."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from workbench.errors import StoreUnavailable

# No upload can be called so.
_ENDING = ".remark"
_MOST = 200
# Each time someone else has to remove the folder, as it is empty, between two of our steps.
_TRIES = 8


def keep_remark(staged: Path, text: str) -> None:
    """In place of the last one, whole or not at all.

    Raises:
        StoreUnavailable: the disk is full, or cannot be written.
    """
    for tries_left in range(_TRIES - 1, -1, -1):
        # Of one's own: two that keep one at once would rename each other's.
        fresh = staged.with_name(f"{staged.name}{_ENDING}.{secrets.token_hex(8)}")
        try:
            staged.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.write_text(text[:_MOST], encoding="utf-8")
            os.replace(fresh, _place(staged))
            return
        except OSError as problem:
            with contextlib.suppress(OSError):
                fresh.unlink()
            if not (tries_left and isinstance(problem, FileNotFoundError)):
                raise StoreUnavailable(f"what is known of an upload cannot be written: {problem.strerror}") from problem


def drop_remark(staged: Path) -> None:
    """If there is one."""
    with contextlib.suppress(FileNotFoundError):
        _place(staged).unlink()


def kept_remark(staged: Path) -> str:
    """Empty if there is none."""
    try:
        return _place(staged).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _place(staged: Path) -> Path:
    return staged.with_name(f"{staged.name}{_ENDING}")
