"""Trees that a guest made on the host's disk: measured, handed over and removed, whatever their shape.

A guest may nest folders deeper than Python recurses and than a path is long, close them by `chmod 0`, and rename
them while they are looked at. So every step is taken by name from an open folder, links are never followed, and one
folder is open at a time: back up leads "..", which counts only if it is the folder that the walk came from.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 512
# A pass ends early only where something was renamed during it, which nobody does who is dead.
_PASSES = 8


@dataclass(frozen=True, slots=True)
class TreeSize:
    """What lies below a folder."""

    bytes: int
    """blocks in use; a file with several names counts once"""
    entries: int
    complete: bool
    """False if a part could not be read, or the counting stopped early"""


def measure_tree(path: Path, *, most_entries: int | None = None) -> TreeSize:
    """The size of what lies below `path`, which itself is not counted; 0 if there is no such folder.

    Counting stops above `most_entries`: a guest that is still running could make folders faster than they are counted.
    """
    total, entries, linked = 0, 0, set[tuple[int, int]]()
    walk = _Walk(path)
    for step in walk:
        if step.entry is None:
            continue
        try:
            found = step.entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError:
            walk.complete = False
            entries += 1
            continue
        entries += 1
        inode = (found.st_dev, found.st_ino)
        if inode not in linked:
            total += found.st_blocks * _BLOCK
        if found.st_nlink > 1 and not step.is_folder:
            linked.add(inode)
        if most_entries is not None and entries > most_entries:
            walk.complete = False
            break
    return TreeSize(total, entries, walk.complete)


def own_tree(path: Path, uid: int, gid: int) -> bool:
    """Give `path` and all below to `uid` and `gid`; whether nothing was left out.

    The top comes last, and only if all below was: its owner tells whether this is done.
    """
    for _ in range(_PASSES):
        if _own_below(path, uid, gid):
            os.chown(path, uid, gid, follow_symlinks=False)
            return True
    return False


def _own_below(path: Path, uid: int, gid: int) -> bool:
    walk = _Walk(path)
    for step in walk:
        if step.entry is None:
            continue
        try:
            os.chown(step.name, uid, gid, dir_fd=step.folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError:
            walk.complete = False
    return walk.complete


def remove_tree(path: Path) -> bool:
    """Remove `path`, be it a folder, a file or a link; whether it is gone. Never raises for what a guest can do."""
    for _ in range(_PASSES):
        try:
            _remove_in(path)
        except OSError:
            continue
        if not os.path.lexists(path):
            return True
    return not os.path.lexists(path)


def _remove_in(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for step in _Walk(path, unlock=True):
        with contextlib.suppress(OSError):  # the folder around it stays then, and with it the top
            if step.entry is None:
                os.rmdir(step.name, dir_fd=step.folder)
            elif not step.is_folder:
                os.unlink(step.name, dir_fd=step.folder)
    path.rmdir()


class Removed(NamedTuple):
    """What is no more."""

    files: int
    """and links, devices and so on: what is no folder"""
    folders: int
    bytes: int
    """blocks of files that had no other name"""


def remove_beneath(folder: int, name: str, *, within_s: float = 60.0) -> Removed:
    """Remove a folder with all in it, right below an open one.

    Raises:
        OSError: it is still there: a part cannot be removed, or is made anew all the time; ENOTDIR if it is no folder
            any more, ETIMEDOUT if it takes too long.
    """
    files, folders, size, give_up = 0, 0, 0, time.monotonic() + within_s
    for _ in range(_PASSES):
        for step in _Walk(name, folder, unlock=True):
            if time.monotonic() > give_up:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), name)
            with contextlib.suppress(OSError):
                if step.entry is None:
                    os.rmdir(step.name, dir_fd=step.folder)
                    folders += 1
                elif not step.is_folder:
                    found = step.entry.stat(follow_symlinks=False)
                    os.unlink(step.name, dir_fd=step.folder)
                    files += 1
                    size += found.st_blocks * _BLOCK if found.st_nlink == 1 else 0
        try:
            os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            return Removed(files, folders, size)
        except OSError as problem:
            left = problem
            if problem.errno == errno.ENOTDIR:
                break
        else:
            return Removed(files, folders + 1, size)
    raise left


class _Step(NamedTuple):
    """Something in the open folder."""

    folder: int
    """its descriptor, good until the next step"""
    name: str
    is_folder: bool
    entry: os.DirEntry[str] | None
    """None for a folder that the walk comes back from"""


@dataclass(slots=True)
class _Level:
    name: str
    identity: tuple[int, int]
    folders: list[str] = field(default_factory=list)
    listed: bool = False


class _Walk:
    """Yields each entry below `top` once before what is in it, and each folder a second time after."""

    def __init__(self, top: Path | str, within: int | None = None, *, unlock: bool = False) -> None:
        self.complete = True
        self._top = top
        self._within = within
        self._unlock = unlock
        self._folder = -1

    def __iter__(self) -> Iterator[_Step]:
        try:
            if self._open(os.fspath(self._top), self._within):
                yield from self._below()
        finally:
            self._move_to(-1)

    def _below(self) -> Iterator[_Step]:
        levels = [_Level("", _identity(self._folder))]
        while True:
            level = levels[-1]
            if not level.listed:
                level.listed = True
                yield from self._entries(level)
            if level.folders:
                name = level.folders.pop()
                if self._open(name, self._folder):
                    levels.append(_Level(name, _identity(self._folder)))
                else:
                    yield _Step(self._folder, name, True, None)
                continue
            levels.pop()
            if not levels or not self._back_to(levels[-1]):
                return
            yield _Step(self._folder, level.name, True, None)

    def _entries(self, level: _Level) -> Iterator[_Step]:
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder:
                        level.folders.append(entry.name)
                    yield _Step(self._folder, entry.name, is_folder, entry)
        except OSError:
            self.complete = False

    def _open(self, name: str, folder: int | None) -> bool:
        """Go into `name`; False if it is no folder any more, or a closed one."""
        try:
            opened = _open_closed(name, folder) if self._unlock else os.open(name, _FOLDER, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            self.complete = False
            return False
        try:
            os.stat(".", dir_fd=opened)  # may be listed, but not walked: there would be no way back
        except OSError:
            os.close(opened)
            self.complete = False
            return False
        self._move_to(opened)
        return True

    def _back_to(self, level: _Level) -> bool:
        try:
            above = os.open("..", _FOLDER, dir_fd=self._folder)
        except OSError:
            self.complete = False
            return False
        if _identity(above) != level.identity:
            os.close(above)
            self.complete = False
            return False
        self._move_to(above)
        return True

    def _move_to(self, folder: int) -> None:
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = folder


def _open_closed(name: str, folder: int | None) -> int:
    """A folder, with its owner's rights restored: what an ordinary user's guest closed, its host may open."""
    handle = os.open(name, _FOLDER | os.O_PATH, dir_fd=folder)
    try:
        mode = os.fstat(handle).st_mode
        reopen = f"/proc/self/fd/{handle}"  # the very folder, whatever its name leads to by now
        if mode & 0o700 != 0o700:
            os.chmod(reopen, 0o700)
        return os.open(reopen, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino
