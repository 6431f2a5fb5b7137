"""The tables, as the list of steps that led to them. Steps are added, never changed.

They are in SQLite's words; `_for_postgres` has the few that PostgreSQL says otherwise.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from workbench.errors import StoreUnavailable

if TYPE_CHECKING:
    import psycopg

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        "user" TEXT NOT NULL,
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
    CREATE INDEX sessions_of_user ON sessions ("user", id);
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
    """
    ALTER TABLE sessions ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
    ALTER TABLE sessions ADD COLUMN freeze_after_s BIGINT NOT NULL DEFAULT -1;
    ALTER TABLE sessions ADD COLUMN end_after_s BIGINT NOT NULL DEFAULT -1;
    DROP INDEX sessions_of_user;
    CREATE INDEX sessions_of_user ON sessions (project, "user", id);
    CREATE INDEX sessions_of_project ON sessions (project, id);
    CREATE TABLE cells (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        digest TEXT NOT NULL,
        sandbox TEXT NOT NULL,
        created_at TEXT NOT NULL,
        ended_at TEXT NOT NULL,
        status TEXT NOT NULL,
        says_step INTEGER NOT NULL,
        asked TEXT NOT NULL,
        answer TEXT NOT NULL,
        PRIMARY KEY (session, id)
    );
    CREATE INDEX cells_in_order ON cells (session, created_at, id);
    CREATE UNIQUE INDEX cells_asked_once ON cells (session, idempotency_key) WHERE idempotency_key <> '';
    CREATE INDEX cells_that_say_a_step ON cells (session, created_at, id) WHERE says_step = 1;
    CREATE INDEX cells_without_an_end ON cells (id, session) WHERE status = 'pending';
    CREATE INDEX cells_by_end_in_session ON cells (session, ended_at);
    CREATE INDEX cells_by_end ON cells (ended_at) WHERE ended_at <> '';
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        label TEXT NOT NULL,
        scopes TEXT NOT NULL,
        session TEXT REFERENCES sessions (id) ON DELETE CASCADE,
        digest TEXT NOT NULL,
        created_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        revoked_at TEXT NOT NULL,
        replaced_by TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX keys_for_session ON keys (session) WHERE session IS NOT NULL;
    CREATE TABLE audit (
        number INTEGER PRIMARY KEY,
        at TEXT NOT NULL,
        project TEXT NOT NULL,
        key_id TEXT NOT NULL,
        session TEXT NOT NULL,
        "user" TEXT NOT NULL,
        action TEXT NOT NULL,
        outcome TEXT NOT NULL,
        detail TEXT NOT NULL
    );
    CREATE INDEX audit_in_order ON audit (project, at, number);
    CREATE INDEX audit_by_time ON audit (at);
    """,
    """
    CREATE INDEX cells_without_an_end_in_sandbox ON cells (sandbox, session, id) WHERE status = 'pending';
    CREATE INDEX sessions_left_over ON sessions (id) WHERE ending = 1 OR unfinished = 1;
    """,
    """
    ALTER TABLE sessions ADD COLUMN tool_execution INTEGER NOT NULL DEFAULT 1;
    CREATE INDEX audit_of_session ON audit (project, session, at, number);
    """,
    """
    ALTER TABLE sessions ADD COLUMN config TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE sessions ADD COLUMN config_version INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE sessions ADD COLUMN configured_at TEXT NOT NULL DEFAULT '';
    UPDATE sessions SET config = '{"sandbox":{"tool_execution":false}}' WHERE tool_execution = 0;
    ALTER TABLE sessions DROP COLUMN tool_execution;
    CREATE TABLE past_configurations (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        at TEXT NOT NULL,
        tier TEXT NOT NULL,
        config TEXT NOT NULL,
        PRIMARY KEY (session, version)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE connected_accounts (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        "user" TEXT NOT NULL,
        toolkit TEXT NOT NULL,
        alias TEXT NOT NULL,
        auth_config TEXT NOT NULL,
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        status_reason TEXT NOT NULL,
        scopes TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        label TEXT NOT NULL,
        sealed TEXT NOT NULL,
        revision BIGINT NOT NULL,
        holder TEXT NOT NULL DEFAULT '',
        held_until TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE INDEX accounts_of_user ON connected_accounts (project, "user", toolkit, created_at, id);
    CREATE INDEX accounts_in_order ON connected_accounts (project, created_at, id);
    CREATE TABLE auth_configs (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        toolkit TEXT NOT NULL,
        kind TEXT NOT NULL,
        client_id TEXT NOT NULL,
        scopes TEXT NOT NULL,
        created_at TEXT NOT NULL,
        sealed TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX auth_configs_of_project ON auth_configs (project, toolkit, created_at, id);
    CREATE TABLE connection_links (
        digest TEXT PRIMARY KEY,
        account TEXT NOT NULL REFERENCES connected_accounts (id) ON DELETE CASCADE,
        project TEXT NOT NULL,
        "user" TEXT NOT NULL,
        toolkit TEXT NOT NULL,
        callback_url TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        finished_at TEXT NOT NULL,
        sealed TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX links_of_account ON connection_links (account);
    CREATE UNIQUE INDEX links_by_state ON connection_links (state) WHERE state <> '';
    CREATE INDEX links_by_end ON connection_links (expires_at);
    """,
    """
    CREATE TABLE approval_marks (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        subject TEXT NOT NULL,
        state TEXT NOT NULL,
        words TEXT NOT NULL,
        until TEXT NOT NULL,
        PRIMARY KEY (session, subject)
    ) WITHOUT ROWID;
    CREATE TABLE seen_shapes (
        project TEXT NOT NULL,
        tool TEXT NOT NULL,
        calls BIGINT NOT NULL,
        shape TEXT NOT NULL,
        at TEXT NOT NULL,
        PRIMARY KEY (project, tool)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE added_toolkits (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        slug TEXT NOT NULL,
        kind TEXT NOT NULL,
        options TEXT NOT NULL,
        sealed TEXT NOT NULL,
        added_at TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE rule_counts (
        project TEXT NOT NULL,
        rule TEXT NOT NULL,
        acted BIGINT NOT NULL,
        declined BIGINT NOT NULL,
        hinted BIGINT NOT NULL,
        repeated BIGINT NOT NULL,
        undone BIGINT NOT NULL,
        PRIMARY KEY (project, rule)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE sessions ADD COLUMN runtime TEXT NOT NULL DEFAULT 'python';
    ALTER TABLE sessions ADD COLUMN context_of TEXT NOT NULL DEFAULT '';
    """,
)
_POSTGRES_WORDS = {
    " WITHOUT ROWID": "",
    # Compared by bytes, as SQLite does it; a database's own order of letters depends on where it was made.
    " TEXT": ' TEXT COLLATE "C"',
    "INTEGER PRIMARY KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
# Of all servers that use the same database, by a number that nobody else is likely to have chosen.
_MIGRATION_LOCK = 0x776F726B62656E63


def migrate_sqlite(connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest version; who comes second waits and finds it done.

    Raises:
        StoreUnavailable: the file was written by a newer version of ours.
    """
    if _sqlite_version(connection) == len(migrations):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for statement in _statements(_sqlite_version(connection), migrations):
            # Not executescript, which would commit the transaction first.
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _sqlite_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate_postgres(connection: psycopg.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """The same for a database of PostgreSQL."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
        connection.execute("CREATE TABLE IF NOT EXISTS workbench_version (version INTEGER NOT NULL)")
        found = connection.execute("SELECT version FROM workbench_version").fetchone()
        version = int(found[0]) if found else 0
        for statement in _statements(version, migrations):
            connection.execute(_for_postgres(statement).encode())
        if version < len(migrations):
            connection.execute("DELETE FROM workbench_version")
            connection.execute("INSERT INTO workbench_version (version) VALUES (%s)", (len(migrations),))


def _for_postgres(statement: str) -> str:
    for ours, theirs in _POSTGRES_WORDS.items():
        statement = statement.replace(ours, theirs)
    return statement


def _statements(version: int, migrations: tuple[str, ...]) -> list[str]:
    if version > len(migrations):
        raise StoreUnavailable(
            f"the records are of version {version} and this program knows {len(migrations)}: upgrade it"
        )
    return [statement for step in migrations[version:] for statement in step.split(";") if statement.strip()]
