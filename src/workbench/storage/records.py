"""All records in one database, be it SQLite or PostgreSQL."""

from __future__ import annotations

from workbench.model.ids import CellId, ProjectId, SandboxId, SessionId
from workbench.model.records import CellRecord
from workbench.model.session import Session
from workbench.storage import cell_rows, session_rows
from workbench.storage.added_rows import SqlAddedStore
from workbench.storage.cell_rows import SqlCellStore, cell_of
from workbench.storage.connection_rows import SqlConnectionStore
from workbench.storage.database import Connection, Database, Row, Value
from workbench.storage.key_rows import SqlAuditStore, SqlKeyStore
from workbench.storage.rule_rows import SqlRuleStore
from workbench.storage.session_rows import SqlSessionStore, session_of
from workbench.storage.tool_rows import SqlToolMemory

_BEGUN = f"""
    SELECT {session_rows.COLUMNS} FROM sessions WHERE begun = 1 AND ending = 0 AND id > ? ORDER BY id LIMIT ?
"""  # noqa: S608
_LEFT_OVER = f"""
    SELECT {session_rows.COLUMNS} FROM sessions
    WHERE (ending = 1 OR unfinished = 1) AND used_at < ? AND id > ? ORDER BY id LIMIT ?
"""  # noqa: S608
_UNBEGUN = f"""
    SELECT {session_rows.COLUMNS} FROM sessions
    WHERE begun = 0 AND ending = 0 AND unfinished = 0 AND used_at >= ? AND id > ? ORDER BY id LIMIT ?
"""  # noqa: S608
_IN_SANDBOX = f"SELECT {session_rows.COLUMNS} FROM sessions WHERE sandbox = ? ORDER BY id"  # noqa: S608
_PENDING = f"""
    SELECT sessions.project, {cell_rows.COLUMNS} FROM cells JOIN sessions ON sessions.id = cells.session
    WHERE cells.status = 'pending'
"""  # noqa: S608
_PENDING_AFTER = f"{_PENDING} AND cells.id > ? ORDER BY cells.id, cells.session LIMIT ?"
_PENDING_OF_ID = f"{_PENDING} AND cells.id = ? ORDER BY cells.session"
_OF_USER = 'IN (SELECT id FROM sessions WHERE project = ? AND "user" = ?)'
_FORGET_NAMELESS_AUDIT = """
    DELETE FROM audit WHERE project = ? AND "user" = '' AND session <> ''
    AND session IN (SELECT session FROM audit WHERE project = ? AND "user" = ?)
"""
_DROP_CELLS = """
    DELETE FROM cells WHERE (session, id) IN
    (SELECT session, id FROM cells WHERE ended_at <> '' AND ended_at < ? LIMIT ?)
"""
_DROP_AUDIT = "DELETE FROM audit WHERE number IN (SELECT number FROM audit WHERE at < ? LIMIT ?)"
# Few at a time, so that what calls wait for comes between.
_SOME = 500


class SqlHousekeeping:
    """A Housekeeping in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begun(self, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """As the contract has it."""
        return await self._sessions(_BEGUN, after or "", limit)

    async def left_over(self, before: str, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """As the contract has it."""
        return await self._sessions(_LEFT_OVER, before, after or "", limit)

    async def unbegun(self, since: str, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """As the contract has it."""
        return await self._sessions(_UNBEGUN, since, after or "", limit)

    async def in_sandbox(self, sandbox: SandboxId) -> tuple[Session, ...]:
        """As the contract has it."""
        return await self._sessions(_IN_SANDBOX, sandbox)

    async def _sessions(self, sql: str, *values: Value) -> tuple[Session, ...]:
        rows = await self._database.do(lambda connection: connection.rows(sql, *values))
        return tuple(session_of(row) for row in rows)

    async def pending(self, after: CellId | None, limit: int) -> tuple[tuple[ProjectId, CellRecord], ...]:
        """As the contract has it."""

        def read(connection: Connection) -> list[Row]:
            rows = connection.rows(_PENDING_AFTER, after or "", limit)
            if len(rows) < limit:
                return rows
            # Cells of several sessions may have the same id: all of them, else the next page begins behind some.
            last = rows[-1][2]
            return [row for row in rows if row[2] != last] + connection.rows(_PENDING_OF_ID, last)

        rows = await self._database.do(read)
        return tuple((ProjectId(row[0]), cell_of(row[1:])) for row in rows)

    async def drop_cells_ended_before(self, at: str) -> int:
        """As the contract has it."""
        return await self._drop(_DROP_CELLS, at)

    async def drop_audit_before(self, at: str) -> int:
        """As the contract has it."""
        return await self._drop(_DROP_AUDIT, at)

    async def _drop(self, sql: str, at: str) -> int:
        dropped = 0
        while some := await self._database.do(lambda connection: connection.change(sql, at, _SOME)):
            dropped += some
        return dropped

    async def forget_user(self, project: ProjectId, user: str) -> None:
        """As the contract has it."""

        def forget(connection: Connection) -> None:
            with connection.durable(), connection.together():
                connection.change(f"DELETE FROM cells WHERE session {_OF_USER}", project, user)  # noqa: S608
                connection.change(f"DELETE FROM keys WHERE session {_OF_USER}", project, user)  # noqa: S608
                connection.change(f"DELETE FROM approval_marks WHERE session {_OF_USER}", project, user)  # noqa: S608
                # Before the others, by which their sessions are known.
                connection.change(_FORGET_NAMELESS_AUDIT, project, project, user)
                connection.change('DELETE FROM audit WHERE project = ? AND "user" = ?', project, user)
                # With their links, which go along.
                connection.change('DELETE FROM connected_accounts WHERE project = ? AND "user" = ?', project, user)
                # Whose answers they were is not known.
                connection.change("DELETE FROM seen_shapes WHERE project = ?", project)
            connection.scrub(
                "sessions",
                "cells",
                "keys",
                "approval_marks",
                "audit",
                "connected_accounts",
                "connection_links",
                "seen_shapes",
            )

        await self._database.do(forget)


class SqlRecords:
    """Records in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.keys = SqlKeyStore(database)
        self.audit = SqlAuditStore(database)
        self.tools = SqlToolMemory(database)
        self.house = SqlHousekeeping(database)
        self.connections = SqlConnectionStore(database)
        self.added = SqlAddedStore(database)

    def sessions(self, project: ProjectId) -> SqlSessionStore:
        """As the contract has it."""
        return SqlSessionStore(self._database, project)

    def cells(self, project: ProjectId) -> SqlCellStore:
        """As the contract has it."""
        return SqlCellStore(self._database, project)

    def rules(self, project: ProjectId) -> SqlRuleStore:
        """As the contract has it."""
        return SqlRuleStore(self._database, project)

    async def check(self) -> None:
        """As the contract has it."""
        await self._database.do(lambda connection: connection.rows("SELECT 1 FROM sessions LIMIT 1"))

    async def aclose(self) -> None:
        """As the contract has it."""
        await self._database.aclose()
