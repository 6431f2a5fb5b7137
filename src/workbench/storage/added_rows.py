"""Toolkits that were added, as rows of a table. Secrets come sealed, and stay so."""

from __future__ import annotations

import base64
import json

from workbench.contracts.added import KeptToolkit
from workbench.errors import Conflict
from workbench.model.added import AddedKind
from workbench.model.ids import ProjectId
from workbench.storage.database import Connection, Database, Refused, Row
from workbench.storage.wording import toolkit_exists_already

_NAMES = ("id", "project", "slug", "kind", "options", "sealed", "added_at")
_COLUMNS = ", ".join(_NAMES)
_ADD = f"INSERT INTO added_toolkits ({_COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))})"  # noqa: S608
_LIST = f"SELECT {_COLUMNS} FROM added_toolkits ORDER BY project, slug"  # noqa: S608
_REMOVE = "DELETE FROM added_toolkits WHERE id = ?"


class SqlAddedStore:
    """An AddedStore in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, kept: KeptToolkit) -> None:
        """As the contract has it."""

        def insert(connection: Connection) -> None:
            with connection.durable():
                connection.change(
                    _ADD,
                    name_of(kept.project, kept.slug),
                    kept.project or "",
                    kept.slug,
                    kept.kind.value,
                    json.dumps(kept.options),
                    base64.b64encode(kept.sealed).decode(),
                    kept.added_at,
                )

        try:
            await self._database.do(insert)
        except Refused:
            raise Conflict(toolkit_exists_already(kept.slug), {"toolkit": kept.slug}) from None

    async def list(self) -> tuple[KeptToolkit, ...]:
        """As the contract has it."""
        return tuple(_kept(row) for row in await self._database.do(lambda connection: connection.rows(_LIST)))

    async def remove(self, project: ProjectId | None, slug: str) -> bool:
        """As the contract has it."""

        def delete(connection: Connection) -> bool:
            with connection.durable():
                return connection.change(_REMOVE, name_of(project, slug)) == 1

        return await self._database.do(delete)


def name_of(project: ProjectId | None, slug: str) -> str:
    """One for both; no project and no toolkit has a slash in its name."""
    return f"{project or ''}/{slug}"


def _kept(row: Row) -> KeptToolkit:
    _, project, slug, kind, options, sealed, added_at = row
    return KeptToolkit(
        slug=slug,
        kind=AddedKind(kind),
        project=ProjectId(project) if project else None,
        options=json.loads(options),
        sealed=base64.b64decode(sealed),
        added_at=added_at,
    )
