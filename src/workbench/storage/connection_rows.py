"""Connected accounts, auth configs and links to connect by, as rows of tables. Secrets come sealed, and stay so."""

from __future__ import annotations

import base64
import json

from workbench.contracts.connections import AccountsRequest, KeptAccount
from workbench.errors import Conflict, NotFound
from workbench.model.connection import (
    AccountId,
    AuthConfig,
    AuthConfigId,
    ConnectedAccount,
    ConnectionStatus,
    PendingLink,
)
from workbench.model.ids import ProjectId
from workbench.model.toolkit import AuthKind
from workbench.storage.database import Connection, Database, Orphaned, Refused, Row, Value
from workbench.storage.wording import (
    account_exists_already,
    config_exists_already,
    no_such_account,
    no_such_config,
    no_such_link,
)

_NAMES = ("id", "project", '"user"', "toolkit", "alias", "auth_config", "kind", "status", "status_reason", "scopes",
          "created_at", "updated_at", "expires_at", "label")  # fmt: skip
_KEPT = ", ".join((*_NAMES, "sealed", "revision"))
_ADD = f"INSERT INTO connected_accounts ({_KEPT}) VALUES ({', '.join('?' * (len(_NAMES) + 2))})"  # noqa: S608
_GET = f"SELECT {_KEPT} FROM connected_accounts WHERE project = ? AND id = ?"  # noqa: S608
_LIST = f"SELECT {', '.join(_NAMES)} FROM connected_accounts WHERE project = ?"  # noqa: S608
_REPLACE = """
    UPDATE connected_accounts SET alias = ?, auth_config = ?, kind = ?, status = ?, status_reason = ?, scopes = ?,
        created_at = ?, updated_at = ?, expires_at = ?, label = ?, sealed = ?, revision = revision + 1
    WHERE id = ? AND project = ? AND revision = ?
"""
_REMOVE = "DELETE FROM connected_accounts WHERE project = ? AND id = ?"
_HOLD = """
    UPDATE connected_accounts SET holder = ?, held_until = ?
    WHERE id = ? AND (holder = ? OR holder = '' OR held_until < ?)
"""
_LET_GO = "UPDATE connected_accounts SET holder = '', held_until = '' WHERE id = ? AND holder = ?"
_CONFIG_NAMES = ("id", "project", "toolkit", "kind", "client_id", "scopes", "created_at")
_CONFIG = ", ".join(_CONFIG_NAMES)
_ADD_CONFIG = f"INSERT INTO auth_configs ({_CONFIG}, sealed) VALUES ({', '.join('?' * 8)})"  # noqa: S608
_GET_CONFIG = f"SELECT {_CONFIG}, sealed FROM auth_configs WHERE project = ? AND id = ?"  # noqa: S608
_LIST_CONFIGS = f"SELECT {_CONFIG} FROM auth_configs WHERE project = ?"  # noqa: S608
_REMOVE_CONFIG = "DELETE FROM auth_configs WHERE project = ? AND id = ?"
_LINK_NAMES = ("digest", "account", "project", '"user"', "toolkit", "callback_url", "state", "created_at",
               "expires_at", "finished_at")  # fmt: skip
_LINK = ", ".join(_LINK_NAMES)
_ADD_LINK = f"INSERT INTO connection_links ({_LINK}, sealed) VALUES ({', '.join('?' * 11)})"  # noqa: S608
_GET_LINK = f"SELECT {_LINK}, sealed FROM connection_links WHERE digest = ?"  # noqa: S608
_LINK_BY_STATE = f"SELECT {_LINK}, sealed FROM connection_links WHERE state = ? AND state <> ''"  # noqa: S608
_REPLACE_LINK = """
    UPDATE connection_links SET callback_url = ?, state = ?, expires_at = ?, finished_at = ?, sealed = ?
    WHERE digest = ? AND state = ? AND finished_at = ?
"""
_EXPIRE_UNUSED = """
    UPDATE connected_accounts SET status = ?, status_reason = ?, updated_at = ?, revision = revision + 1
    WHERE status = ? AND updated_at < ?
"""
_DROP_LINKS = "DELETE FROM connection_links WHERE expires_at < ?"
# By which `sealed_under` names what it found: the table, its key, and one letter to tell them by.
_SEALED = {
    "a": ("connected_accounts", "id"),
    "c": ("auth_configs", "id"),
    "l": ("connection_links", "digest"),
    "t": ("added_toolkits", "id"),
}


class SqlConnectionStore:
    """A ConnectionStore in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, account: ConnectedAccount, sealed: bytes = b"") -> None:
        """As the contract has it."""
        try:
            await self._changed(_ADD, *_account_values(account), _text(sealed), 1)
        except Refused:
            raise Conflict(account_exists_already(account.id), {"connected_account": account.id}) from None

    async def get(self, project: ProjectId, account: AccountId) -> KeptAccount:
        """As the contract has it."""
        rows = await self._database.do(lambda connection: connection.rows(_GET, project, account))
        if not rows:
            raise NotFound(no_such_account(account), {"connected_account": account[:60]})
        *record, sealed, revision = rows[0]
        return KeptAccount(account=_account(tuple(record)), sealed=_bytes(sealed), revision=revision)

    async def list(self, request: AccountsRequest) -> tuple[ConnectedAccount, ...]:
        """As the contract has it."""
        sql = _LIST
        values: list[Value] = [request.project]
        for words, value in ((' AND "user" = ?', request.user), (" AND toolkit = ?", request.toolkit)):
            if value is not None:
                sql += words
                values.append(value)
        if request.after is not None:
            sql += " AND (created_at, id) > (?, ?)"
            values += request.after
        sql += " ORDER BY created_at, id LIMIT ?"
        rows = await self._database.do(lambda connection: connection.rows(sql, *values, request.limit))
        return tuple(_account(row) for row in rows)

    async def replace(self, seen: KeptAccount, new: ConnectedAccount, sealed: bytes) -> bool:
        """As the contract has it."""
        _, _, _, _, *changing = _account_values(new)
        old = seen.account
        return await self._changed(_REPLACE, *changing, _text(sealed), old.id, old.project, seen.revision) == 1

    async def remove(self, project: ProjectId, account: AccountId) -> bool:
        """As the contract has it."""
        return await self._changed(_REMOVE, project, account) == 1

    async def hold(self, account: AccountId, holder: str, now: str, until: str) -> bool:
        """As the contract has it."""
        return await self._changed(_HOLD, holder, until, account, holder, now) == 1

    async def let_go(self, account: AccountId, holder: str) -> None:
        """As the contract has it."""
        await self._changed(_LET_GO, account, holder)

    async def add_config(self, config: AuthConfig, sealed: bytes = b"") -> None:
        """As the contract has it."""
        values = (config.id, config.project, config.toolkit, config.kind.value, config.client_id,
                  json.dumps(config.scopes), config.created_at, _text(sealed))  # fmt: skip
        try:
            await self._changed(_ADD_CONFIG, *values)
        except Refused:
            raise Conflict(config_exists_already(config.id), {"auth_config": config.id}) from None

    async def config(self, project: ProjectId, config: AuthConfigId) -> tuple[AuthConfig, bytes]:
        """As the contract has it."""
        rows = await self._database.do(lambda connection: connection.rows(_GET_CONFIG, project, config))
        if not rows:
            raise NotFound(no_such_config(config), {"auth_config": config[:60]})
        *record, sealed = rows[0]
        return _config(tuple(record)), _bytes(sealed)

    async def configs(self, project: ProjectId, toolkit: str | None = None) -> tuple[AuthConfig, ...]:
        """As the contract has it."""
        also = ("", ()) if toolkit is None else (" AND toolkit = ?", (toolkit,))
        sql = f"{_LIST_CONFIGS}{also[0]} ORDER BY created_at DESC, id DESC"
        rows = await self._database.do(lambda connection: connection.rows(sql, project, *also[1]))
        return tuple(_config(row) for row in rows)

    async def remove_config(self, project: ProjectId, config: AuthConfigId) -> bool:
        """As the contract has it."""
        return await self._changed(_REMOVE_CONFIG, project, config) == 1

    async def add_link(self, link: PendingLink, sealed: bytes = b"") -> None:
        """As the contract has it."""
        values = (link.digest, link.account, link.project, link.user, link.toolkit, link.callback_url, link.state,
                  link.created_at, link.expires_at, link.finished_at, _text(sealed))  # fmt: skip
        try:
            await self._changed(_ADD_LINK, *values)
        except Orphaned:
            raise NotFound(no_such_account(link.account), {"connected_account": link.account}) from None

    async def link(self, digest: str) -> tuple[PendingLink, bytes]:
        """As the contract has it."""
        return await self._link(_GET_LINK, digest)

    async def link_by_state(self, state: str) -> tuple[PendingLink, bytes]:
        """As the contract has it."""
        return await self._link(_LINK_BY_STATE, state)

    async def _link(self, sql: str, value: str) -> tuple[PendingLink, bytes]:
        rows = await self._database.do(lambda connection: connection.rows(sql, value))
        if not rows:
            raise NotFound(no_such_link())
        *record, sealed = rows[0]
        return _pending(tuple(record)), _bytes(sealed)

    async def replace_link(self, seen: PendingLink, new: PendingLink, sealed: bytes) -> bool:
        """As the contract has it."""
        values = (new.callback_url, new.state, new.expires_at, new.finished_at, _text(sealed))
        return await self._changed(_REPLACE_LINK, *values, seen.digest, seen.state, seen.finished_at) == 1

    async def drop_links_expired_before(self, at: str) -> int:
        """As the contract has it."""
        return await self._changed(_DROP_LINKS, at)

    async def expire_unused(self, before: str, now: str, why: str) -> int:
        """As the contract has it."""
        expired, initiated = ConnectionStatus.EXPIRED.value, ConnectionStatus.INITIATED.value
        return await self._changed(_EXPIRE_UNUSED, expired, why, now, initiated, before)

    async def sealed_under(self, after: str, limit: int) -> tuple[tuple[str, bytes], ...]:
        """As the contract has it."""

        def read(connection: Connection) -> list[Row]:
            found: list[Row] = []
            for letter, (table, key) in _SEALED.items():
                # One letter before the key, so that names of a table sort together, and tables one after another.
                last = after[1:] if after[:1] == letter else ""
                if after[:1] <= letter and len(found) < limit:
                    sql = f"SELECT '{letter}' || {key}, sealed FROM {table} WHERE {key} > ? AND sealed <> ''"  # noqa: S608
                    found += connection.rows(f"{sql} ORDER BY {key} LIMIT ?", last, limit - len(found))
            return found

        return tuple((name, _bytes(sealed)) for name, sealed in await self._database.do(read))

    async def reseal(self, name: str, seen: bytes, sealed: bytes) -> bool:
        """As the contract has it."""
        table, key = _SEALED[name[:1]]
        sql = f"UPDATE {table} SET sealed = ? WHERE {key} = ? AND sealed = ?"  # noqa: S608
        return await self._changed(sql, _text(sealed), name[1:], _text(seen)) == 1

    async def _changed(self, sql: str, *values: Value) -> int:
        def change(connection: Connection) -> int:
            with connection.durable():
                return connection.change(sql, *values)

        return await self._database.do(change)


def _account_values(account: ConnectedAccount) -> tuple[Value, ...]:
    return (account.id, account.project, account.user, account.toolkit, account.alias, account.auth_config or "",
            account.kind.value, account.status.value, account.status_reason, json.dumps(account.scopes),
            account.created_at, account.updated_at, account.expires_at, account.label)  # fmt: skip


def _account(row: Row) -> ConnectedAccount:
    kept = dict(zip((name.strip('"') for name in _NAMES), row, strict=True))
    return ConnectedAccount(
        **{
            **kept,
            "id": AccountId(kept["id"]),
            "project": ProjectId(kept["project"]),
            "auth_config": AuthConfigId(kept["auth_config"]) if kept["auth_config"] else None,
            "kind": AuthKind(kept["kind"]),
            "status": ConnectionStatus(kept["status"]),
            "scopes": tuple(json.loads(kept["scopes"])),
        }
    )


def _config(row: Row) -> AuthConfig:
    kept = dict(zip(_CONFIG_NAMES, row, strict=True))
    return AuthConfig(**{**kept, "kind": AuthKind(kept["kind"]), "scopes": tuple(json.loads(kept["scopes"]))})


def _pending(row: Row) -> PendingLink:
    return PendingLink(**dict(zip((name.strip('"') for name in _LINK_NAMES), row, strict=True)))


def _text(sealed: bytes) -> str:
    return base64.b64encode(sealed).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
