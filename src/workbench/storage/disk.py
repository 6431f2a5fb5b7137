"""Mounts as folders of the data folder."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from workbench.data_folder import DataFolder
from workbench.errors import Conflict, StoreUnavailable
from workbench.guest_files import missing_beneath, open_file, open_folder
from workbench.guest_trees import Removed, TreeSize, measure_tree, remove_beneath, remove_tree
from workbench.model.ids import MountId
from workbench.model.mounts import INSIDE, FilePath, FilesFound, FilesWanted, MountFile, MountUse, Quota
from workbench.storage.holding import open_staged, take_staged
from workbench.storage.leftovers import check_count
from workbench.storage.listing import Listing, described
from workbench.storage.measuring import Change, Measured, Room, is_upload
from workbench.storage.refusals import nothing_there, undeleted, unreadable
from workbench.storage.remarks import drop_remark, keep_remark, kept_remark
from workbench.storage.staging import TOP, Staged, replaced_bytes, reserve
from workbench.threads import to_its_end

_NOWHERE = FilesFound(files=(), next_after=None)
_BLOCK = 512
# Twice what the largest mount may hold: who is beyond that makes files faster than they are counted.
_MOST_COUNTED = 2_000_000
# A kernel before 6.13 gives two changes within a tick of its clock the same time.
_TICK_S = 0.011
# Guests that swap a file and a folder for each other all the time.
_TRIES = 8


class Opened:
    """An OpenFile on this disk."""

    def __init__(self, descriptor: int, path: FilePath) -> None:
        self.descriptor = descriptor
        self._found = _settled(descriptor)
        self.file: MountFile = described(path, self._found)

    def is_unchanged(self) -> bool:
        """As the contract has it. Being moved, replaced or deleted is no change of what is in it."""
        now = os.fstat(self.descriptor)
        return (now.st_size, now.st_mtime_ns) == (self._found.st_size, self._found.st_mtime_ns)


def _settled(descriptor: int) -> os.stat_result:
    """What the system says of a file when the next change of it will be told as another one."""
    found = os.fstat(descriptor)
    for _ in range(2):
        if not 0 <= time.time_ns() - found.st_mtime_ns < _TICK_S * 1e9:
            break
        time.sleep(_TICK_S)
        found = os.fstat(descriptor)
    return found


class DiskMountStore:
    """A MountStore on the disk of the host."""

    def __init__(self, data: DataFolder, *, makes_tops: bool = True) -> None:
        """Without `makes_tops` an upload into a folder that is gone is refused: somebody else makes those."""
        self._data = data
        self._makes_tops = makes_tops
        self._measured = Measured(self._size, data.uploads)

    async def prepare(self, mount: MountId) -> None:
        """As the contract has it; the host makes a folder that is new."""

    async def list(self, mount: MountId, wanted: FilesWanted) -> FilesFound:
        """As the contract has it."""
        return await to_its_end(lambda: self._list(mount, wanted))

    def _list(self, mount: MountId, wanted: FilesWanted) -> FilesFound:
        with self._top(mount) as top:
            if top is None:
                return _NOWHERE
            try:
                return Listing(top, wanted).page()
            except OSError as problem:
                raise unreadable(problem, INSIDE) from problem

    @contextlib.asynccontextmanager
    async def open(self, mount: MountId, path: FilePath) -> AsyncIterator[Opened]:
        """As the contract has it."""
        opened = await to_its_end(lambda: self._open(mount, path), undo=lambda late: os.close(late.descriptor))
        try:
            yield opened
        finally:
            os.close(opened.descriptor)

    def _open(self, mount: MountId, path: FilePath) -> Opened:
        with self._top(mount) as top:
            if top is None:
                raise nothing_there(path)
            try:
                return Opened(open_file(top, path), path)
            except OSError as problem:
                raise unreadable(problem, path) from problem

    @contextlib.asynccontextmanager
    async def stage(
        self, mount: MountId, path: FilePath, *, name: str, quota: Quota, size: int | None = None
    ) -> AsyncIterator[Staged]:
        """As the contract has it."""
        room = Room(self._measured, mount, name, path, quota, is_sized=size is not None)
        staged = await to_its_end(lambda: self._stage(room, size or 0), undo=Staged.leave)
        try:
            yield staged
        finally:
            await to_its_end(staged.leave)

    def _stage(self, room: Room, size: int) -> Staged:
        staged = self._staged(room.mount, room.name)
        with self._top(room.mount) as top:
            if top is None:
                room.new_entries = room.path.count("/") + 1
            else:
                room.replaced, room.new_entries = replaced_bytes(top, room.path), missing_beneath(top, room.path)
        mount = self._data.files / room.mount
        if not staged.exists():
            check_count(staged.parent)
        held = Staged(open_staged(staged), staged, mount, room, makes_top=self._makes_tops)
        try:
            wanted = max(size, held.offset)
            self._measured.take(room, wanted)
            reserve(held.descriptor, size, room.path)
            # Once more: another process may have looked before it saw what is reserved now.
            self._measured.take(room, wanted)
        except BaseException:
            if held.offset == 0:
                staged.unlink(missing_ok=True)
            held.leave()
            raise
        return held

    async def staged(self, mount: MountId, *, name: str) -> int:
        """As the contract has it."""
        try:
            return self._staged(mount, name).stat().st_size
        except OSError:
            return 0

    async def unstage(self, mount: MountId, *, name: str) -> None:
        """As the contract has it."""
        await to_its_end(lambda: self._unstage(self._staged(mount, name)))

    def _unstage(self, staged: Path) -> None:
        held = open_staged(staged)
        try:
            drop_remark(staged)
            staged.unlink(missing_ok=True)
        finally:
            os.close(held)

    async def remark(self, mount: MountId, *, name: str, text: str) -> None:
        """As the contract has it."""
        await to_its_end(lambda: self._remark(self._staged(mount, name), text))

    def _remark(self, staged: Path, text: str) -> None:
        if not kept_remark(staged) and not staged.exists():
            check_count(staged.parent)
        keep_remark(staged, text)

    async def remarked(self, mount: MountId, *, name: str) -> str:
        """As the contract has it."""
        return kept_remark(self._staged(mount, name))

    async def delete(self, mount: MountId, path: FilePath) -> int:
        """As the contract has it."""
        return await to_its_end(lambda: self._delete(mount, path))

    def _delete(self, mount: MountId, path: FilePath) -> int:
        folder, _, name = path.rpartition("/")
        began = time.monotonic()
        with self._top(mount) as top:
            if top is None:
                raise nothing_there(path)
            try:
                within = open_folder(top, folder)
            except OSError as problem:
                raise unreadable(problem, path) from problem
            try:
                gone = _remove(within, name)
            except OSError as problem:
                self._measured.forget(mount)
                raise undeleted(problem, path) from problem
            finally:
                os.close(within)
        self._measured.changed(mount, Change(bytes=-gone.bytes, entries=-(gone.files + gone.folders), began=began))
        return gone.files

    async def measure(self, mount: MountId) -> MountUse:
        """As the contract has it."""
        return await to_its_end(lambda: self._measure(mount))

    def _measure(self, mount: MountId) -> MountUse:
        size = self._size(mount)
        coming = self._measured.coming_bytes(mount)
        return MountUse(bytes=size.bytes, files=size.entries, complete=size.complete, coming_bytes=coming)

    def _size(self, mount: MountId) -> TreeSize:
        return measure_tree(self._data.files / mount, most_entries=_MOST_COUNTED)

    async def save(self, mount: MountId) -> MountUse:
        """As the contract has it: the disk is all there is."""
        return await self.measure(mount)

    def save_soon(self, mount: MountId) -> None:
        """As the contract has it: there is nothing to save."""

    def retry_saves(self) -> tuple[str, ...]:
        """As the contract has it."""
        return ()

    async def drop_staged(self, older_than_s: float) -> int:
        """As the contract has it."""
        return await to_its_end(lambda: self._drop_staged(older_than_s))

    def _drop_staged(self, older_than_s: float) -> int:
        dropped, before = 0, time.time() - older_than_s
        for staged in self._data.uploads.glob("*/*"):
            with contextlib.suppress(OSError):
                held = os.open(staged, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    # Looked at while it is held: it may have been gone on with, or be another by now.
                    if take_staged(staged, held) and os.fstat(held).st_mtime < before:
                        staged.unlink()
                        dropped += is_upload(staged.name)
                finally:
                    os.close(held)
        for folder in self._data.uploads.glob("*"):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return dropped

    async def remove(self, mount: MountId) -> None:
        """As the contract has it."""
        # In a thread: as large and as deep as a guest liked to make it.
        await to_its_end(lambda: self._remove(mount))

    def _remove(self, mount: MountId) -> None:
        lock = None
        if self._data.mounts.is_dir():
            lock = self._data.use_mount(mount)
            if lock is None:
                raise Conflict(f"the files of {mount} are in use by a sandbox: close that first", {"mount": mount})
        try:
            # What is staged goes first: none of it can be put into a mount that is gone then.
            for folder in (self._data.uploads / mount, self._data.packages / mount, self._data.files / mount):
                if not remove_tree(folder):
                    raise StoreUnavailable(f"the files in {folder} could not all be removed; remove them by hand")
            # While it is held: whoever waits for it sees that the name now means another file, or none.
            self._data.mount_lock(mount).unlink(missing_ok=True)
        finally:
            if lock is not None:
                os.close(lock)
            self._measured.forget(mount)

    async def aclose(self) -> None:
        """As the contract has it."""

    def _staged(self, mount: MountId, name: str) -> Path:
        if not is_upload(name):
            raise ValueError(name)
        return self._data.uploads / mount / name

    @contextlib.contextmanager
    def _top(self, mount: MountId) -> Iterator[int | None]:
        try:
            top = os.open(self._data.files / mount, TOP)
        except FileNotFoundError:
            top = None
        except OSError as problem:
            raise unreadable(problem, INSIDE) from problem
        try:
            yield top
        finally:
            if top is not None:
                os.close(top)


def _remove(within: int, name: str) -> Removed:
    """A file, or a folder with all in it."""
    for _ in range(_TRIES):
        found = os.stat(name, dir_fd=within, follow_symlinks=False)
        try:
            if stat.S_ISDIR(found.st_mode):
                return remove_beneath(within, name)
            os.unlink(name, dir_fd=within)
        except OSError as problem:
            # The one has become the other since we looked.
            if problem.errno not in (errno.ENOTDIR, errno.EISDIR):
                raise
        else:
            return Removed(1, 0, found.st_blocks * _BLOCK if found.st_nlink == 1 else 0)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)
