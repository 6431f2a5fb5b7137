"""One open folder beside its copy in the object store: what is new or changed is sent, and what is gone is dropped.

Nothing is dropped because it was not seen once. A file that is moved while a folder is looked through is seen nowhere,
so an object goes only after two looks between which no folder has changed, or after many saves that never met its file;
and never because of a folder that is not the very one to which the manifest belongs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from workbench.errors import StoreUnavailable
from workbench.guest_files import NotAFile, open_beneath, open_file
from workbench.model.tier import TIERS
from workbench.storage.holding import is_still
from workbench.storage.objects.bucket import Bucket, Source, is_of_one_object
from workbench.storage.objects.incarnation import incarnation_of
from workbench.storage.objects.keys import folders_of, name_of
from workbench.storage.objects.locks import CopyLocks, busy
from workbench.storage.objects.manifest import Binding, Kept, Manifest, Mark
from workbench.storage.objects.walking import CLOCK_STEP_S, Change, Walk, What, changes, holes_of

AT_ONCE = 8
# A quota counts what the disk holds, and a save sends holes as zeros: without a bound, days of them.
MOST_HOLES = max(tier.files_bytes for tier in TIERS.values())
_DROPPED_AT_ONCE = 500
_LOOKS = 4
# Who moves things about all the time would otherwise fill the bucket with what is long deleted.
_MOST_MISSED = 5
_WAIT_AND_WRITE = 1 | 2 | 4

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class Saved:
    """What is left after a save."""

    unsaved: int = 0
    complete: bool = True
    """False if a folder could not be read"""
    undropped: int = 0
    """objects whose files may be gone: the next save tells"""


@dataclass(slots=True)
class _Looked:
    saved: Saved = field(default_factory=Saved)
    drops: dict[bytes, Change] = field(default_factory=dict)
    unsent: dict[int, list[bytes]] = field(default_factory=dict)
    """paths of files that are only here, by their numbers"""
    had_missed: bool = False
    state: bytes = b""
    is_disturbed: bool = False
    is_settled: bool = False
    """nothing was moved since the look before it"""

    def not_sent(self, change: Change) -> None:
        self.saved.unsaved += 1
        if change.mark is not None:
            self.unsent.setdefault(change.mark.inode, []).append(change.path)

    def lets_go(self, gone: Change) -> bool:
        """Whether what was in that file is surely nowhere here, or there under its other name."""
        if gone.missed >= _MOST_MISSED:
            return True
        if not self.is_settled or not self.saved.complete:
            return False
        if gone.mark is None:
            return not self.saved.unsaved
        # One that can only be sent when the other is gone, as some stores take a file or a folder of a name.
        return all(_excludes(path, gone.path) for path in self.unsent.get(gone.mark.inode, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Of one mount. For threads."""

    folder: Path
    top: int
    """the folder, opened"""
    manifest: Manifest
    bucket: Bucket
    prefix: str
    locks: CopyLocks
    sending: Executor

    @property
    def binding(self) -> Binding:
        """What the manifest has to say for it to be about this folder and this bucket."""
        return Binding(self.bucket.place, incarnation_of(self.top))

    def is_bound(self) -> bool:
        """Whether it is."""
        return self.manifest.binding == self.binding

    def is_there(self) -> bool:
        """Whether the folder still has its name."""
        return is_still(self.folder, self.top)

    def save(self) -> Saved:
        """Send what is new or has changed, and drop what is surely gone.

        Raises:
            StoreUnavailable: the object store does not answer; some of it may have been done.
        """
        looked = self._look()
        for _ in range(_LOOKS):
            if not looked.drops or looked.is_settled:
                break
            if looked.is_disturbed:
                time.sleep(CLOCK_STEP_S)
            looked = self._look(looked)
        while dropped := self.drop([path for path, gone in looked.drops.items() if looked.lets_go(gone)]):
            looked.drops = {path: gone for path, gone in looked.drops.items() if path not in dropped}
            if not looked.saved.unsaved:
                break
            # For what had no place beside what is gone now; another may have waited for that one.
            looked = self._look(looked)
        if looked.drops or looked.had_missed:
            self.manifest.missed(looked.drops)
        looked.saved.undropped = len(looked.drops)
        return looked.saved

    def _look(self, before: _Looked | None = None) -> _Looked:
        looked, walk = _Looked(), Walk(self.top)
        running: dict[Future[bool], Change] = {}
        failed = threading.Event()

        def send(change: Change) -> bool:
            return not failed.is_set() and self._send(change.path)

        def collect(*, most: int) -> None:
            while len(running) > most:
                for one in wait(running, return_when=FIRST_COMPLETED).done:
                    change = running.pop(one)
                    if not one.result():
                        looked.not_sent(change)

        try:
            for change in changes(walk, self._kept(looked), most_holes=MOST_HOLES):
                match change.what:
                    case What.DROP:
                        looked.drops[change.path] = change
                    case What.UNREAD:
                        looked.saved.complete = False
                    case What.SEND if not any(folder in looked.drops for folder in folders_of(change.path)):
                        running[self.sending.submit(send, change)] = change
                        collect(most=2 * AT_ONCE)
                    case _:
                        looked.not_sent(change)
            collect(most=0)
        except BaseException:
            failed.set()
            wait(running)
            raise
        looked.state, looked.is_disturbed = walk.state, walk.is_disturbed
        if before is not None and not (before.is_disturbed or looked.is_disturbed):
            looked.is_settled = looked.state == before.state
        return looked

    def _kept(self, looked: _Looked) -> Iterator[Kept]:
        for one in self.manifest.kept():
            looked.had_missed = looked.had_missed or one.missed > 0
            yield one

    def _send(self, path: bytes) -> bool:
        """Whether it is there now as it is here, or is no file any more."""
        with self.locks.paths(path, wait_s=0.0) as held:
            if path not in held:
                # Somebody puts another in its place: the next save sees what came of it.
                return False
            try:
                descriptor = open_file(self.top, os.fsdecode(path))
            except (NotAFile, FileNotFoundError, NotADirectoryError):
                return True
            except OSError:
                return False
            try:
                return self._sent(path, descriptor)
            except OSError:
                return False
            except StoreUnavailable as problem:
                if not is_of_one_object(problem):
                    raise
                return False
            finally:
                os.close(descriptor)

    def _sent(self, path: bytes, descriptor: int) -> bool:
        let_changes_show(descriptor)
        found = os.fstat(descriptor)
        if holes_of(found) > MOST_HOLES:
            # Since we looked.
            return False
        mark = Mark.of(found)
        self.manifest.begin(path, is_here=True)
        if not self.bucket.put(self.key(path), _source(descriptor, mark)):
            return False
        self.manifest.saved(path, mark)
        return True

    def drop(self, paths: Sequence[bytes]) -> frozenset[bytes]:
        """Delete the objects of files that are gone here, but for those that somebody is at; which they were."""
        dropped: set[bytes] = set()
        for start in range(0, len(paths), _DROPPED_AT_ONCE):
            some = paths[start : start + _DROPPED_AT_ONCE]
            with self.locks.paths(*some, wait_s=0.0) as held:
                dropped.update(self.drop_held(path for path in some if path in held))
        return frozenset(dropped)

    def drop_all(self, paths: Sequence[bytes], *, wait_s: float) -> None:
        """The same, and wait for those that somebody is at. Raises: StoreUnavailable."""
        end = time.monotonic() + wait_s
        for start in range(0, len(paths), _DROPPED_AT_ONCE):
            some = paths[start : start + _DROPPED_AT_ONCE]
            with self.locks.paths(*some, wait_s=max(end - time.monotonic(), 0.0)) as held:
                self.drop_held(path for path in some if path in held)
                if len(held) < len(some):
                    raise busy()

    def drop_held(self, paths: Iterable[bytes]) -> list[bytes]:
        """The same of paths whose locks we have."""
        gone = [path for path in paths if _is_gone(self.top, path)]
        # After the look: a folder that was removed or moved as a whole tells nothing about what was in it.
        if not gone or not self.is_bound() or not self.is_there():
            return []
        self.bucket.delete([self.key(path) for path in gone])
        self.manifest.forget(gone)
        return gone

    def key(self, path: bytes) -> str:
        """Of the object."""
        return self.prefix + name_of(path)


def metadata_of(mark: Mark) -> dict[str, str]:
    """What is kept of a file beside its content."""
    return {"mtime-ns": str(mark.mtime_ns), "mode": f"{mark.mode:o}"}


def let_changes_show(descriptor: int) -> None:
    """After this, whatever is written to the file changes its mark."""
    # A page that was written through a mapping is noticed only once it has gone to the disk and is written again.
    _libc.sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), _WAIT_AND_WRITE)
    age_s = time.time() - os.fstat(descriptor).st_mtime_ns / 1e9
    if 0 <= age_s < CLOCK_STEP_S:
        time.sleep(CLOCK_STEP_S - age_s)


def _source(descriptor: int, mark: Mark) -> Source:
    def is_unchanged() -> bool:
        found = os.fstat(descriptor)
        return found.st_nlink > 0 and Mark.of(found) == mark

    return Source(descriptor=descriptor, size=mark.size, metadata=metadata_of(mark), is_unchanged=is_unchanged)


def _is_gone(top: int, path: bytes) -> bool:
    """Whether there is surely no regular file at it."""
    try:
        handle = open_beneath(top, os.fsdecode(path), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as problem:
        # A link is on the way now, and what it leads to is not what was there.
        return problem.errno == errno.ELOOP
    try:
        return not stat.S_ISREG(os.fstat(handle).st_mode)
    finally:
        os.close(handle)


def _excludes(one: bytes, other: bytes) -> bool:
    return one.startswith(other + b"/") or other.startswith(one + b"/")
