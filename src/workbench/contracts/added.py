"""AddedStore and ToolkitHouse: where it is kept which toolkits were added, and who makes sources of tools of them.

For the author of the next store: several processes use it at once, and any may be killed at any moment. It never sees
a secret in the clear: it keeps what a vault has sealed. `testing.added_contract` holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from workbench.contracts.tools import ToolSource
from workbench.model.added import AddedKind, AddedToolkit
from workbench.model.ids import ProjectId
from workbench.model.toolkit import Json, Tool, Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptToolkit:
    """A record, and what is sealed beside it."""

    slug: str
    kind: AddedKind
    project: ProjectId | None
    options: Json
    sealed: bytes = field(default=b"", repr=False)
    """empty if there are no secrets"""
    added_at: str


class AddedStore(Protocol):
    """Of all projects. What is changed survives a crash of the machine. Every method may raise `StoreUnavailable`."""

    async def add(self, kept: KeptToolkit) -> None:
        """Raises: Conflict: the project, or all of them, has one of that name."""
        ...

    async def list(self) -> tuple[KeptToolkit, ...]:
        """All, by project and name; those for all projects first."""
        ...

    async def remove(self, project: ProjectId | None, slug: str) -> bool:
        """Drop it with its secrets; False if it is gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one of the added ones is."""

    added: AddedToolkit
    toolkits: tuple[Toolkit, ...] = ()
    tools: tuple[Tool, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """tools that it has and that are not used, with the reason"""
    problem: str = ""
    """why it has no tools now; empty if it has"""


class ToolkitHouse(Protocol):
    """Keeps a source for each toolkit that was added, and follows what is added and removed. Owned by who wired it."""

    async def sources(self, project: ProjectId | None) -> tuple[ToolSource, ...]:
        """Of what was added for it or for all; with None, for all alone. None of them fails because its server does: it
        has no tools then.
        """
        ...

    async def standing(self, project: ProjectId | None) -> tuple[Standing, ...]:
        """How they are, of a project or of all; each is asked, for a bounded time."""
        ...

    async def tried(self, added: AddedToolkit) -> Standing:
        """One by itself, begun and ended for this.

        Raises:
            any error of the tree: it cannot be used; the message says why.
        """
        ...

    async def problem(self) -> str:
        """Why the settings file cannot be used; empty if it can, or there is none."""
        ...

    def changed(self) -> None:
        """Look at once what was added or removed, the next time."""
        ...
