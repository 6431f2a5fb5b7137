"""How often the rules of the corrections had something to do, in this process's memory."""

from __future__ import annotations

from workbench.model.corrections import WHATS, counts_of
from workbench.model.execution import CellResult, CommandResult, RuleCount
from workbench.model.ids import ProjectId
from workbench.storage.shelves import Shelves


class MemoryRuleStore:
    """A RuleStore without a disk."""

    def __init__(self, shelves: Shelves, project: ProjectId) -> None:
        self._shelves = shelves
        self._project = project

    def count(self, end: CellResult | CommandResult) -> None:
        """With the end of a cell."""
        for one in counts_of(end):
            before = self._shelves.rules.get((self._project, one.rule), RuleCount(rule=one.rule))
            sums = {what: getattr(before, what) + getattr(one, what) for what in WHATS}
            self._shelves.rules[self._project, one.rule] = RuleCount(rule=one.rule, **sums)

    async def counted(self) -> tuple[RuleCount, ...]:
        """As the contract has it."""
        return tuple(one for (project, _), one in sorted(self._shelves.rules.items()) if project == self._project)
