"""Uploads on their way: kept outside of the mount until they are whole, then put in their place in one step."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from workbench.contracts.mounts import MayReplace
from workbench.errors import Conflict, StoreUnavailable
from workbench.guest_files import make_folders, missing_beneath, open_beneath, open_folder
from workbench.model.mounts import FilePath, MountFile
from workbench.storage.holding import is_still
from workbench.storage.listing import described
from workbench.storage.measuring import Change, Room
from workbench.storage.moving import WriteFailed, moved
from workbench.storage.refusals import on_another_disk, unwritten
from workbench.threads import to_its_end

TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE = 0o644
_KEEP_SIZE = 1
_HERE, _NO_REPLACE = -100, 1
# Guests that make and remove the file all the time.
_TRIES = 8
_START_WRITING = 2
# So much is sent to the disk while more comes, so that the end has little left to wait for.
_FLUSH_BYTES = 16 * 1024 * 1024
_BLOCK, _FOLDER_BYTES = 512, 4096

_libc = ctypes.CDLL(None, use_errno=True)


class Staged:
    """A StagedFile on this disk. Closed by `leave`, when no other method runs."""

    def __init__(self, held: int, staged: Path, mount: Path, room: Room, *, makes_top: bool = True) -> None:
        self._held = held
        self._makes_top = makes_top
        self._staged = staged
        self._mount = mount
        self._room = room
        self._path = room.path
        self._offset = os.fstat(held).st_size
        self._flushed = self._offset

    @property
    def offset(self) -> int:
        """As the contract has it."""
        return self._offset

    @property
    def descriptor(self) -> int:
        """What is there, for who stores it elsewhere as well."""
        return self._held

    def is_there(self) -> bool:
        """Whether it can still be put in its place: it goes with its mount."""
        return self._is_ours()

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """As the contract has it."""
        await to_its_end(lambda: self._write(data))

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        left = memoryview(data).cast("B")
        self._room.need(self._offset + len(left))
        try:
            while left:
                written = os.pwrite(self._held, left, self._offset)
                self._offset += written
                left = left[written:]
        except OSError as problem:
            raise unwritten(problem, self._path) from problem
        self._flush()

    async def take(self, source: int, most: int) -> int:
        """As the contract has it."""
        return await to_its_end(lambda: self._take(source, most))

    def _take(self, source: int, most: int) -> int:
        if most > 0:
            self._room.need(self._offset + 1)
        begin = self._offset
        try:
            for count in moved(source, self._held, begin, min(most, self._room.taken - begin)):
                self._offset += count
        except EOFError:
            if self._offset == begin:
                raise
        except WriteFailed as failed:
            raise unwritten(failed.why, self._path) from failed
        self._flush()
        return self._offset - begin

    def _flush(self) -> None:
        if self._offset - self._flushed >= _FLUSH_BYTES:
            _libc.sync_file_range(
                self._held,
                ctypes.c_int64(self._flushed),
                ctypes.c_int64(self._offset - self._flushed),
                _START_WRITING,
            )
            self._flushed = self._offset

    async def commit(self, may: MayReplace | None = None) -> MountFile:
        """As the contract has it."""
        return await to_its_end(lambda: self._commit(may))

    def _commit(self, may: MayReplace | None) -> MountFile:
        began = time.monotonic()
        try:
            # What takes long comes first; from there on the mount is looked at, and changed, in a moment.
            os.fchmod(self._held, _FILE_MODE)
            written = os.fstat(self._held)
            os.ftruncate(self._held, self._offset)  # gives back what was reserved beyond
            # Which is no change: who stores it elsewhere has told it as it was.
            os.utime(self._held, ns=(written.st_atime_ns, written.st_mtime_ns))
            os.fdatasync(self._held)
            if not self._is_ours():
                raise _removed(self._path)
            change = self._put(began, may)
        except OSError as problem:
            raise unwritten(problem, self._path) from problem
        self._room.measured.changed(self._room.mount, change)
        self._room.measured.release(self._room)
        return described(self._path, os.fstat(self._held))

    def _put(self, began: float, may: MayReplace | None) -> Change:
        folder, _, name = self._path.rpartition("/")
        try:
            top, is_new = open_top(self._mount, make=self._makes_top)
        except StoreUnavailable:
            if self._is_ours():
                raise
            raise _removed(self._path) from None
        try:
            owner = _owner(top)
            if owner is not None:
                os.fchown(self._held, *owner)
            replaced, new_entries = replaced_bytes(top, self._path), missing_beneath(top, self._path)
            within = make_folders(top, folder, owner)
            try:
                with self._room.measured.committing(self._room.mount), self._one_disk():
                    self._rename(within, name, may)
                _make_last(within, self._path)
            except FileNotFoundError:
                if self._is_ours():
                    raise
                # The mount was removed with all that was staged: what we made since would be all there is of it.
                if is_new:
                    _remove_empty(self._mount, folder)
                raise _removed(self._path) from None
            finally:
                os.close(within)
            # Given to another sandbox's user meanwhile, which did not see these.
            if (now := _owner(top)) is not None and now != owner:
                os.fchown(self._held, *now)
                _give_folders(top, folder, now)
        finally:
            os.close(top)
        size = os.fstat(self._held).st_blocks * _BLOCK - replaced + max(new_entries - 1, 0) * _FOLDER_BYTES
        return Change(bytes=size, entries=new_entries, began=began)

    @contextlib.contextmanager
    def _one_disk(self) -> Iterator[None]:
        """For the rename alone: on the way to the folder the same error tells of a guest who moves things about."""
        try:
            yield
        except OSError as problem:
            if problem.errno == errno.EXDEV:
                raise on_another_disk(self._path) from problem
            raise

    def _rename(self, within: int, name: str, may: MayReplace | None) -> None:
        if may is None:
            os.rename(self._staged, name, dst_dir_fd=within)
            return
        for _ in range(_TRIES):
            there = _there(within, name, self._path)
            may(there)
            if there is not None:
                os.rename(self._staged, name, dst_dir_fd=within)
                return
            if _rename_to_nothing(self._staged, within, name):
                return
        raise Conflict(f"{self._path!r} is made and removed all the time: try again", {"path": self._path})

    async def discard(self) -> None:
        """As the contract has it."""
        await to_its_end(self._discard)

    def _discard(self) -> None:
        # Its name may be that of another by now, if this one was put in its place.
        with contextlib.suppress(OSError):
            if self._is_ours():
                self._staged.unlink()

    def leave(self) -> None:
        """Let go of it; what was written stays, and what was kept for more is given back. For a thread."""
        with contextlib.suppress(OSError):
            if self._is_ours():
                os.ftruncate(self._held, self._offset)
        os.close(self._held)
        self._room.measured.release(self._room)

    def _is_ours(self) -> bool:
        return is_still(self._staged, self._held)


def _there(within: int, name: str, path: FilePath) -> MountFile | None:
    try:
        found = os.stat(name, dir_fd=within, follow_symlinks=False)
    except FileNotFoundError:
        return None
    # A folder is no file that could be replaced, and the rename says so.
    return described(path, found)


def _rename_to_nothing(staged: Path, within: int, name: str) -> bool:
    """Whether there was nothing, and now it is there."""
    done = _libc.renameat2(_HERE, os.fsencode(staged), within, os.fsencode(name), ctypes.c_uint(_NO_REPLACE))
    if done == 0:
        return True
    if (number := ctypes.get_errno()) == errno.EEXIST:
        return False
    if number in (errno.EINVAL, errno.ENOSYS):
        # A disk that cannot: then no other call comes in between, but code inside may.
        os.rename(staged, name, dst_dir_fd=within)
        return True
    raise OSError(number, os.strerror(number), name)


def reserve(held: int, size: int, path: str) -> None:
    """Have the blocks now: two that come at once see each other, and a full disk is told before anything is sent.

    Raises:
        StoreUnavailable: the disk has no room for it.
    """
    if size <= 0 or _libc.fallocate(held, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size)) == 0:
        return
    # A disk that cannot reserve tells when it is full, and the rest is what we know by ourselves.
    if (number := ctypes.get_errno()) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        raise unwritten(OSError(number, os.strerror(number)), path)


def open_top(mount: Path, *, make: bool) -> tuple[int, bool]:
    """The folder of a mount; whether it was made for that.

    Raises:
        StoreUnavailable: it cannot be made, or must not: where files are kept elsewhere a new one has none of them.
    """
    try:
        try:
            return os.open(mount, TOP), False
        except FileNotFoundError:
            if not make:
                raise
            mount.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(mount.parent)
            return os.open(mount, TOP), True
    except OSError as problem:
        raise StoreUnavailable(f"the folder {mount} cannot be made or opened: {problem.strerror}") from problem


def sync_folder(folder: Path) -> None:
    """Have names in it outlast a crash of the machine. Raises: OSError."""
    held = os.open(folder, TOP)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def _make_last(within: int, path: str) -> None:
    try:
        os.fsync(within)
    except OSError as problem:
        raise StoreUnavailable(
            f"{path!r} is in its place, but the disk does not say that it lasts ({problem.strerror}): look at the disk",
            {"path": path},
        ) from problem


def replaced_bytes(top: int, path: str) -> int:
    """What a file in its place gives back; one with a second name gives nothing."""
    try:
        held = open_beneath(top, path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        found = os.fstat(held)
    finally:
        os.close(held)
    return found.st_blocks * _BLOCK if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 else 0


def _owner(top: int) -> tuple[int, int] | None:
    """To whom files in the mount belong: what belongs to the sandbox's user on disk is what its top belongs to."""
    if os.geteuid() != 0:
        return None
    found = os.fstat(top)
    return found.st_uid, found.st_gid


def _give_folders(top: int, path: str, owner: tuple[int, int]) -> None:
    steps = path.split("/") if path else []
    for end in range(1, len(steps) + 1):
        with contextlib.suppress(OSError):
            held = open_folder(top, "/".join(steps[:end]))
            try:
                os.fchown(held, *owner)
            finally:
                os.close(held)


def _remove_empty(mount: Path, path: str) -> None:
    steps = path.split("/") if path else []
    with contextlib.suppress(OSError):
        top = os.open(mount, TOP)
        try:
            while steps:
                within = open_folder(top, "/".join(steps[:-1]))
                try:
                    os.rmdir(steps.pop(), dir_fd=within)
                finally:
                    os.close(within)
        finally:
            os.close(top)
        mount.rmdir()


def _removed(path: str) -> Conflict:
    return Conflict(f"the upload of {path!r} was removed before its end, with the mount or as too old: send it again")
