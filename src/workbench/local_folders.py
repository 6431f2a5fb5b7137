"""Which files of a folder are sent when it is: those of whoever sends it, and nothing that links lead to."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Below:
    """A file below a folder."""

    local: Path
    path: str
    """from the folder, with slashes"""
    size: int


def files_below(top: Path) -> tuple[list[Below], int]:
    """Every file, by path, and how much was left out: links, which may lead to what nobody meant to give away, and
    what else is no file.

    Raises:
        OSError: it cannot be read.
    """
    found: list[Below] = []
    left_out = 0
    for within, folders, names in os.walk(top, onerror=_raise):
        folders.sort()
        left_out += sum((Path(within) / one).is_symlink() for one in folders)
        for name in sorted(names):
            local = Path(within) / name
            looked_at = local.lstat()
            if stat.S_ISREG(looked_at.st_mode):
                found.append(Below(local, local.relative_to(top).as_posix(), looked_at.st_size))
            else:
                left_out += 1
    return found, left_out


def _raise(problem: OSError) -> None:
    raise problem
