"""Files that the host itself puts into a session's mount, where a hostile guest is at home.

What callers put there or read is the store's (`storage/disk.py`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.guest_files import make_folder, open_beneath
from workbench.guest_trees import measure_tree

INSIDE = "/mnt/files"
# An agent reads, changes and deletes them as its own.
_FILE_MODE = 0o644
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FULL = "/mnt/files is full: delete what is not needed there, or print less"


class MountRefused(Exception):
    """The file cannot be there; the message is for the agent."""


@dataclass(slots=True)
class Room:
    """What may still be written into a mount."""

    bytes: int


class NewFile:
    """One that did not exist before. Owned by who created it: kept or discarded, then closed."""

    def __init__(self, folder: int, name: str, file: int, room: Room) -> None:
        self._folder = folder
        self._name = name
        self._file = file
        self._room = room

    def write(self, data: bytes) -> None:
        """All of it.

        Raises:
            MountRefused: there is no room for it.
        """
        if len(data) > self._room.bytes:
            raise MountRefused(_FULL)
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as problem:
            raise MountRefused(_words(problem, self._name)) from problem
        self._room.bytes -= len(data)

    def discard(self) -> None:
        """Remove it, if what is there under its name is still ours."""
        try:
            found = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
            if os.path.samestat(found, os.fstat(self._file)):
                os.unlink(self._name, dir_fd=self._folder)
        except OSError:
            return

    def close(self) -> None:
        """Once."""
        os.close(self._file)


class MountFolder:
    """A folder right below /mnt/files, held open."""

    def __init__(self, descriptor: int, inside: str, owner: tuple[int, int] | None, room: Room) -> None:
        self._descriptor = descriptor
        self._owner = owner
        self._room = room
        self.inside = inside

    def create(self, name: str) -> NewFile:
        """A new, empty file.

        Raises:
            MountRefused: something is in the way, or there is no room.
        """
        try:
            file = open_beneath(self._descriptor, name, _NEW_FILE, _FILE_MODE)
        except OSError as problem:
            raise MountRefused(_words(problem, f"{self.inside}/{name}")) from problem
        try:
            os.fchmod(file, _FILE_MODE)
            if self._owner is not None:
                os.fchown(file, *self._owner)
        except OSError as problem:
            os.close(file)
            raise MountRefused(_words(problem, f"{self.inside}/{name}")) from problem
        return NewFile(self._descriptor, name, file, self._room)


@dataclass(frozen=True, slots=True)
class Mount:
    """A session's files as the host sees them."""

    path: Path
    most_bytes: int
    most_entries: int

    @contextmanager
    def folder(self, name: str) -> Iterator[MountFolder]:
        """The folder of that name right below the top, made if it is missing. For a thread.

        Raises:
            MountRefused: something else is in the way, or there is no room.
        """
        room = self._room()
        inside = f"{INSIDE}/{name}"
        try:
            top = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as problem:
            raise MountRefused(_words(problem, INSIDE)) from problem
        try:
            # What belongs to the sandbox's user on disk is what the top belongs to, however the engine shows it.
            found = os.fstat(top)
            owner = (found.st_uid, found.st_gid) if os.geteuid() == 0 else None
            try:
                descriptor = make_folder(top, name, owner)
            except OSError as problem:
                raise MountRefused(_words(problem, inside)) from problem
            try:
                yield MountFolder(descriptor, inside, owner, room)
            finally:
                os.close(descriptor)
        finally:
            os.close(top)

    def _room(self) -> Room:
        """Files over the tier's size end the sandbox, which no output of ours may do."""
        size = measure_tree(self.path, most_entries=self.most_entries)
        if size.bytes >= self.most_bytes or size.entries + _ENTRIES_OF_OURS > self.most_entries:
            raise MountRefused(_FULL)
        return Room(self.most_bytes - size.bytes)


# The folder, and at most four files in it.
_ENTRIES_OF_OURS = 5


def _words(problem: OSError, inside: str) -> str:
    match problem.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return _FULL
        case errno.EEXIST:
            return f"{inside} exists already"
        case errno.ENOTDIR:
            return f"{inside} is not a folder: remove what is there"
        case errno.ELOOP:
            return f"{inside} is a link, which is not followed: remove it"
        case _:
            return f"{inside} cannot be written: {problem.strerror}"
