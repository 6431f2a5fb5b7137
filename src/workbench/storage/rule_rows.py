"""How often the rules of the corrections had something to do, as rows of a table."""

from __future__ import annotations

from workbench.model.corrections import WHATS, counts_of
from workbench.model.execution import CellResult, CommandResult, RuleCount
from workbench.model.ids import ProjectId
from workbench.storage.database import Connection, Database

_COLUMNS = ", ".join(WHATS)
_ADD = f"""
    INSERT INTO rule_counts (project, rule, {_COLUMNS}) VALUES (?, ?, {", ".join("?" * len(WHATS))})
    ON CONFLICT (project, rule) DO UPDATE
    SET {", ".join(f"{one} = rule_counts.{one} + excluded.{one}" for one in WHATS)}
"""  # noqa: S608
_LIST = f"SELECT rule, {_COLUMNS} FROM rule_counts WHERE project = ? ORDER BY rule"  # noqa: S608


def count(connection: Connection, project: ProjectId, end: CellResult | CommandResult) -> None:
    """With the end of a cell; always in the same order, so that two never wait for each other."""
    for one in sorted(counts_of(end), key=lambda counted: counted.rule):
        connection.change(_ADD, project, one.rule, *(getattr(one, what) for what in WHATS))


class SqlRuleStore:
    """A RuleStore in a database."""

    def __init__(self, database: Database, project: ProjectId) -> None:
        self._database = database
        self._project = project

    async def counted(self) -> tuple[RuleCount, ...]:
        """As the contract has it."""
        rows = await self._database.do(lambda connection: connection.rows(_LIST, self._project))
        return tuple(RuleCount(rule=rule, **dict(zip(WHATS, counts, strict=True))) for rule, *counts in rows)
