"""Records in one SQLite file of the data folder, which any number of processes use at once."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from workbench.contracts.storage import PageRequest
from workbench.errors import Conflict, NotFound, StoreUnavailable
from workbench.model.ids import SandboxId, SessionId
from workbench.model.session import Session, SessionSpec
from workbench.model.tier import tier_named
from workbench.storage.schema import migrate
from workbench.storage.wording import exists_already, no_such_session

# Writers hold the file for a millisecond; whoever waits this long has met a stuck process or a dead disk.
BUSY_S = 20.0
_COLUMNS = (
    "id, user, tier, env, start_up, working_folder, created_at, used_at, sandbox, begun, epoch, last_loss, ending"
)
_REPLACE = """
    UPDATE sessions
    SET created_at = ?, tier = ?, sandbox = ?, begun = ?, epoch = ?, last_loss = ?, ending = ?
    WHERE id = ?
    AND created_at = ? AND tier = ? AND sandbox = ? AND begun = ? AND epoch = ? AND last_loss = ? AND ending = ?
"""

T = TypeVar("T")


class SqliteSessionStore:
    """A SessionStore in a file. One connection, opened at the first use, for one thread at a time.

    BARRIER: sessions' variables are in the file, and may be credentials; it is 0600, as are the files that SQLite puts
    beside it. Held by tests/unit/storage/test_sqlite.py.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    async def add(self, session: Session) -> None:
        """As the contract has it."""
        marks = ", ".join("?" * len(_COLUMNS.split(", ")))

        def insert(connection: sqlite3.Connection) -> None:
            try:
                connection.execute(f"INSERT INTO sessions ({_COLUMNS}) VALUES ({marks})", _row(session))  # noqa: S608
            except sqlite3.IntegrityError:
                raise Conflict(exists_already(session.spec.id), {"session": session.spec.id}) from None

        await self._do(insert)

    async def get(self, session: SessionId) -> Session:
        """As the contract has it."""
        sql = f"SELECT {_COLUMNS} FROM sessions WHERE id = ?"  # noqa: S608
        return await self._one(session, sql, (session,))

    async def use(self, session: SessionId, at: str) -> Session:
        """As the contract has it."""
        sql = f"UPDATE sessions SET used_at = max(used_at, ?) WHERE id = ? RETURNING {_COLUMNS}"  # noqa: S608
        return await self._one(session, sql, (at, session))

    async def list(self, request: PageRequest) -> tuple[Session, ...]:
        """As the contract has it."""
        sql = f"SELECT {_COLUMNS} FROM sessions WHERE user = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608
        rows = await self._do(
            lambda connection: connection.execute(sql, (request.user, request.after or "", request.limit)).fetchall()
        )
        return tuple(_session(row) for row in rows)

    async def replace(self, seen: Session, new: Session) -> bool:
        """As the contract has it."""
        values = (*_state(new), seen.spec.id, *_state(seen))

        def update(connection: sqlite3.Connection) -> bool:
            with _durable(connection) if new.epoch != seen.epoch else contextlib.nullcontext():
                return connection.execute(_REPLACE, values).rowcount == 1

        return await self._do(update)

    async def remove(self, session: SessionId) -> None:
        """As the contract has it."""
        await self._do(lambda connection: connection.execute("DELETE FROM sessions WHERE id = ?", (session,)))

    async def aclose(self) -> None:
        """As the contract has it."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    async def _one(self, session: SessionId, sql: str, values: tuple[object, ...]) -> Session:
        # All rows are fetched: a statement with RETURNING ends, and commits, with its last one.
        rows = await self._do(lambda connection: connection.execute(sql, values).fetchall())
        if not rows:
            raise NotFound(no_such_session(session), {"session": session})
        return _session(rows[0])

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._locked, work)

    def _locked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock, _own_errors(self._path):
            if self._connection is None:
                self._connection = _opened(self._path)
            return work(self._connection)


@contextlib.contextmanager
def _own_errors(path: Path) -> Iterator[None]:
    try:
        yield
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
            # A killed process loses nothing with it; `_durable` is for what must outlive the machine's power.
            connection.execute("PRAGMA synchronous = NORMAL")
            migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        os.close(folder)


@contextlib.contextmanager
def _durable(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        connection.execute("PRAGMA synchronous = NORMAL")


def _state(session: Session) -> tuple[object, ...]:
    """What `replace` compares and writes, in the order of its statement."""
    return (session.created_at, session.spec.tier.name, session.sandbox, session.begun, session.epoch,
            session.last_loss, session.ending)  # fmt: skip


def _row(session: Session) -> tuple[object, ...]:
    spec = session.spec
    return (spec.id, spec.user, spec.tier.name, json.dumps(spec.env), spec.start_up, spec.working_folder,
            session.created_at, session.used_at, session.sandbox, session.begun, session.epoch, session.last_loss,
            session.ending)  # fmt: skip


def _session(row: tuple[Any, ...]) -> Session:
    name, user, tier, env, start_up, folder, created, used, sandbox, begun, epoch, last_loss, ending = row
    return Session(
        spec=SessionSpec(
            id=SessionId(name),
            user=user,
            tier=tier_named(tier),
            env=json.loads(env),
            start_up=start_up,
            working_folder=folder,
        ),
        created_at=created,
        used_at=used,
        sandbox=SandboxId(sandbox),
        begun=bool(begun),
        epoch=epoch,
        last_loss=last_loss,
        ending=bool(ending),
    )
