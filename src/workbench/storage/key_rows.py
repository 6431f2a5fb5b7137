"""Keys, tokens and the audit as rows of tables."""

from __future__ import annotations

from workbench.errors import Conflict, NotFound
from workbench.model.access import Key, Scope
from workbench.model.ids import KeyId, MountId, ProjectId, SessionId
from workbench.model.records import AuditEntry
from workbench.storage.database import Connection, Database, Orphaned, Refused, Row, Value
from workbench.storage.wording import key_exists_already, no_such_key, no_such_session

_KEY_NAMES = ("id", "project", "label", "scopes", "session", "digest", "created_at", "expires_at", "revoked_at",
              "replaced_by")  # fmt: skip
_KEY_COLUMNS = ", ".join(_KEY_NAMES)
_ADD_KEY = f"INSERT INTO keys ({_KEY_COLUMNS}) VALUES ({', '.join('?' * len(_KEY_NAMES))})"  # noqa: S608
_IS_THERE_ANY = "SELECT 1 FROM keys WHERE session IS NULL LIMIT 1"
# What nobody else holds: no mount has such a name.
_FIRST = MountId("the first key")
_GET_KEY = f"SELECT {_KEY_COLUMNS} FROM keys WHERE id = ?"  # noqa: S608
_LIST_KEYS = f"SELECT {_KEY_COLUMNS} FROM keys WHERE session IS NULL ORDER BY created_at, id"  # noqa: S608
_LIST_KEYS_OF_PROJECT = f"""
    SELECT {_KEY_COLUMNS} FROM keys WHERE session IS NULL AND project = ? ORDER BY created_at, id
"""  # noqa: S608
_REVOKE = """
    UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at = '' AND (expires_at = '' OR expires_at > ?)
"""
_REPLACE_KEY = """
    UPDATE keys
    SET replaced_by = ?, expires_at = CASE WHEN expires_at = '' OR expires_at > ? THEN ? ELSE expires_at END
    WHERE id = ? AND revoked_at = '' AND replaced_by = ''
"""
_REMOVE_TOKENS = "DELETE FROM keys WHERE session IS NOT NULL AND expires_at <> '' AND expires_at < ?"
_AUDIT_NAMES = ("at", "project", "key_id", "session", '"user"', "action", "outcome", "detail")
_AUDIT_COLUMNS = ", ".join(_AUDIT_NAMES)
_ADD_AUDIT = f"""
    INSERT INTO audit ({_AUDIT_COLUMNS}) VALUES (?, ?, ?, ?,
        CASE WHEN ? <> '' THEN ? ELSE
            COALESCE((SELECT "user" FROM sessions WHERE sessions.id = ? AND sessions.project = ?), '') END,
        ?, ?, ?)
"""  # noqa: S608
_LIST_AUDIT = f"SELECT {_AUDIT_COLUMNS} FROM audit WHERE project = ?"  # noqa: S608


class SqlKeyStore:
    """A KeyStore in a database. What is changed survives a crash of the machine: a revoked key must not come back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: Key) -> None:
        """As the contract has it."""

        def insert(connection: Connection) -> None:
            with connection.durable():
                _add(connection, key)

        await self._database.do(insert)

    async def add_first(self, key: Key) -> bool:
        """As the contract has it."""

        def insert(connection: Connection) -> bool:
            with connection.durable(), connection.together():
                connection.hold(_FIRST)
                if connection.rows(_IS_THERE_ANY):
                    return False
                _add(connection, key)
                return True

        return await self._database.do(insert)

    async def get(self, key: KeyId) -> Key:
        """As the contract has it."""
        rows = await self._database.do(lambda connection: connection.rows(_GET_KEY, key))
        if not rows:
            raise NotFound(no_such_key(key), {"key": key})
        return _key(rows[0])

    async def list(self, project: ProjectId | None) -> tuple[Key, ...]:
        """As the contract has it."""
        if project is None:
            rows = await self._database.do(lambda connection: connection.rows(_LIST_KEYS))
        else:
            rows = await self._database.do(lambda connection: connection.rows(_LIST_KEYS_OF_PROJECT, project))
        return tuple(_key(row) for row in rows)

    async def revoke(self, key: KeyId, at: str) -> bool:
        """As the contract has it."""

        def update(connection: Connection) -> bool:
            with connection.durable():
                return connection.change(_REVOKE, at, key, at) == 1

        return await self._database.do(update)

    async def rotate(self, old: KeyId, new: Key, expires_at: str) -> bool:
        """As the contract has it."""

        def update(connection: Connection) -> bool:
            with connection.durable(), connection.together():
                done = connection.change(_REPLACE_KEY, new.id, expires_at, expires_at, old) == 1
                if done:
                    _add(connection, new)
                return done

        return await self._database.do(update)

    async def remove_tokens_expired_before(self, at: str) -> int:
        """As the contract has it."""
        return await self._database.do(lambda connection: connection.change(_REMOVE_TOKENS, at))


class SqlAuditStore:
    """An AuditStore in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, entry: AuditEntry) -> None:
        """As the contract has it."""
        session = entry.session or ""
        values = (entry.at, entry.project, entry.key or "", session, entry.user, entry.user, session, entry.project,
                  entry.action, entry.outcome, entry.detail)  # fmt: skip
        await self._database.do(lambda connection: connection.change(_ADD_AUDIT, *values))

    async def list(
        self, project: ProjectId, *, before: str = "", session: SessionId | None = None, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        """As the contract has it."""
        also = {" AND at < ?": before, " AND session = ?": session}
        values = [project, *filter(None, also.values())]
        sql = _LIST_AUDIT + "".join(words for words, value in also.items() if value)
        sql += " ORDER BY at DESC, number DESC LIMIT ?"
        rows = await self._database.do(lambda connection: connection.rows(sql, *values, limit))
        return tuple(_entry(row) for row in rows)


def _add(connection: Connection, key: Key) -> None:
    scopes = " ".join(sorted(scope.value for scope in key.scopes))
    values: tuple[Value, ...] = (key.id, key.project, key.label, scopes, key.session, key.digest, key.created_at,
                                 key.expires_at, key.revoked_at, key.replaced_by or "")  # fmt: skip
    try:
        connection.change(_ADD_KEY, *values)
    except Orphaned:
        assert key.session is not None
        raise NotFound(no_such_session(key.session), {"session": key.session}) from None
    except Refused:
        raise Conflict(key_exists_already(key.id), {"key": key.id}) from None


def _key(row: Row) -> Key:
    kept = dict(zip(_KEY_NAMES, row, strict=True))
    return Key(
        id=KeyId(kept["id"]),
        project=ProjectId(kept["project"]),
        label=kept["label"],
        scopes=frozenset(Scope(scope) for scope in kept["scopes"].split()),
        session=SessionId(kept["session"]) if kept["session"] else None,
        digest=kept["digest"],
        created_at=kept["created_at"],
        expires_at=kept["expires_at"],
        revoked_at=kept["revoked_at"],
        replaced_by=KeyId(kept["replaced_by"]) if kept["replaced_by"] else None,
    )


def _entry(row: Row) -> AuditEntry:
    at, project, key, session, user, action, outcome, detail = row
    return AuditEntry(
        at=at,
        project=ProjectId(project),
        key=KeyId(key) if key else None,
        session=SessionId(session) if session else None,
        user=user,
        action=action,
        outcome=outcome,
        detail=detail,
    )
