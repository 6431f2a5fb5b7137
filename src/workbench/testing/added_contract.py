"""The suite that every store of added toolkits passes. `testing.storage_contract` says how it is used."""

from __future__ import annotations

import asyncio

import pytest

from workbench.contracts.added import KeptToolkit
from workbench.contracts.storage import Records
from workbench.errors import Conflict
from workbench.model.added import AddedKind
from workbench.model.ids import DEFAULT_PROJECT, ProjectId
from workbench.testing.storage_contract import EARLY, OTHERS, OpenedRecords


def a_toolkit(slug: str = "files", project: ProjectId | None = DEFAULT_PROJECT) -> KeptToolkit:
    """With something in every field."""
    return KeptToolkit(
        slug=slug,
        kind=AddedKind.PROGRAM,
        project=project,
        options={"command": ["run", "für"], "timeout_s": 2.5},
        sealed=b"\x00sealed\xff",
        added_at=EARLY,
    )


class AddedStoreContract(OpenedRecords):
    """Which toolkits were added."""

    async def test_what_is_added_is_listed_as_it_was(self, records: Records) -> None:
        """Those for all first, then by project and name."""
        kept = [a_toolkit("b"), a_toolkit("a"), a_toolkit("z", None), a_toolkit("a", OTHERS)]
        for one in kept:
            await records.added.add(one)
        assert await records.added.list() == (kept[2], kept[1], kept[0], kept[3])

    async def test_a_name_is_taken_once_in_a_project_and_once_for_all(self, records: Records) -> None:
        """Among all who come at once."""
        for project in (DEFAULT_PROJECT, None, OTHERS):
            coming = [records.added.add(a_toolkit("files", project)) for _ in range(4)]
            ended = await asyncio.gather(*coming, return_exceptions=True)
            assert sorted(type(one).__name__ for one in ended) == ["Conflict"] * 3 + ["NoneType"]
        with pytest.raises(Conflict, match="workbench toolkits remove files"):
            await records.added.add(a_toolkit())

    async def test_what_is_removed_is_gone_and_nothing_else(self, records: Records) -> None:
        """It tells whether there was one."""
        for project in (DEFAULT_PROJECT, None):
            await records.added.add(a_toolkit("files", project))
        assert await records.added.remove(DEFAULT_PROJECT, "files")
        assert not await records.added.remove(DEFAULT_PROJECT, "files")
        assert await records.added.list() == (a_toolkit("files", None),)
        await records.added.add(a_toolkit())

    async def test_its_secrets_are_sealed_anew_with_the_others(self, records: Records) -> None:
        """When the key of the vault is replaced."""
        await records.added.add(a_toolkit())
        ((name, sealed),) = await records.connections.sealed_under("", 10)
        assert sealed == a_toolkit().sealed
        assert not await records.connections.reseal(name, b"another", b"new")
        assert await records.connections.reseal(name, sealed, b"new")
        assert [one.sealed for one in await records.added.list()] == [b"new"]
