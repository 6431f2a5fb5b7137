"""What the object store has of a mount, as far as is known: a small database beside the mount, never inside of it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from workbench.errors import StoreUnavailable

_PAGE = 1000
_BUSY_S = 30.0
# Where a number of the system may have its 64th bit set, and a database has a sign there.
_MOST = (1 << 63) - 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    path BLOB PRIMARY KEY, ours INTEGER NOT NULL, missed INTEGER NOT NULL DEFAULT 0,
    size INTEGER, mtime_ns INTEGER, inode INTEGER, mode INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bound (place TEXT NOT NULL, folder TEXT NOT NULL);
"""
_KNOWN = "INSERT OR REPLACE INTO objects (path, ours, size, mtime_ns, inode, mode) VALUES (?, ?, ?, ?, ?, ?)"


class Binding(NamedTuple):
    """Of which copy a manifest tells, and of which folder: for any other it tells nothing."""

    place: str
    """the bucket, and where in it"""
    folder: str
    """its incarnation"""


class Mark(NamedTuple):
    """By which a file is known to be the same as before."""

    size: int
    mtime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Mark:
        """That of a file."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ino & _MOST, stat.S_IMODE(found.st_mode) & 0o777)


class Kept(NamedTuple):
    """An object that is there, or may be."""

    path: bytes
    mark: Mark | None
    """of the file that it is; None if that is not known, say as the sender was killed"""
    ours: bool = True
    """this folder has had it as a file: if it is gone there, it was deleted"""
    missed: int = 0
    """how many saves in a row did not find it, and could not be sure"""


class Manifest:
    """Of one mount. For threads, and for several processes. Closed by leaving its context."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as problem:
            raise _broken(path, problem) from problem
        self._path = path
        try:
            with self._told() as database:
                database.execute("PRAGMA journal_mode = WAL")
                # An older state after a loss of power is no harm: it says less than there is.
                database.execute("PRAGMA synchronous = NORMAL")
                database.executescript(_SCHEMA)
        except StoreUnavailable:
            self._database.close()
            raise

    def __enter__(self) -> Manifest:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._database.close()

    @property
    def binding(self) -> Binding | None:
        """None if it was not made to its end."""
        with self._told() as database:
            row = database.execute("SELECT place, folder FROM bound").fetchone()
        return None if row is None else Binding(*row)

    def bind(self, binding: Binding) -> None:
        """From here on it knows of everything that the object store has, and whose that is."""
        with self._told() as database, _at_once(database):
            _bind(database, binding)

    def fill(self, kept: Iterable[Kept], binding: Binding | None) -> None:
        """With all that is there, and nothing else."""
        with self._told() as database, _at_once(database):
            database.execute("DELETE FROM objects")
            rows = ((one.path, one.ours, *(one.mark or (None,) * 4)) for one in kept)
            database.executemany(_KNOWN, rows)
            _bind(database, binding)

    def begin(self, path: bytes, *, is_here: bool) -> None:
        """Something is about to be sent: from here on nobody knows what is there."""
        with self._told() as database:
            database.execute(
                "INSERT INTO objects (path, ours) VALUES (?, 1) ON CONFLICT (path) DO UPDATE SET ours = ours OR ?, "
                "missed = 0, size = NULL, mtime_ns = NULL, inode = NULL, mode = NULL",
                (path, is_here),
            )

    def saved(self, path: bytes, mark: Mark) -> None:
        """It is there."""
        with self._told() as database:
            database.execute(_KNOWN, (path, True, *mark))

    def missed(self, paths: Iterable[bytes]) -> None:
        """These were not found by a save that could not be sure of it; the others were."""
        with self._told() as database, _at_once(database):
            before = dict(database.execute("SELECT path, missed FROM objects WHERE missed > 0").fetchall())
            database.execute("UPDATE objects SET missed = 0 WHERE missed > 0")
            rows = ((before.get(path, 0) + 1, path) for path in paths)
            database.executemany("UPDATE objects SET missed = ? WHERE path = ?", rows)

    def forget(self, paths: Sequence[bytes]) -> None:
        """They are not there."""
        with self._told() as database, _at_once(database):
            database.executemany("DELETE FROM objects WHERE path = ?", ((path,) for path in paths))

    def kept(self) -> Iterator[Kept]:
        """All, in the order of paths. What is written meanwhile may be told or not."""
        after = b""
        while True:
            with self._told() as database:
                rows = database.execute(
                    "SELECT * FROM objects WHERE path > ? ORDER BY path LIMIT ?", (after, _PAGE)
                ).fetchall()
            for path, ours, missed, *numbers in rows:
                yield Kept(path, None if numbers[0] is None else Mark(*numbers), bool(ours), missed)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def beneath(self, path: bytes) -> list[bytes]:
        """What is there of that path and was here: as a file, or as a folder with files in it."""
        with self._told() as database:
            rows = database.execute(
                "SELECT path FROM objects WHERE ours AND (path = ? OR (path > ? AND path < ?))",
                (path, path + b"/", path + b"0"),
            ).fetchall()
        return [row[0] for row in rows]

    def in_the_way(self, path: bytes) -> list[bytes]:
        """What is there, was here, and cannot be beside a file of that path: files that are its folders, files in
        it.
        """
        steps = path.split(b"/")
        above = [b"/".join(steps[:count]) for count in range(1, len(steps))]
        found = [one for one in self.beneath(path) if one != path]
        with self._told() as database:
            asked = "SELECT 1 FROM objects WHERE ours AND path = ?"
            return found + [one for one in above if database.execute(asked, (one,)).fetchone()]

    @contextlib.contextmanager
    def _told(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._database
            except sqlite3.Error as problem:
                raise _broken(self._path, problem) from problem


def _bind(database: sqlite3.Connection, binding: Binding | None) -> None:
    database.execute("DELETE FROM bound")
    if binding is not None:
        database.execute("INSERT INTO bound VALUES (?, ?)", binding)


def remove_manifest(path: Path) -> None:
    """With what the database keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def _at_once(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _broken(path: Path, problem: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"what is known of the object store, {path}, cannot be used: {problem}. It may be removed: then it is made anew"
    )
