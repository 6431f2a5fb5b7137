"""The lock that says who writes to an upload: held by its descriptor, so it goes with its process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from workbench.errors import Conflict
from workbench.storage.refusals import unwritten

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
# Each time someone else has to put the upload of the same name in its place between two of our steps.
_TRIES = 100


def open_staged(staged: Path) -> int:
    """A descriptor that holds it for one writer.

    Raises:
        Conflict: another has it.
        StoreUnavailable: the disk is full, or cannot be written.
    """
    for _ in range(_TRIES):
        try:
            staged.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            held = os.open(staged, _OPEN, 0o600)
        except FileNotFoundError:
            continue  # its folder was empty until now, and removed between our two steps
        except OSError as problem:
            raise unwritten(problem, staged.name) from problem
        if take_staged(staged, held):
            return held
        is_another = not is_still(staged, held)
        os.close(held)
        if not is_another:
            break
    raise Conflict("this upload is being written by another connection just now; wait for its end")


def take_staged(staged: Path, held: int) -> bool:
    """Hold an open one for oneself; False if another has it, or it is not the upload of its name any more."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return is_still(staged, held)


def is_still(path: Path, held: int) -> bool:
    """Whether what is open has that name."""
    try:
        return os.path.samestat(os.fstat(held), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
