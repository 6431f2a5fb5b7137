"""Who may add which toolkits for whom, what is kept of them, and what is noted about it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.core.router.sources import Source, tool
from tests.unit.core.standins import World

from workbench.contracts.added import Standing
from workbench.contracts.connections import AccountsRequest
from workbench.contracts.tools import ToolSource
from workbench.core.router.catalogue import Catalogue
from workbench.core.toolkit_requests import AddToolkit, ListToolkits, ToolkitName
from workbench.core.toolkits import AddedRecords, Toolkits
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, StoreUnavailable, UpstreamUnavailable
from workbench.model.access import Caller, Scope
from workbench.model.added import AddedToolkit
from workbench.model.connection import AccountId, ConnectedAccount, ConnectionStatus
from workbench.model.ids import DEFAULT_PROJECT, KeyId, ProjectId, SessionId
from workbench.model.toolkit import AuthKind, AuthScheme, OAuthEndpoints, Toolkit

OWNER = Caller()
ADMIN = Caller(key=KeyId("k1"), scopes=frozenset({Scope.ADMIN}))
STRANGER = Caller(key=KeyId("k2"), scopes=frozenset({Scope.ADMIN}), project=ProjectId("other"))
WEAK = Caller(key=KeyId("k3"), scopes=frozenset({Scope.SESSIONS, Scope.PROXY}))
TOKEN = Caller(key=KeyId("k4"), scopes=frozenset(Scope), session=SessionId("one"))
_GMAIL = Toolkit(slug="gmail", name="Gmail")
_OWN = Catalogue([Source((_GMAIL,), (tool("GMAIL_SEND", "gmail"),))])
_URL = {"url": "https://example.com/mcp", "bearer": "canary-bearer"}


class Seals:
    """A vault that can be seen through, and lose its key."""

    def __init__(self) -> None:
        self.is_lost = False

    def seal(self, context: str, secret: bytes) -> bytes:
        return context.encode() + b"|" + secret[::-1]

    def unseal(self, context: str, sealed: bytes) -> bytes:
        if self.is_lost or not sealed.startswith(context.encode() + b"|"):
            raise StoreUnavailable("no key")
        return sealed.partition(b"|")[2][::-1]

    def resealed(self, sealed: bytes) -> bytes:
        return sealed


class House:
    """Tells what is kept, and tries nothing."""

    def __init__(self, kept: AddedRecords) -> None:
        self._kept = kept
        self.in_file: tuple[AddedToolkit, ...] = ()
        self.toolkits: tuple[Toolkit, ...] = ()
        self.is_down = False
        self.changes = 0

    async def sources(self, project: ProjectId | None) -> tuple[ToolSource, ...]:
        return ()

    async def standing(self, project: ProjectId | None) -> tuple[Standing, ...]:
        found = (*self.in_file, *await self._kept.all())
        return tuple(Standing(added=one) for one in found if project is None or one.project in (None, project))

    async def tried(self, added: AddedToolkit) -> Standing:
        if self.is_down:
            raise UpstreamUnavailable("it is down")
        return Standing(added=added, toolkits=self.toolkits)

    async def problem(self) -> str:
        return "line 3"

    def changed(self) -> None:
        self.changes += 1


class Bench:
    def __init__(self) -> None:
        self.world = World()
        self.vault = Seals()
        self.kept = AddedRecords(self.world.records, self.vault)
        self.house = House(self.kept)
        self.toolkits = Toolkits(
            records=self.world.records, kept=self.kept, house=self.house, clock=self.world.clock, own=_OWN
        )

    async def add(self, by: Caller, slug: str = "far", given: dict[str, Any] | None = None, **more: Any) -> Standing:
        return await self.toolkits.add(AddToolkit(by=by, slug=slug, given=given or _URL, **more))

    async def slugs(self, by: Caller, *, everywhere: bool = False) -> list[str]:
        found = await self.toolkits.list(ListToolkits(by=by, everywhere=everywhere))
        return [one.added.slug for one in found.items]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_an_admin_adds_for_the_own_project_and_the_owner_for_all(bench: Bench) -> None:
    await bench.add(ADMIN)
    await bench.add(OWNER, "everybodys", for_all=True)
    assert await bench.slugs(ADMIN) == ["everybodys", "far"]
    assert await bench.slugs(STRANGER) == ["everybodys"]
    assert await bench.slugs(STRANGER, everywhere=True) == ["everybodys"]
    await bench.add(STRANGER, "theirs")
    assert await bench.slugs(OWNER, everywhere=True) == ["everybodys", "far", "theirs"]
    assert bench.house.changes == 3


@pytest.mark.parametrize("by", [WEAK, TOKEN])
async def test_who_is_no_admin_does_nothing(bench: Bench, by: Caller) -> None:
    await bench.add(ADMIN)
    name = ToolkitName(by=by, slug="far")
    for doing in (
        bench.add(by, "other"),
        bench.toolkits.list(ListToolkits(by=by)),
        bench.toolkits.show(name),
        bench.toolkits.test(name),
        bench.toolkits.remove(name),
    ):
        with pytest.raises(Denied, match="scope `admin`"):
            await doing
    assert await bench.slugs(ADMIN) == ["far"]


@pytest.mark.parametrize("given", [{"command": ["/bin/sh"]}, {"functions": "/tmp/a.py"}, {"openapi": "/etc/passwd"}])
async def test_a_key_adds_nothing_that_runs_or_reads_what_lies_on_the_machine(
    bench: Bench, given: dict[str, Any]
) -> None:
    with pytest.raises(Denied, match="only who runs this workbench adds it"):
        await bench.add(ADMIN, "evil", given)
    await bench.add(OWNER, "mine", given)
    assert await bench.slugs(ADMIN) == ["mine"]


async def test_a_key_adds_and_removes_nothing_for_all(bench: Bench) -> None:
    with pytest.raises(Denied, match="for all projects"):
        await bench.add(ADMIN, for_all=True)
    await bench.add(OWNER, for_all=True)
    with pytest.raises(Denied, match="for all projects"):
        await bench.toolkits.remove(ToolkitName(by=ADMIN, slug="far"))
    await bench.toolkits.remove(ToolkitName(by=OWNER, slug="far", for_all=True))
    with pytest.raises(NotFound, match="no toolkit 'far' was added here"):
        await bench.toolkits.remove(ToolkitName(by=OWNER, slug="far"))


async def test_names_of_the_workbenchs_own_and_those_that_are_taken_are_refused(bench: Bench) -> None:
    with pytest.raises(Conflict, match="has a toolkit 'gmail' by itself"):
        await bench.add(ADMIN, "gmail")
    await bench.add(ADMIN)
    with pytest.raises(Conflict, match="there is a toolkit 'far' already"):
        await bench.add(ADMIN)
    await bench.add(STRANGER)
    await bench.add(ADMIN, "gmail", {"composio": ["gmail"], "key": "k"})


async def test_what_cannot_be_used_is_not_kept_unless_it_is_wanted_untried(bench: Bench) -> None:
    bench.house.is_down = True
    with pytest.raises(UpstreamUnavailable):
        await bench.add(ADMIN)
    with pytest.raises(InvalidRequest):
        await bench.add(ADMIN, "far", {"ulr": "x"})
    assert await bench.slugs(ADMIN) == []
    await bench.add(ADMIN, try_first=False)
    assert await bench.slugs(ADMIN) == ["far"]


async def test_secrets_are_sealed_for_their_record_and_a_lost_key_loses_nothing_else(bench: Bench) -> None:
    await bench.add(ADMIN)
    (record,) = await bench.world.records.added.list()
    assert b"canary" not in record.sealed
    assert "canary" not in repr(record)
    assert record.options == {"url": "https://example.com/mcp"}
    (one,) = await bench.kept.all()
    assert one.secrets["bearer"].reveal() == "canary-bearer"
    # What was sealed for one is not opened for another.
    await bench.world.records.added.add(dataclasses.replace(record, slug="thief"))
    assert {kit.slug: set(kit.secrets) for kit in await bench.kept.all()} == {"far": {"bearer"}, "thief": set()}
    bench.vault.is_lost = True
    assert [(kit.slug, dict(kit.secrets)) for kit in await bench.kept.all()] == [("far", {}), ("thief", {})]


async def test_what_is_in_the_file_is_taken_out_there(bench: Bench) -> None:
    await bench.add(OWNER)
    (one,) = await bench.kept.all()
    bench.house.in_file = (dataclasses.replace(one, slug="filed", from_file=True),)
    with pytest.raises(Denied, match="is in the settings file of this workbench; take it out there"):
        await bench.toolkits.remove(ToolkitName(by=OWNER, slug="filed"))
    told = await bench.toolkits.list(ListToolkits(by=OWNER))
    assert told.file_problem == "line 3"
    # Names of files and what is in them are no business of a project's.
    assert (await bench.toolkits.list(ListToolkits(by=ADMIN))).file_problem == ""


async def test_who_added_and_removed_is_noted_without_secrets(bench: Bench) -> None:
    await bench.add(ADMIN)
    with pytest.raises(Conflict):
        await bench.add(ADMIN)
    await bench.toolkits.remove(ToolkitName(by=ADMIN, slug="far"))
    noted = await bench.world.records.audit.list(DEFAULT_PROJECT)
    assert [(one.action, one.outcome, one.detail, one.key) for one in reversed(noted)] == [
        ("toolkit.add", "ok", "far", "k1"),
        ("toolkit.add", "conflict", "far", "k1"),
        ("toolkit.remove", "ok", "far", "k1"),
    ]


async def test_what_its_answers_looked_like_is_forgotten_with_it(bench: Bench) -> None:
    await bench.add(ADMIN)
    memory = bench.world.records.tools
    for project in (DEFAULT_PROJECT, STRANGER.project):
        for name in ("FAR_LOOK", "FARTHER_LOOK"):
            await memory.saw(project, name, "2030-01-01T00:00:00.000000Z", lambda _: "{}")
    await bench.toolkits.remove(ToolkitName(by=ADMIN, slug="far"))
    asked = ["FAR_LOOK", "FARTHER_LOOK"]
    assert set(await memory.shapes(DEFAULT_PROJECT, asked)) == {"FARTHER_LOOK"}
    assert set(await memory.shapes(STRANGER.project, asked)) == set(asked)


_DESCRIBED = {"openapi": "https://desk.example/openapi.json"}


async def test_accounts_that_were_connected_with_a_toolkit_go_with_it(bench: Bench) -> None:
    await bench.add(ADMIN, "desk", _DESCRIBED)
    store = bench.world.records.connections
    for number, (project, toolkit) in enumerate(
        ((DEFAULT_PROJECT, "desk"), (DEFAULT_PROJECT, "desk"), (DEFAULT_PROJECT, "mail"), (STRANGER.project, "desk"))
    ):
        await store.add(
            ConnectedAccount(
                id=AccountId(f"ca_{number}"),
                project=project,
                user="ann",
                toolkit=toolkit,
                kind=AuthKind.API_KEY,
                status=ConnectionStatus.ACTIVE,
                created_at="2026-01-01T00:00:00.000000Z",
                updated_at="2026-01-01T00:00:00.000000Z",
            )
        )
    await bench.toolkits.remove(ToolkitName(by=ADMIN, slug="desk"))
    left = [
        one.id
        for project in (DEFAULT_PROJECT, STRANGER.project)
        for one in await store.list(AccountsRequest(project=project))
    ]
    assert left == ["ca_2", "ca_3"]


async def test_a_project_puts_no_service_in_the_place_of_one_that_all_have(bench: Bench) -> None:
    await bench.add(OWNER, "desk", _DESCRIBED, for_all=True)
    with pytest.raises(Conflict, match="all projects have a toolkit 'desk'"):
        await bench.add(ADMIN, "desk", {"openapi": "https://evil.example/openapi.json"})


async def test_where_a_description_leads_is_kept_with_it(bench: Bench) -> None:
    oauth = OAuthEndpoints(authorize_url="https://desk.example/a", token_url="https://desk.example/t")
    kit = Toolkit(
        slug="desk", name="Desk", hosts=("desk.example",), auth=(AuthScheme(kind=AuthKind.OAUTH2, oauth=oauth),)
    )
    bench.house.toolkits = (kit,)
    await bench.add(ADMIN, "desk", _DESCRIBED)
    (kept,) = await bench.kept.all()
    assert kept.options["hosts"] == ["desk.example"]
    assert kept.options["endpoints"] == ["https://desk.example/a", "https://desk.example/t"]


async def test_what_the_workbench_has_by_itself_is_told_with_its_tools_and_is_not_removed(bench: Bench) -> None:
    (found,) = await bench.toolkits.own(ListToolkits(by=OWNER))
    assert (found.toolkit, [one.slug for one in found.tools]) == (_GMAIL, ["GMAIL_SEND"])
    with pytest.raises(NotFound, match="'gmail' comes with this workbench, and was not added"):
        await bench.toolkits.remove(ToolkitName(by=OWNER, slug="gmail"))
    with pytest.raises(Denied):
        await bench.toolkits.own(ListToolkits(by=WEAK))
