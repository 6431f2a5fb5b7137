"""Toolkits that were added, in this process's memory."""

from __future__ import annotations

from workbench.contracts.added import KeptToolkit
from workbench.errors import Conflict
from workbench.model.ids import ProjectId
from workbench.storage.added_rows import name_of
from workbench.storage.shelves import Shelves
from workbench.storage.wording import toolkit_exists_already


class MemoryAddedStore:
    """An AddedStore without a disk."""

    def __init__(self, shelves: Shelves) -> None:
        self._added = shelves.added

    async def add(self, kept: KeptToolkit) -> None:
        """As the contract has it."""
        name = name_of(kept.project, kept.slug)
        if name in self._added:
            raise Conflict(toolkit_exists_already(kept.slug), {"toolkit": kept.slug})
        self._added[name] = kept

    async def list(self) -> tuple[KeptToolkit, ...]:
        """As the contract has it."""
        return tuple(sorted(self._added.values(), key=lambda one: (one.project or "", one.slug)))

    async def remove(self, project: ProjectId | None, slug: str) -> bool:
        """As the contract has it."""
        return self._added.pop(name_of(project, slug), None) is not None
