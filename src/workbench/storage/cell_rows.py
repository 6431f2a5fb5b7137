"""Cells and commands as rows of a table; what was asked and answered as JSON, since nobody searches in it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from workbench.contracts.storage import CellPageRequest
from workbench.errors import InternalError, NotFound
from workbench.model.corrections import counts_of
from workbench.model.execution import CellResult, CommandResult
from workbench.model.ids import CellId, ProjectId, SandboxId, SessionId
from workbench.model.records import CellKind, CellRecord, CellStatus, Problem, Progress
from workbench.storage import rule_rows
from workbench.storage.database import Connection, Database, Orphaned, Row, Value
from workbench.storage.wording import no_such_cell, no_such_session

_NAMES = ("session", "id", "kind", "idempotency_key", "digest", "sandbox", "created_at", "ended_at", "status", "asked",
          "answer")  # fmt: skip
COLUMNS = ", ".join(f"cells.{name}" for name in _NAMES)
_OF_PROJECT = "EXISTS (SELECT 1 FROM sessions WHERE sessions.id = cells.session AND sessions.project = ?)"
_ADD = f"""
    INSERT INTO cells ({", ".join(_NAMES)}, says_step) SELECT {", ".join("?" * len(_NAMES))}, ?
    WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ? AND project = ?) ON CONFLICT DO NOTHING
"""  # noqa: S608
_SELECT = f"SELECT {COLUMNS} FROM cells WHERE {_OF_PROJECT} AND session = ?"  # noqa: S608
_GET = f"{_SELECT} AND id = ?"
_WITH_IDEMPOTENCY_KEY = f"{_SELECT} AND idempotency_key = ? AND idempotency_key <> ''"
_MOVE = f"UPDATE cells SET sandbox = ? WHERE {_OF_PROJECT} AND session = ? AND id = ? AND status = 'pending'"  # noqa: S608
_FINISH = f"""
    UPDATE cells SET status = ?, ended_at = ?, answer = ?,
        idempotency_key = CASE WHEN ? = 1 THEN '' ELSE idempotency_key END
    WHERE {_OF_PROJECT} AND session = ? AND id = ? AND status = 'pending' AND (? = '' OR sandbox = ?)
    RETURNING {COLUMNS}
"""  # noqa: S608
_PENDING_IN = f"""
    SELECT {COLUMNS} FROM cells WHERE {_OF_PROJECT} AND sandbox = ? AND status = 'pending' ORDER BY session, id
"""  # noqa: S608
_OLDEST_FIRST = "ORDER BY created_at, id LIMIT ?"
_NEWEST_FIRST = "ORDER BY created_at DESC, id DESC LIMIT ?"
_LATEST_STEP = f"{_SELECT} AND says_step = 1 {_NEWEST_FIRST}"
_LAST_END = f"SELECT max(ended_at) FROM cells WHERE {_OF_PROJECT} AND session = ?"  # noqa: S608
# A record that is in the way may be cleared away before it is read; then there is room.
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    code: str
    limit_s: float
    progress: Progress


_encode = msgspec.json.Encoder().encode
_decode_asked = msgspec.json.Decoder(_Asked).decode
_decode_problem = msgspec.json.Decoder(Problem).decode
_decode_cell = msgspec.json.Decoder(CellResult).decode
_decode_command = msgspec.json.Decoder(CommandResult).decode


class SqlCellStore:
    """A CellStore in a database."""

    def __init__(self, database: Database, project: ProjectId) -> None:
        self._database = database
        self._project = project

    async def add(self, record: CellRecord) -> CellRecord | None:
        """As the contract has it."""
        nowhere = NotFound(no_such_session(record.session), {"session": record.session})

        def insert(connection: Connection) -> Row | None:
            values = (*_values(record), record.session, self._project)
            for _ in range(_TRIES):
                try:
                    if connection.change(_ADD, *values):
                        return None
                except Orphaned:
                    # The session went between the look at it and the end of the statement.
                    raise nowhere from None
                if known := self._known(connection, record):
                    return known
            raise nowhere

        row = await self._database.do(insert)
        return cell_of(row) if row else None

    def _known(self, connection: Connection, record: CellRecord) -> Row | None:
        rows = connection.rows(_GET, self._project, record.session, record.id)
        rows = rows or connection.rows(_WITH_IDEMPOTENCY_KEY, self._project, record.session, record.idempotency_key)
        return rows[0] if rows else None

    async def get(self, session: SessionId, cell: CellId) -> CellRecord:
        """As the contract has it."""
        found = await self._first(_GET, self._project, session, cell)
        if found is None:
            raise NotFound(no_such_cell(session, cell), {"session": session, "cell": cell})
        return found

    async def with_idempotency_key(self, session: SessionId, key: str) -> CellRecord | None:
        """As the contract has it."""
        return await self._first(_WITH_IDEMPOTENCY_KEY, self._project, session, key)

    async def _first(self, sql: str, *values: Value) -> CellRecord | None:
        rows = await self._database.do(lambda connection: connection.rows(sql, *values))
        return cell_of(rows[0]) if rows else None

    async def move(self, session: SessionId, cell: CellId, sandbox: SandboxId) -> None:
        """As the contract has it."""
        await self._database.do(lambda connection: connection.change(_MOVE, sandbox, self._project, session, cell))

    async def finish(
        self,
        session: SessionId,
        cell: CellId,
        at: str,
        end: CellResult | CommandResult | Problem,
        *,
        sandbox: SandboxId | None = None,
        free_key: bool = False,
    ) -> CellRecord | None:
        """As the contract has it."""
        status = CellStatus.FAILED if isinstance(end, Problem) else CellStatus.ENDED

        def update(connection: Connection) -> list[Row]:
            name = (self._project, session, cell)
            told = (status.value, at, _encode(end).decode(), int(free_key))
            place = (sandbox or "", sandbox or "")
            if isinstance(end, Problem) or not counts_of(end):
                finished = connection.rows(_FINISH, *told, *name, *place)
            else:
                with connection.together():
                    if finished := connection.rows(_FINISH, *told, *name, *place):
                        rule_rows.count(connection, self._project, end)
            return finished or connection.rows(_GET, *name)

        rows = await self._database.do(update)
        return cell_of(rows[0]) if rows else None

    async def pending_in(self, sandbox: SandboxId) -> tuple[CellRecord, ...]:
        """As the contract has it."""
        rows = await self._database.do(lambda connection: connection.rows(_PENDING_IN, self._project, sandbox))
        return tuple(cell_of(row) for row in rows)

    async def list(self, request: CellPageRequest) -> tuple[CellRecord, ...]:
        """As the contract has it."""
        sql, values = _SELECT, [self._project, request.session]
        if request.after is not None:
            sql += f" AND (created_at, id) {'<' if request.newest_first else '>'} (?, ?)"
            values += request.after
        sql += f" {_NEWEST_FIRST if request.newest_first else _OLDEST_FIRST}"
        rows = await self._database.do(lambda connection: connection.rows(sql, *values, request.limit))
        return tuple(cell_of(row) for row in rows)

    async def latest_step(self, session: SessionId) -> CellRecord | None:
        """As the contract has it."""
        return await self._first(_LATEST_STEP, self._project, session, 1)

    async def last_end(self, sessions: tuple[SessionId, ...]) -> str:
        """As the contract has it."""

        def read(connection: Connection) -> str:
            ends = (connection.rows(_LAST_END, self._project, session)[0][0] for session in sessions)
            return max((end for end in ends if end is not None), default="")

        return await self._database.do(read)


def _values(record: CellRecord) -> tuple[Value, ...]:
    asked = _Asked(code=record.code, limit_s=record.limit_s, progress=record.progress)
    end = record.result or record.problem
    return (record.session, record.id, record.kind.value, record.idempotency_key, record.digest, record.sandbox,
            record.created_at, record.ended_at, record.status.value, _encode(asked).decode(),
            _encode(end).decode() if end else "", int(record.progress != Progress()))  # fmt: skip


def cell_of(row: Row) -> CellRecord:
    """The record in a row of `COLUMNS`."""
    kept = dict(zip(_NAMES, row, strict=True))
    asked = _asked(kept["asked"])
    kind = CellKind(kept["kind"])
    status, result, problem = _end(kind, CellStatus(kept["status"]), kept["id"], kept["answer"])
    return CellRecord(
        id=CellId(kept["id"]),
        session=SessionId(kept["session"]),
        kind=kind,
        code=asked.code,
        limit_s=asked.limit_s,
        progress=asked.progress,
        idempotency_key=kept["idempotency_key"],
        digest=kept["digest"],
        sandbox=SandboxId(kept["sandbox"]),
        created_at=kept["created_at"],
        ended_at=kept["ended_at"],
        status=status,
        result=result,
        problem=problem,
    )


def _asked(text: str) -> _Asked:
    """Or that it cannot be read, which is no reason not to find its end."""
    try:
        return _decode_asked(text)
    except (msgspec.MsgspecError, UnicodeError) as unread:
        return _Asked(code=f"# what was asked cannot be read any more: {unread}", limit_s=0.0, progress=Progress())


def _end(
    kind: CellKind, status: CellStatus, name: str, answer: str
) -> tuple[CellStatus, CellResult | CommandResult | None, Problem | None]:
    try:
        if status is CellStatus.FAILED:
            return status, None, _decode_problem(answer)
        if status is CellStatus.ENDED:
            return status, (_decode_cell if kind is CellKind.CELL else _decode_command)(answer), None
    except (msgspec.MsgspecError, UnicodeError) as unread:
        problem = InternalError(f"the end of {kind} {name} cannot be read any more: {unread}", {"cell": name})
        return CellStatus.FAILED, None, Problem.of(problem)
    return status, None, None
