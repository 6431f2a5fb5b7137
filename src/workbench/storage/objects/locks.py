"""Locks on a mount's copy, between threads and between processes: on one path, or on all of it.

Who holds a path is the only one that changes its object and what the manifest says of it, so both always agree. A
second lock says who saves, of whom there is one at a time. The locks are ranges of one file, held by a descriptor of
their own: closing that ends them, and so does the end of the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import StoreUnavailable
from workbench.storage.holding import is_still
from workbench.storage.objects.connecting import ending

_SAVER = 0
_ALL = 0  # to the end, in a lock's length
_PAUSES = (0.005, 0.01, 0.02, 0.05, 0.1)


class MountGone(Exception):
    """Removed while its lock was waited for, with all of its locks."""


class CopyLocks:
    """Of one mount. Nobody waits for them any more once `stopped` is set."""

    def __init__(self, path: Path, stopped: threading.Event) -> None:
        self._path = path
        self._stopped = stopped

    @contextlib.contextmanager
    def paths(self, *paths: bytes, wait_s: float) -> Iterator[frozenset[bytes]]:
        """Those of them that are free within the time, held: 0 does not wait at all. Raises: MountGone."""
        end = time.monotonic() + wait_s
        held = self._open()
        try:
            taken = frozenset(one for one in paths if self._taken(held, _place(one), 1, end))
            if not is_still(self._path, held):
                raise MountGone
            yield taken
        finally:
            os.close(held)

    @contextlib.contextmanager
    def path(self, path: bytes, *, wait_s: float) -> Iterator[None]:
        """One, held.

        Raises:
            MountGone
            StoreUnavailable: another has it for all that time.
        """
        with self.paths(path, wait_s=wait_s) as held:
            if path not in held:
                raise busy()
            yield

    @contextlib.contextmanager
    def saver(self, *, wait_s: float) -> Iterator[None]:
        """The one that saves. Raises: MountGone, StoreUnavailable."""
        with self._range(_SAVER, 1, wait_s, is_new=False):
            yield

    @contextlib.contextmanager
    def restorer(self, *, wait_s: float) -> Iterator[None]:
        """The same, also of a mount that was removed meanwhile and is made anew. Raises: StoreUnavailable."""
        with self._range(_SAVER, 1, wait_s, is_new=True):
            yield

    @contextlib.contextmanager
    def all(self, *, wait_s: float) -> Iterator[None]:
        """Everything; the file of the locks is gone afterwards. Raises: StoreUnavailable."""
        with self._range(0, _ALL, wait_s, is_new=True):
            yield
            self._path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _range(self, start: int, length: int, wait_s: float, *, is_new: bool) -> Iterator[None]:
        end = time.monotonic() + wait_s
        while True:
            held = self._open()
            try:
                if not self._taken(held, start, length, end):
                    raise busy()
                if is_still(self._path, held):
                    yield
                    return
                if not is_new:
                    raise MountGone
            finally:
                os.close(held)

    def _open(self) -> int:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as problem:
            raise StoreUnavailable(f"{self._path} cannot be opened: {problem.strerror}") from problem

    def _taken(self, held: int, start: int, length: int, end: float) -> bool:
        tries = 0
        wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        while True:
            try:
                # Of the descriptor, not of the process: threads exclude each other too.
                fcntl.fcntl(held, fcntl.F_OFD_SETLK, wanted)
            except OSError as problem:
                if problem.errno not in (errno.EAGAIN, errno.EACCES):
                    raise StoreUnavailable(f"{self._path} cannot be locked: {problem.strerror}") from problem
            else:
                return True
            if time.monotonic() >= end:
                return False
            if self._stopped.wait(_PAUSES[min(tries, len(_PAUSES) - 1)]):
                raise ending()
            tries += 1


def _place(path: bytes) -> int:
    """Where in the file its lock is; two paths at one place only wait for each other."""
    return 1 + (int.from_bytes(hashlib.blake2b(path, digest_size=8).digest()) >> 2)


def busy() -> StoreUnavailable:
    """For a lock that another holds."""
    return StoreUnavailable("another call is at this file's copy in the object store all the time: try again")
