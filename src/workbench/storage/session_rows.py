"""Sessions as rows of a table."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import msgspec

from workbench.contracts.storage import PageRequest
from workbench.errors import Conflict, NotFound
from workbench.model.configuration import MOST_VERSIONS, ConfigurationRecord, SessionConfig
from workbench.model.ids import KernelId, MountId, ProjectId, SandboxId, SessionId
from workbench.model.session import IdleLimits, Session, SessionSpec
from workbench.model.tier import Tier, tier_named
from workbench.storage.database import Connection, Database, Refused, Row, Value
from workbench.storage.wording import exists_already, files_in_use, no_such_session

_FIXED = ("id", "project", '"user"', "runtime", "env", "start_up", "working_folder", "mount", "principal", "parent",
          "context_of", "kernel", "used_at")  # fmt: skip
# What a `replace` compares.
_STATE = ("created_at", "tier", "snapshots", "freeze_after_s", "end_after_s", "sandbox", "begun", "epoch", "last_loss",
          "unfinished", "ending", "config_version", "configured_at")  # fmt: skip
# What it writes. A configuration is known by its version; as text it may be what an older version of ours wrote.
_WRITTEN = (*_STATE, "config")
_ALL = (*_FIXED, *_WRITTEN)
COLUMNS = ", ".join(_ALL)
_INSERT = f"INSERT INTO sessions ({COLUMNS}) SELECT {', '.join('?' * len(_ALL))}"
_INSERT_FIRST = f"{_INSERT} WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = ? OR mount = ?)"  # noqa: S608
_SEEN = f"id = ? AND project = ? AND {' AND '.join(f'{column} = ?' for column in _STATE)}"
_IS_AS_SEEN = f"SELECT 1 FROM sessions WHERE {_SEEN}"  # noqa: S608
_REPLACE = f"UPDATE sessions SET {', '.join(f'{column} = ?' for column in _WRITTEN)} WHERE {_SEEN}"  # noqa: S608
_KEEP_CONFIGURATION = """
    INSERT INTO past_configurations (session, version, at, tier, config) VALUES (?, ?, ?, ?, ?)
"""
_DROP_CONFIGURATIONS = "DELETE FROM past_configurations WHERE session = ? AND version <= ?"
_PAST_CONFIGURATIONS = """
    SELECT past.version, past.at, past.tier, past.config FROM past_configurations AS past
    JOIN sessions ON sessions.id = past.session
    WHERE past.session = ? AND sessions.project = ? AND past.version < ? ORDER BY past.version DESC LIMIT ?
"""
_TAKE_ALONG = """
    UPDATE sessions
    SET sandbox = ?, begun = 0, epoch = epoch + 1, last_loss = CASE WHEN begun = 1 THEN ? ELSE last_loss END
    WHERE sandbox = ?
"""
_GET = f"SELECT {COLUMNS} FROM sessions WHERE id = ? AND project = ?"  # noqa: S608
_USE = f"""
    UPDATE sessions SET used_at = CASE WHEN used_at < ? THEN ? ELSE used_at END
    WHERE id = ? AND project = ? RETURNING {COLUMNS}
"""  # noqa: S608
_LIST = f"SELECT {COLUMNS} FROM sessions WHERE project = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608
_LIST_OF_USER = f"""
    SELECT {COLUMNS} FROM sessions WHERE project = ? AND "user" = ? AND id > ? ORDER BY id LIMIT ?
"""  # noqa: S608
_FAMILY = f"SELECT {COLUMNS} FROM sessions WHERE mount = ? ORDER BY id"  # noqa: S608
_REMOVE = "DELETE FROM sessions WHERE id = ? AND project = ? AND created_at = ?"
_REMOVE_UNLESS_LAST = f"""
    {_REMOVE}
    AND EXISTS (SELECT 1 FROM sessions AS other WHERE other.mount = sessions.mount AND other.id <> sessions.id)
"""  # noqa: S608
# What the table has for a limit that is not set: NULL equals nothing, itself neither.
_UNSET = -1
_encode = msgspec.json.Encoder().encode
_decode_config = msgspec.json.Decoder(SessionConfig).decode


class SqlSessionStore:
    """A SessionStore in a database."""

    def __init__(self, database: Database, project: ProjectId) -> None:
        self._database = database
        self._project = project

    async def add(self, session: Session) -> None:
        """As the contract has it."""

        def insert(connection: Connection) -> None:
            with connection.together(), _taken_if_refused(session):
                connection.hold(session.mount)
                if not connection.change(_INSERT_FIRST, *_values(session), session.spec.id, session.mount):
                    _check_free(connection, session)
                    raise Conflict(files_in_use(session.spec.id), {"session": session.spec.id})

        await self._database.do(insert)

    async def add_branch(self, branch: Session, seen: Session) -> bool:
        """As the contract has it."""

        def insert(connection: Connection) -> bool:
            with connection.together(), _taken_if_refused(branch):
                connection.hold(seen.mount)
                _check_free(connection, branch)
                # Held: else it could be on its way out, with a family that has no such member yet.
                if not connection.rows_held(_IS_AS_SEEN, *_as_seen(seen)):
                    return False
                connection.change(_INSERT, *_values(branch))
                return True

        return await self._database.do(insert)

    async def get(self, session: SessionId) -> Session:
        """As the contract has it."""
        return await self._one(session, _GET, session, self._project)

    async def use(self, session: SessionId, at: str) -> Session:
        """As the contract has it."""
        return await self._one(session, _USE, at, at, session, self._project)

    async def _one(self, session: SessionId, sql: str, *values: Value) -> Session:
        rows = await self._database.do(lambda connection: connection.rows(sql, *values))
        if not rows:
            raise NotFound(no_such_session(session), {"session": session})
        return session_of(rows[0])

    async def list(self, request: PageRequest) -> tuple[Session, ...]:
        """As the contract has it."""
        after = request.after or ""
        if request.user is None:
            return await self._many(_LIST, self._project, after, request.limit)
        return await self._many(_LIST_OF_USER, self._project, request.user, after, request.limit)

    async def family(self, mount: MountId) -> tuple[Session, ...]:
        """As the contract has it."""
        return await self._many(_FAMILY, mount)

    async def _many(self, sql: str, *values: Value) -> tuple[Session, ...]:
        rows = await self._database.do(lambda connection: connection.rows(sql, *values))
        return tuple(session_of(row) for row in rows)

    async def replace(self, seen: Session, new: Session, *, tier_before: str = "") -> bool:
        """As the contract has it."""

        def update(connection: Connection) -> bool:
            if new.config_version != seen.config_version:
                return _reconfigure(connection, seen, new, tier_before or seen.spec.tier.name)
            with connection.durable() if new.epoch != seen.epoch else contextlib.nullcontext():
                return connection.change(_REPLACE, *_written(new), *_as_seen(seen)) == 1

        return await self._database.do(update)

    async def move(self, seen: Session, new: Session, reason: str) -> bool:
        """As the contract has it."""

        def update(connection: Connection) -> bool:
            with connection.durable(), connection.together():
                connection.hold(seen.mount)
                moved = connection.change(_REPLACE, *_written(new), *_as_seen(seen)) == 1
                if moved:
                    connection.change(_TAKE_ALONG, new.sandbox, reason, seen.sandbox)
                return moved

        return await self._database.do(update)

    async def past_configurations(self, session: SessionId, before: int, limit: int) -> tuple[ConfigurationRecord, ...]:
        """As the contract has it."""
        rows = await self._database.do(
            lambda connection: connection.rows(_PAST_CONFIGURATIONS, session, self._project, before, limit)
        )
        return tuple(
            ConfigurationRecord(version=version, at=at, tier=tier, config=_decode_config(config))
            for version, at, tier, config in rows
        )

    async def change_tier(self, sandbox: SandboxId, tier: Tier, *, cold: bool) -> bool:
        """As the contract has it."""

        def update(connection: Connection) -> bool:
            with connection.together():
                mounts = connection.rows("SELECT mount FROM sessions WHERE sandbox = ? LIMIT 1", sandbox)
                if not mounts:
                    return False
                connection.hold(mounts[0][0])
                begun = connection.rows_held("SELECT begun FROM sessions WHERE sandbox = ? ORDER BY id", sandbox)
                if cold and (1,) in begun:
                    return False
                return connection.change("UPDATE sessions SET tier = ? WHERE sandbox = ?", tier.name, sandbox) > 0

        return await self._database.do(update)

    async def remove_unless_last(self, session: Session) -> bool:
        """As the contract has it."""

        def remove(connection: Connection) -> bool:
            with connection.together():
                connection.hold(session.mount)
                return connection.change(_REMOVE_UNLESS_LAST, *_name(session)) == 1

        return await self._database.do(remove)

    async def remove(self, session: Session) -> None:
        """As the contract has it."""
        await self._database.do(lambda connection: connection.change(_REMOVE, *_name(session)))


def _reconfigure(connection: Connection, seen: Session, new: Session, tier: str) -> bool:
    """The one before goes to those of the past, in the same step."""
    with connection.together():
        if connection.change(_REPLACE, *_written(new), *_as_seen(seen)) != 1:
            return False
        spec, since = seen.spec, seen.configured_at or seen.created_at
        connection.change(_KEEP_CONFIGURATION, spec.id, seen.config_version, since, tier, _encoded(spec))
        connection.change(_DROP_CONFIGURATIONS, spec.id, new.config_version - MOST_VERSIONS)
        return True


@contextlib.contextmanager
def _taken_if_refused(session: Session) -> Iterator[None]:
    try:
        yield
    except Refused:
        raise _taken(session) from None


def _check_free(connection: Connection, session: Session) -> None:
    if connection.rows("SELECT 1 FROM sessions WHERE id = ?", session.spec.id):
        raise _taken(session)


def _taken(session: Session) -> Conflict:
    return Conflict(exists_already(session.spec.id), {"session": session.spec.id})


def _values(session: Session) -> tuple[Value, ...]:
    return (*_fixed(session), *_written(session))


def _fixed(session: Session) -> tuple[Value, ...]:
    spec = session.spec
    return (spec.id, spec.project, spec.user, spec.runtime, json.dumps(spec.env), spec.start_up, spec.working_folder,
            session.mount, session.principal, session.parent or "", session.context_of or "",
            session.kernel, session.used_at)  # fmt: skip


def _state(session: Session) -> tuple[Value, ...]:
    spec, idle = session.spec, session.spec.idle
    # Numbers for what is true: PostgreSQL takes no truth for one.
    return (session.created_at, spec.tier.name, int(spec.snapshots), _limit(idle.freeze_after_s),
            _limit(idle.end_after_s), session.sandbox, int(session.begun), session.epoch, session.last_loss,
            int(session.unfinished), int(session.ending), session.config_version, session.configured_at)  # fmt: skip


def _written(session: Session) -> tuple[Value, ...]:
    return (*_state(session), _encoded(session.spec))


def _encoded(spec: SessionSpec) -> str:
    return _encode(spec.config).decode()


def _as_seen(seen: Session) -> tuple[Value, ...]:
    return (seen.spec.id, seen.spec.project, *_state(seen))


def _name(session: Session) -> tuple[Value, ...]:
    return (session.spec.id, session.spec.project, session.created_at)


def _limit(seconds: int | None) -> int:
    return _UNSET if seconds is None else seconds


def session_of(row: Row) -> Session:
    """The record in a row of `COLUMNS`."""
    kept = dict(zip(_ALL, row, strict=True))
    freeze, end = kept["freeze_after_s"], kept["end_after_s"]
    return Session(
        spec=SessionSpec(
            id=SessionId(kept["id"]),
            project=ProjectId(kept["project"]),
            user=kept['"user"'],
            runtime=kept["runtime"],
            tier=tier_named(kept["tier"]),
            env=json.loads(kept["env"]),
            start_up=kept["start_up"],
            working_folder=kept["working_folder"],
            snapshots=bool(kept["snapshots"]),
            idle=IdleLimits(
                freeze_after_s=None if freeze == _UNSET else freeze, end_after_s=None if end == _UNSET else end
            ),
            config=_decode_config(kept["config"]),
        ),
        created_at=kept["created_at"],
        used_at=kept["used_at"],
        mount=MountId(kept["mount"]),
        principal=SessionId(kept["principal"]),
        parent=SessionId(kept["parent"]) if kept["parent"] else None,
        context_of=SessionId(kept["context_of"]) if kept["context_of"] else None,
        kernel=KernelId(kept["kernel"]),
        sandbox=SandboxId(kept["sandbox"]),
        begun=bool(kept["begun"]),
        epoch=kept["epoch"],
        config_version=kept["config_version"],
        configured_at=kept["configured_at"],
        last_loss=kept["last_loss"],
        unfinished=bool(kept["unfinished"]),
        ending=bool(kept["ending"]),
    )
