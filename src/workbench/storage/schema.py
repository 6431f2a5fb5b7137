"""The tables of the SQLite store, as the list of steps that led to them. Steps are added, never changed."""

from __future__ import annotations

import sqlite3

from workbench.errors import StoreUnavailable

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        user TEXT NOT NULL,
        tier TEXT NOT NULL,
        env TEXT NOT NULL,
        start_up TEXT NOT NULL,
        working_folder TEXT NOT NULL,
        created_at TEXT NOT NULL,
        used_at TEXT NOT NULL,
        sandbox TEXT NOT NULL,
        begun INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        last_loss TEXT NOT NULL,
        ending INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX sessions_of_user ON sessions (user, id);
    """,
    """
    ALTER TABLE sessions ADD COLUMN mount TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN principal TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN kernel TEXT NOT NULL DEFAULT 'main';
    ALTER TABLE sessions ADD COLUMN snapshots INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE sessions ADD COLUMN unfinished INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET mount = id, principal = id;
    CREATE INDEX sessions_of_mount ON sessions (mount, id);
    CREATE INDEX sessions_in_sandbox ON sessions (sandbox);
    """,
)


def migrate(connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest version; who comes second waits and finds it done.

    Raises:
        StoreUnavailable: the file was written by a newer version of ours.
    """
    if _version(connection) == len(migrations):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        version = _version(connection)
        if version > len(migrations):
            raise StoreUnavailable(
                f"the records are of version {version} and this program knows {len(migrations)}: upgrade it"
            )
        for step in migrations[version:]:
            # Not executescript, which would commit the transaction first.
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
