"""Records in one SQLite file of the data folder, which any number of processes use at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from workbench.errors import StoreUnavailable
from workbench.model.ids import MountId
from workbench.storage.database import (
    BUSY_S,
    Connection,
    Orphaned,
    Refused,
    Row,
    Threads,
    Value,
    cannot_be_kept,
    check_keepable,
)
from workbench.storage.schema import migrate_sqlite

T = TypeVar("T")


class SqliteDatabase:
    """A Database in a file. One connection, opened at the first use, for one thread at a time.

    BARRIER: sessions' variables are in the file, and may be credentials; it is 0600, as are the files that SQLite puts
    beside it. Held by tests/unit/storage/test_sqlite.py.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = Threads(1)
        self._connection: SqliteConnection | None = None

    async def do(self, work: Callable[[Connection], T]) -> T:
        """As the contract has it."""
        return await self._threads.run(lambda: self._done(work))

    def _done(self, work: Callable[[Connection], T]) -> T:
        with _own_errors(self._path):
            if self._connection is None:
                self._connection = SqliteConnection(_opened(self._path))
            return work(self._connection)

    async def aclose(self) -> None:
        """As the contract has it."""
        await self._threads.aclose(self._close)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class SqliteConnection:
    """A Connection to a file."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def change(self, sql: str, *values: Value) -> int:
        """As the contract has it."""
        return self._executed(sql, values).rowcount

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """As the contract has it."""
        # All rows are fetched: a statement with RETURNING ends, and commits, with its last one.
        return self._executed(sql, values).fetchall()

    def _executed(self, sql: str, values: tuple[Value, ...]) -> sqlite3.Cursor:
        check_keepable(values)
        try:
            return self._raw.execute(sql, values)
        except sqlite3.IntegrityError as problem:
            orphaned = problem.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
            raise (Orphaned if orphaned else Refused) from problem

    def rows_held(self, sql: str, *values: Value) -> list[Row]:
        """As the contract has it; there is one writer at a time."""
        return self.rows(sql, *values)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """As the contract has it; no other writer comes between."""
        self._raw.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._raw.execute("COMMIT")
        except BaseException:
            # Some errors, such as a full disk, have rolled it back by themselves.
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def durable(self) -> Iterator[None]:
        """As the contract has it."""
        self._raw.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            self._raw.execute("PRAGMA synchronous = NORMAL")

    def hold(self, family: MountId) -> None:
        """As the contract has it; `together` has done so."""

    def scrub(self, *tables: str) -> None:  # noqa: ARG002 - the log is of all of them
        """As the contract has it.

        BARRIER: what was deleted is out of the file and of the log beside it. `secure_delete` alone leaves copies in
        pages whose rows were moved to others. Held by tests/unit/storage/test_forgetting.py.
        """
        self._raw.execute("VACUUM")
        if self._raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise StoreUnavailable(
                f"the log beside the records could not be emptied within {BUSY_S:g} s, because another process reads "
                "them; do it again"
            )

    def close(self) -> None:
        """Not to be used any more."""
        self._raw.close()


@contextlib.contextmanager
def _own_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OverflowError, UnicodeEncodeError) as problem:
        raise cannot_be_kept(problem) from problem
    except (sqlite3.Error, OSError) as problem:
        raise StoreUnavailable(
            f"the records in {path} cannot be used: {problem}; if the file is damaged, move it away or restore a copy",
            {"file": str(path)},
        ) from problem


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # One at a time: SQLite does not wait for its turn when it changes a new file's journal mode.
        fcntl.flock(folder, fcntl.LOCK_EX)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(descriptor, 0o600)
        os.close(descriptor)
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing with it; `durable` is for what must outlive the machine's power.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            migrate_sqlite(connection)
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        os.close(folder)
