"""What is remembered of tools, as rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.errors import NotFound
from workbench.model.approval import ApprovalMark, MarkState, SeenShape
from workbench.model.ids import MountId, ProjectId, SessionId
from workbench.storage.database import Connection, Database, Orphaned
from workbench.storage.wording import begins_of, no_such_session

_DROP_OLD = "DELETE FROM approval_marks WHERE session = ? AND until <= ?"
_KEEP = """
    INSERT INTO approval_marks (session, subject, state, words, until) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, subject) DO NOTHING
"""
_PUT = """
    INSERT INTO approval_marks (session, subject, state, words, until) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, subject) DO UPDATE
    SET state = excluded.state, words = excluded.words, until = excluded.until
"""
_MARKS = """
    SELECT subject, state, words, until FROM approval_marks WHERE session = ? AND until > ? ORDER BY subject
"""
_TAKE = "DELETE FROM approval_marks WHERE session = ? AND subject = ? AND state = ? AND until > ?"
_DROP = "DELETE FROM approval_marks WHERE session = ? AND subject = ?"
_SHAPE = "SELECT calls, shape, at FROM seen_shapes WHERE project = ? AND tool = ?"
_SAW = """
    INSERT INTO seen_shapes (project, tool, calls, shape, at) VALUES (?, ?, 1, ?, ?)
    ON CONFLICT (project, tool) DO UPDATE SET calls = seen_shapes.calls + 1, shape = excluded.shape, at = excluded.at
"""
_FORGET = "DELETE FROM seen_shapes WHERE (project = ? OR ? = '') AND substr(tool, 1, ?) = ?"


class SqlToolMemory:
    """A ToolMemory in a database. What was answered survives a crash of the machine: nothing is done twice by it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, session: SessionId, mark: ApprovalMark, now: str) -> bool:
        """As the contract has it."""
        return await self._write(_KEEP, session, mark, now) == 1

    async def put(self, session: SessionId, mark: ApprovalMark, now: str) -> None:
        """As the contract has it."""
        await self._write(_PUT, session, mark, now)

    async def _write(self, sql: str, session: SessionId, mark: ApprovalMark, now: str) -> int:
        def write(connection: Connection) -> int:
            with connection.durable(), connection.together():
                connection.change(_DROP_OLD, session, now)
                return connection.change(sql, session, mark.subject, mark.state, mark.words, mark.until)

        try:
            return await self._database.do(write)
        except Orphaned:
            raise NotFound(no_such_session(session), {"session": session}) from None

    async def marks(self, session: SessionId, now: str) -> tuple[ApprovalMark, ...]:
        """As the contract has it."""
        rows = await self._database.do(lambda connection: connection.rows(_MARKS, session, now))
        return tuple(ApprovalMark(subject=a, state=MarkState(b), words=c, until=d) for a, b, c, d in rows)

    async def take(self, session: SessionId, subject: str, now: str) -> bool:
        """As the contract has it."""

        def take(connection: Connection) -> bool:
            with connection.durable():
                return connection.change(_TAKE, session, subject, MarkState.GRANTED, now) == 1

        return await self._database.do(take)

    async def drop(self, session: SessionId, subjects: Sequence[str]) -> None:
        """As the contract has it."""

        def drop(connection: Connection) -> None:
            with connection.durable(), connection.together():
                for subject in subjects:
                    connection.change(_DROP, session, subject)

        await self._database.do(drop)

    async def saw(self, project: ProjectId, tool: str, at: str, merged: Callable[[str], str]) -> None:
        """As the contract has it."""

        def saw(connection: Connection) -> None:
            with connection.together():
                # Nobody else comes between what is read and what is written; no mount has such a name.
                connection.hold(MountId(f"shape of {project} {tool}"))
                rows = connection.rows(_SHAPE, project, tool)
                connection.change(_SAW, project, tool, merged(rows[0][1] if rows else ""), at)

        await self._database.do(saw)

    async def shapes(self, project: ProjectId, tools: Sequence[str]) -> dict[str, SeenShape]:
        """As the contract has it."""

        def read(connection: Connection) -> dict[str, SeenShape]:
            found = {}
            for tool in tools:
                for calls, shape, at in connection.rows(_SHAPE, project, tool):
                    found[tool] = SeenShape(tool=tool, calls=calls, shape=shape, at=at)
            return found

        return await self._database.do(read)

    async def forget_shapes(self, project: ProjectId | None, toolkit: str | None = None) -> int:
        """As the contract has it."""
        named, begins = project or "", begins_of(toolkit)
        return await self._database.do(lambda connection: connection.change(_FORGET, named, named, len(begins), begins))
