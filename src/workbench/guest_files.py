"""Files in a folder where a hostile guest is at home: opened and made without ever following what it put there."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat

_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_RESOLVE = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
# The kernel gives up on a lookup during which something was renamed; who renames without end gets no file.
_LOOKUPS = 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_MODE = 0o755
# Makers of folders that a guest removes as fast as they are made.
_TRIES = 8


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)


class NotAFile(OSError):
    """A folder, a link, a device, a FIFO or a socket; `what` names it."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(errno.EINVAL, f"{what}, not a file", path)
        self.what = what


def open_beneath(folder: int, path: str, flags: int, mode: int = 0) -> int:
    """A descriptor of something below the folder; no link is followed on the way or at its end.

    Raises:
        OSError: as from open; ELOOP for a link, EXDEV for a way out, EAGAIN if it is moved about all the time.
    """
    # BARRIER: a link in the mount would make the host, which may be root, read and write where its maker cannot; held
    # by tests/security/test_mount_links.py and tests/security/test_mount_races.py.
    steps = path.split("/")
    if any(step in ("", ".", "..") for step in steps):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    if "\0" in path:
        # What is behind it would be cut off, and something else be opened.
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    # A link at the end of what must be a folder is "no folder" for the one flag, and called a link by the other.
    how = _How(flags & ~os.O_NOFOLLOW if flags & os.O_DIRECTORY else flags, mode, _RESOLVE)
    for _ in range(_LOOKUPS):
        opened = _libc.syscall(
            _OPENAT2, ctypes.c_int(folder), os.fsencode(path), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
        )
        if opened >= 0:
            return int(opened)
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            # Linux before 5.6, or a filter around us that does not know the call.
            return _open_step_by_step(folder, steps, flags, mode)
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)


def _open_step_by_step(folder: int, steps: list[str], flags: int, mode: int) -> int:
    """The same for one name at a time, each from the folder before it: also this follows no link, and enters no mount
    of another disk.
    """
    held, disk = -1, os.fstat(folder).st_dev
    try:
        for step in steps[:-1]:
            below = _open_step(held if held >= 0 else folder, step, _STEP, 0, disk)
            if held >= 0:
                os.close(held)
            held = below
        return _open_step(held if held >= 0 else folder, steps[-1], flags | os.O_NOFOLLOW, mode, disk)
    finally:
        if held >= 0:
            os.close(held)


def _open_step(folder: int, name: str, flags: int, mode: int, disk: int) -> int:
    try:
        opened = os.open(name, flags, mode, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
    if os.fstat(opened).st_dev != disk:
        os.close(opened)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    return opened


def open_file(folder: int, path: str) -> int:
    """A regular file, for reading.

    Raises:
        NotAFile: it is something else, which is not opened.
        OSError: as from `open_beneath`; EAGAIN also if the guest holds a lease on it.
    """
    # What it is comes first: opening a FIFO wakes who waits at its other end.
    handle = open_beneath(folder, path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise NotAFile(path, kind_of(mode))
        # The very file, whatever its name leads to by now; without waiting for whoever holds it by a lease.
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(handle)


def open_folder(folder: int, path: str) -> int:
    """A folder, for listing and for names in it; `path` may be empty for a second descriptor of the same.

    Raises:
        OSError: as from `open_beneath`; ENOTDIR if it is something else.
    """
    if not path:
        return os.open(".", _FOLDER, dir_fd=folder)
    return open_beneath(folder, path, _FOLDER)


def missing_beneath(top: int, path: str) -> int:
    """How many names of the path are not there, the last one included; what is there but no folder counts as there."""
    steps = path.split("/")
    held = open_folder(top, "")
    try:
        for number, step in enumerate(steps):
            try:
                below = open_beneath(held, step, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                return len(steps) - number
            except OSError:
                return 0
            os.close(held)
            held = below
    finally:
        os.close(held)
    return 0


def make_folders(top: int, path: str, owner: tuple[int, int] | None) -> int:
    """The folder at that path, with all on the way to it made that is missing, for the owner if one is given; those
    are there after a crash of the machine as well.

    Raises:
        OSError: something else is in the way, or there is no room.
    """
    held = open_folder(top, "")
    try:
        for step in path.split("/") if path else ():
            try:
                below = open_beneath(held, step, _FOLDER)
            except FileNotFoundError:
                below = make_folder(held, step, owner)
                os.fsync(held)
            os.close(held)
            held = below
    except OSError:
        os.close(held)
        raise
    return held


def make_folder(folder: int, name: str, owner: tuple[int, int] | None) -> int:
    """One folder right below, opened; made if it is missing.

    Raises:
        OSError: something else is in the way, or there is no room.
    """
    for _ in range(_TRIES):
        try:
            return open_beneath(folder, name, _FOLDER)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, _FOLDER_MODE, dir_fd=folder)
                _give(folder, name, owner)
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), name)


def _give(folder: int, name: str, owner: tuple[int, int] | None) -> None:
    try:
        made = open_beneath(folder, name, _FOLDER)
    except OSError:
        return  # what is there now was not made by us
    try:
        os.fchmod(made, _FOLDER_MODE)
        if owner is not None:
            os.fchown(made, *owner)
    finally:
        os.close(made)


def kind_of(mode: int) -> str:
    """What has this mode, in words."""
    for test, words in (
        (stat.S_ISREG, "a file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return words
    return "a device"
