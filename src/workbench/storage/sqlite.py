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
from workbench.model.ids import KernelId, MountId, SandboxId, SessionId
from workbench.model.session import Session, SessionSpec
from workbench.model.tier import Tier, tier_named
from workbench.storage.schema import migrate
from workbench.storage.wording import exists_already, files_in_use, no_such_session

# Writers hold the file for a millisecond; whoever waits this long has met a stuck process or a dead disk.
BUSY_S = 20.0
_FIXED = ("id", "user", "env", "start_up", "working_folder", "mount", "principal", "parent", "kernel", "used_at")
# What a `replace` compares and writes.
_STATE = ("created_at", "tier", "snapshots", "sandbox", "begun", "epoch", "last_loss", "unfinished", "ending")
_COLUMNS = ", ".join((*_FIXED, *_STATE))
_INSERT = f"INSERT INTO sessions ({_COLUMNS}) SELECT {', '.join('?' * len((*_FIXED, *_STATE)))} WHERE"
_SEEN = f"id = ? AND {' AND '.join(f'{column} = ?' for column in _STATE)}"
_REPLACE = f"UPDATE sessions SET {', '.join(f'{column} = ?' for column in _STATE)} WHERE {_SEEN}"  # noqa: S608
_TAKE_ALONG = """
    UPDATE sessions
    SET sandbox = ?, begun = 0, epoch = epoch + 1, last_loss = CASE WHEN begun THEN ? ELSE last_loss END
    WHERE sandbox = ?
"""
_CHANGE_TIER = """
    UPDATE sessions SET tier = ?
    WHERE sandbox = ? AND NOT (? AND EXISTS (SELECT 1 FROM sessions WHERE sandbox = ? AND begun))
"""
_REMOVE = "DELETE FROM sessions WHERE id = ? AND created_at = ?"
_ANOTHER = (
    " AND EXISTS (SELECT 1 FROM sessions AS other WHERE other.mount = sessions.mount AND other.id != sessions.id)"
)

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
        sql = f"{_INSERT} NOT EXISTS (SELECT 1 FROM sessions WHERE id = ? OR mount = ?)"  # noqa: S608
        if not await self._insert(session, sql, (session.spec.id, session.mount)):
            raise Conflict(files_in_use(session.spec.id), {"session": session.spec.id})

    async def add_branch(self, branch: Session, seen: Session) -> bool:
        """As the contract has it."""
        sql = f"{_INSERT} EXISTS (SELECT 1 FROM sessions WHERE {_SEEN})"  # noqa: S608
        return await self._insert(branch, sql, (seen.spec.id, *_state(seen)))

    async def _insert(self, session: Session, sql: str, condition: tuple[object, ...]) -> bool:
        taken = Conflict(exists_already(session.spec.id), {"session": session.spec.id})

        def insert(connection: sqlite3.Connection) -> bool:
            try:
                done = connection.execute(sql, (*_fixed(session), *_state(session), *condition)).rowcount == 1
            except sqlite3.IntegrityError:
                raise taken from None
            if not done and connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session.spec.id,)).fetchone():
                raise taken
            return done

        return await self._do(insert)

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
        return await self._many(sql, (request.user, request.after or "", request.limit))

    async def family(self, mount: MountId) -> tuple[Session, ...]:
        """As the contract has it."""
        return await self._many(f"SELECT {_COLUMNS} FROM sessions WHERE mount = ? ORDER BY id", (mount,))  # noqa: S608

    async def replace(self, seen: Session, new: Session) -> bool:
        """As the contract has it."""
        values = (*_state(new), seen.spec.id, *_state(seen))

        def update(connection: sqlite3.Connection) -> bool:
            with _durable(connection) if new.epoch != seen.epoch else contextlib.nullcontext():
                return connection.execute(_REPLACE, values).rowcount == 1

        return await self._do(update)

    async def move(self, seen: Session, new: Session, reason: str) -> bool:
        """As the contract has it."""

        def update(connection: sqlite3.Connection) -> bool:
            with _durable(connection), _together(connection):
                moved = connection.execute(_REPLACE, (*_state(new), seen.spec.id, *_state(seen))).rowcount == 1
                if moved:
                    connection.execute(_TAKE_ALONG, (new.sandbox, reason, seen.sandbox))
                return moved

        return await self._do(update)

    async def change_tier(self, sandbox: SandboxId, tier: Tier, *, cold: bool) -> bool:
        """As the contract has it."""
        return await self._changed(_CHANGE_TIER, (tier.name, sandbox, cold, sandbox))

    async def remove_unless_last(self, session: Session) -> bool:
        """As the contract has it."""
        return await self._changed(_REMOVE + _ANOTHER, (session.spec.id, session.created_at))

    async def remove(self, session: Session) -> None:
        """As the contract has it."""
        await self._changed(_REMOVE, (session.spec.id, session.created_at))

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

    async def _many(self, sql: str, values: tuple[object, ...]) -> tuple[Session, ...]:
        rows = await self._do(lambda connection: connection.execute(sql, values).fetchall())
        return tuple(_session(row) for row in rows)

    async def _changed(self, sql: str, values: tuple[object, ...]) -> bool:
        return await self._do(lambda connection: connection.execute(sql, values).rowcount > 0)

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


@contextlib.contextmanager
def _together(connection: sqlite3.Connection) -> Iterator[None]:
    """Several statements as one step; no other writer comes between."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _fixed(session: Session) -> tuple[object, ...]:
    spec = session.spec
    return (spec.id, spec.user, json.dumps(spec.env), spec.start_up, spec.working_folder, session.mount,
            session.principal, session.parent or "", session.kernel, session.used_at)  # fmt: skip


def _state(session: Session) -> tuple[object, ...]:
    spec = session.spec
    return (session.created_at, spec.tier.name, spec.snapshots, session.sandbox, session.begun, session.epoch,
            session.last_loss, session.unfinished, session.ending)  # fmt: skip


def _session(row: tuple[Any, ...]) -> Session:
    kept = dict(zip((*_FIXED, *_STATE), row, strict=True))
    return Session(
        spec=SessionSpec(
            id=SessionId(kept["id"]),
            user=kept["user"],
            tier=tier_named(kept["tier"]),
            env=json.loads(kept["env"]),
            start_up=kept["start_up"],
            working_folder=kept["working_folder"],
            snapshots=bool(kept["snapshots"]),
        ),
        created_at=kept["created_at"],
        used_at=kept["used_at"],
        mount=MountId(kept["mount"]),
        principal=SessionId(kept["principal"]),
        parent=SessionId(kept["parent"]) if kept["parent"] else None,
        kernel=KernelId(kept["kernel"]),
        sandbox=SandboxId(kept["sandbox"]),
        begun=bool(kept["begun"]),
        epoch=kept["epoch"],
        last_loss=kept["last_loss"],
        unfinished=bool(kept["unfinished"]),
        ending=bool(kept["ending"]),
    )
