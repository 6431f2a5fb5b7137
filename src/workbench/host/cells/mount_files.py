"""Files that the host itself puts into a session's mount, where a hostile guest is at home.

Reading and listing for callers is left to the file operations of a later day; they start from here.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.guest_trees import measure_tree

INSIDE = "/mnt/files"
# An agent reads, changes and deletes them as its own.
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_RESOLVE = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
# The kernel gives up on a lookup during which something was renamed; who renames without end gets no file.
_LOOKUPS = 16
_FULL = "/mnt/files is full: delete what is not needed there, or print less"


class MountRefused(Exception):
    """The file cannot be there; the message is for the agent."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)


def open_beneath(folder: int, name: str, flags: int, mode: int = 0) -> int:
    """A descriptor of something right in the folder; no link is followed on the way or at its end.

    Raises:
        OSError: as from open; ELOOP for a link, EXDEV for a way out.
    """
    # BARRIER: a link in the mount would make the host, which may be root, write where its maker cannot; held by
    # tests/security/test_mount_links.py.
    if "/" in name or name in ("", ".", ".."):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    how = _How(flags, mode, _RESOLVE)
    for _ in range(_LOOKUPS):
        opened = _libc.syscall(
            _OPENAT2, ctypes.c_int(folder), os.fsencode(name), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
        )
        if opened >= 0:
            return int(opened)
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            # Linux before 5.6, or a filter around us that does not know the call. For one name this is the same.
            return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=folder)
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), name)


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
                descriptor = _folder(top, name, owner)
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


def _folder(top: int, name: str, owner: tuple[int, int] | None) -> int:
    try:
        os.mkdir(name, _FOLDER_MODE, dir_fd=top)
    except FileExistsError:
        return open_beneath(top, name, _FOLDER)
    descriptor = open_beneath(top, name, _FOLDER)
    try:
        os.fchmod(descriptor, _FOLDER_MODE)
        if owner is not None:
            os.fchown(descriptor, *owner)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


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
