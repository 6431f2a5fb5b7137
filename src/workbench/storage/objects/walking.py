"""What lies in a mount beside what the object store has of it: both in the order of paths, one step at a time."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from workbench.guest_files import open_folder
from workbench.storage.objects.manifest import Kept, Mark

# The clock of a last change goes on in steps: what comes within one step of it does not show.
CLOCK_STEP_S = 0.02
_BLOCK = 512


class Found(NamedTuple):
    """A regular file, or a folder that could not be looked into."""

    path: bytes
    """with a slash at its end for a folder"""
    mark: Mark | None
    """None for a folder"""
    holes: int = 0
    """how many of its bytes no disk holds"""


class What(Enum):
    """What is to be done about a path."""

    SEND = auto()
    DROP = auto()
    UNREAD = auto()
    """nothing can be said about what is in this folder"""
    BEYOND = auto()
    """more of it is holes than is sent of a mount"""


class Change(NamedTuple):
    """A difference."""

    what: What
    path: bytes
    mark: Mark | None = None
    """of the file here; of one that is gone, as it was"""
    missed: int = 0
    """as the manifest has it"""


@dataclass(slots=True)
class _Level:
    path: bytes
    keys: list[bytes]
    """of its entries, last first; folders with a slash at their ends"""


class Walk:
    """All regular files below an open folder, whoever changes it meanwhile. Links are not followed, and what is no file
    is passed over. Holds the names of the folders that it is in, and one folder open.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._opened = -1
        self._opened_path: bytes | None = None
        self._state = hashlib.blake2b()
        self.is_disturbed = False
        """something was changed under it, or so shortly before that another change would not show"""

    @property
    def state(self) -> bytes:
        """Of all folders: if two undisturbed walks end with the same, nothing was made, moved or deleted in any folder
        from the first's look at it to the end of the second's, so nothing that exists has escaped the second.
        """
        return self._state.digest()

    def __iter__(self) -> Iterator[Found]:
        try:
            yield from self._files()
        finally:
            self._close()

    def _files(self) -> Iterator[Found]:
        levels = [_Level(b"", [b"/"])]
        while levels:
            level = levels[-1]
            if not level.keys:
                levels.pop()
                continue
            key = level.keys.pop()
            path = b"" if key == b"/" else level.path + key
            if key.endswith(b"/"):
                keys = self._keys(path)
                if keys is None:
                    yield Found(path, None)
                else:
                    levels.append(_Level(path, keys))
            elif (found := self._stat(level.path, key)) is not None:
                yield Found(path, Mark.of(found), holes_of(found))

    def _keys(self, folder: bytes) -> list[bytes] | None:
        """None if it is there and cannot be read."""
        try:
            self._open(folder)
            with os.scandir(self._opened) as entries:
                keys = [
                    os.fsencode(entry.name) + (b"/" if entry.is_dir(follow_symlinks=False) else b"")
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
                ]
            # Afterwards: what is moved while it is listed may be in the list under neither name.
            self._note(folder, os.fstat(self._opened))
        except (FileNotFoundError, NotADirectoryError):
            self.is_disturbed = True
            return []
        except OSError:
            return None
        keys.sort(reverse=True)
        return keys

    def _note(self, folder: bytes, found: os.stat_result) -> None:
        self._state.update(b"%s\0%d %d\n" % (folder, found.st_ino, found.st_ctime_ns))
        if 0 <= time.time() - found.st_ctime_ns / 1e9 < CLOCK_STEP_S:
            self.is_disturbed = True

    def _stat(self, folder: bytes, name: bytes) -> os.stat_result | None:
        try:
            self._open(folder)
            found = os.stat(name, dir_fd=self._opened, follow_symlinks=False)
        except OSError:
            found = None
        if found is None or not stat.S_ISREG(found.st_mode):
            # It was a file when the folder was listed.
            self.is_disturbed = True
            return None
        return found

    def _open(self, folder: bytes) -> None:
        if folder == self._opened_path:
            return
        self._close()
        self._opened = open_folder(self._top, os.fsdecode(folder.removesuffix(b"/")))
        self._opened_path = folder

    def _close(self) -> None:
        if self._opened >= 0:
            os.close(self._opened)
        self._opened, self._opened_path = -1, None


def holes_of(found: os.stat_result) -> int:
    """How many bytes of a file no disk holds."""
    return max(found.st_size - found.st_blocks * _BLOCK, 0)


def changes(found: Iterable[Found], kept: Iterable[Kept], *, most_holes: int) -> Iterator[Change]:
    """What has to be done for the object store to have what was found. An object that this folder never had as a file
    is left alone: that it is not here says nothing.
    """
    remaining = iter(kept)
    there = next(remaining, None)
    holes = 0
    for here in found:
        while there is not None and there.path < here.path:
            yield from _gone(there)
            there = next(remaining, None)
        if here.mark is None:
            # Not gone because we cannot see it: all that was in it stays.
            while there is not None and there.path.startswith(here.path):
                there = next(remaining, None)
            yield Change(What.UNREAD, here.path)
            continue
        known = None
        if there is not None and there.path == here.path:
            known = there.mark
            there = next(remaining, None)
        if known == here.mark or holes + here.holes <= most_holes:
            holes += here.holes
            if known != here.mark:
                yield Change(What.SEND, here.path, here.mark)
        else:
            yield Change(What.BEYOND, here.path, here.mark)
    while there is not None:
        yield from _gone(there)
        there = next(remaining, None)


def _gone(there: Kept) -> Iterator[Change]:
    if there.ours:
        yield Change(What.DROP, there.path, there.mark, there.missed)
