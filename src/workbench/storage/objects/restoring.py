"""Bringing back a mount from the object store, into a folder that nobody sees before it is whole."""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import NamedTuple

from workbench.errors import StoreUnavailable
from workbench.guest_files import make_folders, open_beneath, open_folder
from workbench.guest_trees import remove_tree
from workbench.storage.moving import WriteFailed
from workbench.storage.objects.bucket import Bucket, NoSuchObject
from workbench.storage.objects.keys import folders_of
from workbench.storage.objects.manifest import Kept, Mark
from workbench.storage.staging import TOP

_WAITING = 16
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o644
# Something else is there, or on the way to it; or the folder goes as fast as it is made.
_IN_THE_WAY = {errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EXDEV, errno.EAGAIN}


class Stored(NamedTuple):
    """An object, and of which file it is."""

    key: str
    path: bytes
    modified_at: datetime.datetime


class _Unusable(Exception):
    """No file can have this name."""


class Restored:
    """An empty folder, opened; gone afterwards if it was not given another name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._top = -1

    def __enter__(self) -> int:
        # What another process was killed over; whoever is at it now has the lock, and that is us.
        remove_tree(self._path)
        try:
            self._path.mkdir(mode=0o700, parents=True)
            self._top = os.open(self._path, TOP)
        except OSError as problem:
            raise StoreUnavailable(f"{self._path} cannot be made: {problem.strerror}") from problem
        return self._top

    def __exit__(self, *_: object) -> None:
        os.close(self._top)
        remove_tree(self._path)


def restore_into(top: int, stored: Sequence[Stored], bucket: Bucket, fetching: Executor) -> list[Kept]:
    """All of them as files below the folder, several at once; what there is of them.

    Raises:
        StoreUnavailable: one could not be fetched or written.
    """
    kept: list[Kept] = []
    failed = threading.Event()

    def fetch(one: Stored) -> Kept | None:
        return None if failed.is_set() else _fetch(top, one, bucket)

    running = set[Future[Kept | None]]()

    def collect(most: int) -> None:
        nonlocal running
        while len(running) > most:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            kept.extend(one for done in ended if (one := done.result()) is not None)

    beaten = older_of_two(stored)
    try:
        for one in stored:
            if one.path in beaten:
                kept.append(Kept(one.path, None, ours=False))
                continue
            running.add(fetching.submit(fetch, one))
            collect(_WAITING)
        collect(0)
        os.fsync(top)
    except BaseException:
        failed.set()
        wait(running)
        raise
    return kept


def older_of_two(stored: Iterable[Stored]) -> set[bytes]:
    """Paths of files that cannot be beside a newer one: of `a` and `a/b` one was to be dropped when its dropper was
    killed, and that is the older one. It stays in the bucket all the same.
    """
    times = {one.path: one.modified_at for one in stored}
    newest: dict[bytes, datetime.datetime] = {}
    for path, modified_at in times.items():
        for folder in folders_of(path):
            if folder in times:
                newest[folder] = max(newest.get(folder, modified_at), modified_at)
    files = {path for path, within in newest.items() if times[path] >= within}
    return (newest.keys() - files) | {path for path in times if any(one in files for one in folders_of(path))}


def add_missing(
    top: int, staging: int, stored: Sequence[Stored], bucket: Bucket, fetching: Executor
) -> Iterator[tuple[bytes, Mark]]:
    """Bring those to a folder in use of which nothing is there, each whole and at once; what was brought.

    Raises:
        StoreUnavailable: one could not be fetched or written.
    """
    missing = [one for one in stored if _is_missing(top, one.path)]
    for kept in restore_into(staging, missing, bucket, fetching):
        try:
            if kept.mark is not None and _put_in_place(staging, top, os.fsdecode(kept.path)):
                yield kept.path, kept.mark
        except OSError as problem:
            raise _unwritten(problem) from problem


def _is_missing(top: int, path: bytes) -> bool:
    try:
        os.close(open_beneath(top, os.fsdecode(path), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
    except FileNotFoundError:
        return True
    except OSError:
        pass
    return False


def _put_in_place(staging: int, top: int, path: str) -> bool:
    """False if something is there by now."""
    folder, _, name = path.rpartition("/")
    found = os.fstat(top)
    owner = (found.st_uid, found.st_gid) if os.geteuid() == 0 else None
    source = open_folder(staging, folder)
    try:
        if owner is not None:
            os.chown(name, *owner, dir_fd=source, follow_symlinks=False)
        within = make_folders(top, folder, owner)
        try:
            os.link(name, name, src_dir_fd=source, dst_dir_fd=within, follow_symlinks=False)
            os.fsync(within)
        finally:
            os.close(within)
    except OSError as problem:
        if problem.errno in _IN_THE_WAY:
            return False
        raise
    finally:
        os.close(source)
    return True


def _fetch(top: int, one: Stored, bucket: Bucket) -> Kept | None:
    try:
        return Kept(one.path, _written(top, one.key, one.path, bucket))
    except NoSuchObject:
        return None
    except (FileExistsError, NotADirectoryError, IsADirectoryError, _Unusable):
        # Not a file that could be here: the object is left to who made it.
        return Kept(one.path, None, ours=False)
    except WriteFailed as failed:
        raise _unwritten(failed.why) from failed
    except OSError as problem:
        raise _unwritten(problem) from problem


def _unwritten(problem: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"the files cannot be brought back from the object store, as they cannot be written here: {problem.strerror}; "
        "look at the disk of the data folder"
    )


def _written(top: int, key: str, path: bytes, bucket: Bucket) -> Mark:
    # BARRIER: a key is only a name; one with steps such as `..` would be written elsewhere; held by
    # tests/mounts/test_object_store.py.
    if b"\0" in path or any(step in (b"", b".", b"..") for step in path.split(b"/")):
        raise _Unusable(key)
    folder, _, name = os.fsdecode(path).rpartition("/")
    within = make_folders(top, folder, None)
    try:
        descriptor = os.open(name, _NEW, 0o600, dir_fd=within)
        try:
            told = bucket.fetch(key, descriptor)
            os.fchmod(descriptor, _number(told.get("mode"), 8, _MODE) & 0o777)
            moment = _number(told.get("mtime-ns"), 10, -1)
            if moment >= 0:
                os.utime(descriptor, ns=(moment, moment))
            # Else a loss of power could leave it empty, and the next save would send that.
            os.fdatasync(descriptor)
            return Mark.of(os.fstat(descriptor))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=within)
            raise
        finally:
            os.close(descriptor)
    finally:
        os.close(within)


def _number(text: str | None, base: int, otherwise: int) -> int:
    try:
        return int(text or "", base)
    except ValueError:
        return otherwise
