"""The suite that every store of sessions passes, and what the suites of the other records share.

For the author of the next store:

class TestMyStore(SessionStoreContract):
    @pytest.fixture
    def open_records(self, tmp_path):      # -> a callable: each call opens the same records once more
        return lambda: MyRecords(tmp_path / "records")

and the same for `CellStoreContract` of `testing.cell_contract` and `KeyStoreContract` of `testing.key_contract`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
import pytest_asyncio

from workbench.contracts.storage import PageRequest, Records, SessionStore
from workbench.errors import Conflict, NotFound
from workbench.model.configuration import (
    MOST_VERSIONS,
    Choice,
    ConfigurationRecord,
    ManageConnections,
    MultiAccount,
    SandboxSwitches,
    SessionConfig,
    ToolChoice,
)
from workbench.model.ids import DEFAULT_PROJECT, MountId, ProjectId, SessionId, new_kernel_id, new_sandbox_id
from workbench.model.packages import PackagePolicy
from workbench.model.session import IdleLimits, Session, SessionSpec
from workbench.model.tier import LARGE, MEDIUM, STANDARD

OpenRecords = Callable[[], Records]
OTHERS = ProjectId("others")
EARLY, LATE = "2030-01-01T00:00:00.000000Z", "2030-01-02T00:00:00.000000Z"


A_CONFIG = SessionConfig(
    toolkits=Choice(enable=("github",)),
    tools={"gmail": ToolChoice(tools=Choice(disable=()), tags=Choice(require_approval=("destructiveHint",)))},
    auth_configs={"github": "ac_ü"},
    connected_accounts={"github": ("ca_1", "ca_2")},
    manage_connections=ManageConnections(enable=False, callback_url="https://cb"),
    sandbox=SandboxSwitches(tool_execution=False, packages=PackagePolicy.OFF, auto_offload_threshold=300),
    proxy_execute=False,
    multi_account=MultiAccount(enable=True, max_accounts_per_toolkit=3),
    preload=("GITHUB_X",),
)


def a_session(name: str = "one", user: str = "local", project: ProjectId = DEFAULT_PROJECT) -> Session:
    """With something in every field."""
    spec = SessionSpec(
        id=SessionId(name),
        project=project,
        user=user,
        runtime="node",
        tier=MEDIUM,
        env={"NAME": "värde\n=", "EMPTY": ""},
        start_up="import os\n",
        working_folder="/mnt/files/work",
        snapshots=False,
        idle=IdleLimits(freeze_after_s=0, end_after_s=10_000_000_000),
        config=A_CONFIG,
    )
    return Session(
        spec=spec,
        created_at=EARLY,
        used_at=EARLY,
        mount=MountId(name),
        principal=spec.id,
        parent=SessionId("before"),
        context_of=SessionId("beside"),
        sandbox=new_sandbox_id(),
        last_loss="it's gone",
    )


def a_branch(name: str, of: Session) -> Session:
    """One more of its family."""
    return replace(of, spec=replace(of.spec, id=SessionId(name)), parent=of.spec.id, kernel=new_kernel_id())


async def a_family(store: SessionStore, *names: str) -> tuple[Session, ...]:
    """Kept; the first is what the others were branched from."""
    root = a_session(names[0])
    await store.add(root)
    branches = tuple(a_branch(name, root) for name in names[1:])
    for branch in branches:
        assert await store.add_branch(branch, root)
    return root, *branches


async def take_steps(store: SessionStore, name: SessionId, steps: int) -> None:
    """Raise the epoch so many times, whoever else does the same."""
    for _ in range(steps):
        while True:
            seen = await store.get(name)
            if await store.replace(seen, replace(seen, epoch=seen.epoch + 1)):
                break


class OpenedRecords:
    """What the suites have in common."""

    @pytest_asyncio.fixture
    async def records(self, open_records: OpenRecords) -> AsyncIterator[Records]:
        """A store, closed after the test."""
        records = open_records()
        yield records
        await records.aclose()

    @pytest_asyncio.fixture
    async def more_records(self, open_records: OpenRecords) -> AsyncIterator[Records]:
        """The same store, opened once more."""
        records = open_records()
        yield records
        await records.aclose()


class SessionStoreContract(OpenedRecords):
    """Subclass it, with the fixture above."""

    @pytest.fixture
    def store(self, records: Records) -> SessionStore:
        """Sessions of a project."""
        return records.sessions(DEFAULT_PROJECT)

    @pytest.fixture
    def second(self, more_records: Records) -> SessionStore:
        """The same, opened once more."""
        return more_records.sessions(DEFAULT_PROJECT)

    async def test_a_record_comes_back_as_it_was_kept(self, store: SessionStore, second: SessionStore) -> None:
        """In another opening of the same records as well."""
        await store.add(a_session())
        kept = await second.get(SessionId("one"))
        assert kept == replace(a_session(), sandbox=kept.sandbox)

    async def test_a_name_can_be_taken_once(self, store: SessionStore, second: SessionStore) -> None:
        """And the first record stays."""
        first = a_session()
        await store.add(first)
        with pytest.raises(Conflict, match="already"):
            await second.add(a_session())
        assert await second.get(first.spec.id) == first

    async def test_of_many_who_want_a_name_at_once_one_gets_it(self, store: SessionStore, second: SessionStore) -> None:
        """Whatever the order."""
        wanted = [(store, second)[n % 2].add(a_session()) for n in range(8)]
        results = await asyncio.gather(*wanted, return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["Conflict"] * 7 + ["NoneType"]

    async def test_an_unknown_name_is_not_found(self, store: SessionStore) -> None:
        """With the next step in the message; removing it is no error."""
        for asked in (store.get(SessionId("none")), store.use(SessionId("none"), LATE)):
            with pytest.raises(NotFound, match="sessions ls"):
                await asked
        await store.remove(a_session("none"))
        assert not await store.remove_unless_last(a_session("none"))

    async def test_use_is_noted_and_never_goes_back(self, store: SessionStore) -> None:
        """Clocks of several processes differ."""
        await store.add(a_session())
        assert (await store.use(SessionId("one"), LATE)).used_at == LATE
        assert (await store.use(SessionId("one"), EARLY)).used_at == LATE
        assert (await store.get(SessionId("one"))).used_at == LATE

    async def test_a_record_is_replaced_only_if_it_is_as_seen(self, store: SessionStore, second: SessionStore) -> None:
        """Who comes second with the same view is told so."""
        seen = a_session()
        await store.add(seen)
        moved = replace(seen, sandbox=new_sandbox_id(), epoch=7, last_loss="", begun=True)
        assert await store.replace(seen, moved)
        assert not await second.replace(seen, replace(seen, epoch=8))
        assert await second.get(seen.spec.id) == moved
        assert await second.replace(moved, replace(moved, ending=True, spec=replace(moved.spec, tier=LARGE)))
        now = await store.get(seen.spec.id)
        assert (now.ending, now.spec.tier, now.spec.env) == (True, LARGE, seen.spec.env)

    async def test_use_in_between_does_not_spoil_a_replacement_and_is_kept(self, store: SessionStore) -> None:
        """It says nothing about the sandbox."""
        seen = a_session()
        await store.add(seen)
        await store.use(seen.spec.id, LATE)
        assert await store.replace(seen, replace(seen, epoch=2))
        assert (await store.get(seen.spec.id)).used_at == LATE

    async def test_another_session_of_the_same_name_is_not_replaced(self, store: SessionStore) -> None:
        """What was seen was deleted and made anew."""
        seen = a_session()
        await store.add(seen)
        await store.remove(seen)
        assert not await store.replace(seen, replace(seen, epoch=2))
        await store.add(replace(seen, created_at=LATE))
        assert not await store.replace(seen, replace(seen, epoch=2))
        await store.remove(seen)
        assert (await store.get(seen.spec.id)).created_at == LATE

    async def test_of_many_replacements_at_once_none_is_lost(self, store: SessionStore, second: SessionStore) -> None:
        """Epochs are never given twice."""
        await store.add(a_session())
        await asyncio.gather(*(take_steps((store, second)[n % 2], SessionId("one"), 10) for n in range(6)))
        assert (await store.get(SessionId("one"))).epoch == 61

    async def test_the_switch_of_the_snapshots_and_what_is_unfinished_are_replaced_as_well(
        self, store: SessionStore
    ) -> None:
        """And compared."""
        seen = a_session()
        await store.add(seen)
        changed = replace(seen, unfinished=True, spec=replace(seen.spec, snapshots=True))
        assert await store.replace(seen, changed)
        assert await store.get(seen.spec.id) == changed
        assert not await store.replace(replace(changed, unfinished=False), seen)
        assert not await store.replace(replace(changed, spec=seen.spec), seen)

    async def test_a_configuration_is_changed_with_its_version_and_the_one_before_is_kept(
        self, store: SessionStore, second: SessionStore
    ) -> None:
        """In one step: of two who change the same version one is told that it was second."""
        seen = a_session()
        await store.add(seen)
        plain = replace(seen, spec=replace(seen.spec, config=SessionConfig()), config_version=2, configured_at=LATE)
        assert await store.replace(seen, plain)
        assert not await second.replace(seen, replace(plain, spec=seen.spec))
        assert await second.get(seen.spec.id) == plain
        last = replace(plain, spec=replace(plain.spec, tier=LARGE), config_version=3)
        assert await second.replace(plain, last)
        assert await store.past_configurations(seen.spec.id, 3, 10) == (
            ConfigurationRecord(version=2, at=LATE, tier="medium", config=SessionConfig()),
            ConfigurationRecord(version=1, at=EARLY, tier="medium", config=A_CONFIG),
        )
        assert [one.version for one in await store.past_configurations(seen.spec.id, 3, 1)] == [2]
        assert [one.version for one in await store.past_configurations(seen.spec.id, 2, 10)] == [1]

    async def test_configurations_of_the_past_go_with_their_session_and_are_not_told_to_others(
        self, store: SessionStore, records: Records
    ) -> None:
        """Nor to a later one of the same name."""
        seen = a_session()
        await store.add(seen)
        changed = replace(seen, config_version=2, configured_at=LATE)
        assert await store.replace(seen, changed)
        assert await records.sessions(OTHERS).past_configurations(seen.spec.id, 9, 10) == ()
        await store.remove(changed)
        await store.add(a_session())
        assert await store.past_configurations(seen.spec.id, 9, 10) == ()

    async def test_a_configuration_of_the_past_keeps_the_size_that_it_had(self, store: SessionStore) -> None:
        """Another one was given before the next version was written."""
        seen = a_session()
        await store.add(seen)
        assert await store.replace(seen, replace(seen, config_version=2, configured_at=LATE), tier_before="xlarge")
        assert [one.tier for one in await store.past_configurations(seen.spec.id, 2, 1)] == ["xlarge"]

    async def test_so_many_configurations_are_kept_and_no_more(self, store: SessionStore) -> None:
        """Whoever changes it in a loop does not fill the store."""
        seen = replace(a_session(), config_version=MOST_VERSIONS - 1)
        await store.add(seen)
        for version in (MOST_VERSIONS, MOST_VERSIONS + 1, 2 * MOST_VERSIONS - 1):
            now = replace(seen, config_version=version)
            assert await store.replace(seen, now)
            seen = now
        past = await store.past_configurations(seen.spec.id, 10 * MOST_VERSIONS, 10 * MOST_VERSIONS)
        assert [one.version for one in past][:2] == [MOST_VERSIONS + 1, MOST_VERSIONS]

    async def test_a_family_is_all_sessions_of_a_mount_by_name(self, store: SessionStore, second: SessionStore) -> None:
        """As they were kept; others are not among them."""
        root, one, two = await a_family(store, "root", "b-two", "a-one")
        await store.add(a_session("other"))
        assert await second.family(root.mount) == (two, one, root)
        assert await second.family(MountId("none")) == ()

    async def test_a_mount_has_one_first_session(self, store: SessionStore) -> None:
        """The name of one that was deleted is free only when its files are gone as well."""
        root, branch = await a_family(store, "root", "branch")
        assert await store.remove_unless_last(root)
        with pytest.raises(Conflict, match="still those of its branches"):
            await store.add(a_session("root"))
        again = a_branch("root", branch)
        assert await store.add_branch(again, branch)
        with pytest.raises(Conflict, match="already"):
            await store.add(a_session("root"))
        await store.remove(again)
        await store.remove(branch)
        await store.add(a_session("root"))

    async def test_nobody_is_branched_from_what_is_not_as_seen(self, store: SessionStore, second: SessionStore) -> None:
        """It may be on its way out, or elsewhere."""
        (root,) = await a_family(store, "root")
        await store.use(root.spec.id, LATE)
        assert await second.add_branch(a_branch("one", root), root)
        with pytest.raises(Conflict, match="already"):
            await second.add_branch(a_branch("one", root), root)
        ending = replace(root, ending=True)
        assert await store.replace(root, ending)
        assert not await second.add_branch(a_branch("two", root), root)
        await store.remove(ending)
        assert not await second.add_branch(a_branch("two", ending), ending)
        assert [member.spec.id for member in await store.family(root.mount)] == ["one"]

    async def test_a_family_moves_together(self, store: SessionStore, second: SessionStore) -> None:
        """Each with its own next epoch and its own loss, also who is being deleted; strangers stay."""
        (root,) = await a_family(store, "root")
        begun, cold = replace(a_branch("begun", root), begun=True, epoch=7), a_branch("cold", root)
        ending = replace(a_branch("ending", root), begun=True, ending=True)
        for branch in (begun, cold, ending):
            assert await store.add_branch(branch, root)
        stranger = a_session("stranger")
        await store.add(stranger)
        moved = replace(root, sandbox=new_sandbox_id(), epoch=5, last_loss="")
        assert await second.move(root, moved, "disk full")
        assert await store.family(root.mount) == (
            replace(begun, sandbox=moved.sandbox, begun=False, epoch=8, last_loss="disk full"),
            replace(cold, sandbox=moved.sandbox, epoch=2),
            replace(ending, sandbox=moved.sandbox, begun=False, epoch=2, last_loss="disk full"),
            moved,
        )
        assert await store.get(stranger.spec.id) == stranger

    async def test_of_a_family_that_notices_its_loss_at_once_one_moves_it(
        self, store: SessionStore, second: SessionStore
    ) -> None:
        """And the others see that it was moved; no epoch is skipped or given twice."""
        family = await a_family(store, "root", "one", "two", "three")

        def move(which: SessionStore, seen: Session) -> asyncio.Task[bool]:
            moved = replace(seen, sandbox=new_sandbox_id(), epoch=seen.epoch + 1)
            return asyncio.ensure_future(which.move(seen, moved, "gone"))

        done = await asyncio.gather(*(move((store, second)[n % 2], one) for n, one in enumerate(family * 2)))
        assert done.count(True) == 1
        after = await second.family(family[0].mount)
        assert len({one.sandbox for one in after}) == 1
        assert [one.epoch for one in after] == [2, 2, 2, 2]

    async def test_a_tier_changes_for_all_in_a_sandbox(self, store: SessionStore, second: SessionStore) -> None:
        """In one step, and not in a sandbox that they have left."""
        root, _ = await a_family(store, "root", "branch")
        await store.add(a_session("stranger"))
        assert await second.change_tier(root.sandbox, LARGE, cold=True)
        assert [one.spec.tier for one in await store.family(root.mount)] == [LARGE, LARGE]
        assert (await store.get(SessionId("stranger"))).spec.tier == MEDIUM
        assert not await second.change_tier(new_sandbox_id(), STANDARD, cold=False)

    async def test_a_tier_for_a_cold_sandbox_is_refused_once_anyone_has_begun(self, store: SessionStore) -> None:
        """Whoever it is: the host is to be asked first."""
        root, branch = await a_family(store, "root", "branch")
        assert await store.replace(branch, replace(branch, begun=True))
        assert not await store.change_tier(root.sandbox, LARGE, cold=True)
        assert (await store.get(root.spec.id)).spec.tier == MEDIUM
        assert await store.change_tier(root.sandbox, LARGE, cold=False)
        assert (await store.get(root.spec.id)).spec.tier == LARGE

    async def test_of_a_family_that_leaves_at_once_one_is_the_last(
        self, store: SessionStore, second: SessionStore
    ) -> None:
        """Whatever the order; what is left is the record of the last."""
        for round_ in range(5):
            names = [f"s{round_}-{n}" for n in range(4)]
            family = await a_family(store, *names)
            removed = await asyncio.gather(
                *((store, second)[n % 2].remove_unless_last(one) for n, one in enumerate(family))
            )
            assert sorted(removed) == [False, True, True, True]
            (last,) = await store.family(family[0].mount)
            assert last == family[removed.index(False)]

    async def test_another_session_of_the_same_name_is_not_removed(self, store: SessionStore) -> None:
        """By who wanted to remove the one before."""
        root, branch = await a_family(store, "root", "branch")
        assert await store.remove_unless_last(branch)
        assert await store.add_branch(replace(branch, created_at=LATE), root)
        assert not await store.remove_unless_last(branch)
        assert len(await store.family(root.mount)) == 2

    async def test_pages_go_on_where_the_last_one_ended(self, store: SessionStore) -> None:
        """Whatever came and went between, and without those of others."""
        for name in ("e", "c", "a", "d", "b"):
            await store.add(a_session(name))
        await store.add(a_session("b2", user="other"))
        first = await store.list(PageRequest(user="local", limit=2))
        assert [one.spec.id for one in first] == ["a", "b"]
        await store.remove(a_session("b"))
        await store.add(a_session("a2"))
        rest = await store.list(PageRequest(user="local", after=SessionId("b"), limit=10))
        assert [one.spec.id for one in rest] == ["c", "d", "e"]
        assert [one.spec.id for one in await store.list(PageRequest(user="other"))] == ["b2"]

    async def test_without_a_user_everybodys_are_listed(self, store: SessionStore) -> None:
        """In the same order."""
        for name, user in (("b", "local"), ("a", "other"), ("c", "third")):
            await store.add(a_session(name, user))
        assert [one.spec.id for one in await store.list(PageRequest(user=None))] == ["a", "b", "c"]
        assert [one.spec.id for one in await store.list(PageRequest(user=None, after=SessionId("a"), limit=1))] == ["b"]

    async def test_names_are_ordered_by_their_bytes(self, store: SessionStore) -> None:
        """Whatever order of letters a database prefers: pages of several stores are the same."""
        names = ["a-1", "a1", "a_1", "aa", "b"]
        for name in reversed(names):
            await store.add(a_session(name))
        assert [one.spec.id for one in await store.list(PageRequest(user="local"))] == names

    async def test_a_session_of_another_project_is_not_there(self, records: Records, store: SessionStore) -> None:
        """For whoever reads, uses or lists."""
        theirs = a_session("theirs", project=OTHERS)
        await records.sessions(OTHERS).add(theirs)
        for asked in (store.get(theirs.spec.id), store.use(theirs.spec.id, LATE)):
            with pytest.raises(NotFound):
                await asked
        assert await store.list(PageRequest(user=None)) == ()
        assert await store.list(PageRequest(user="local")) == ()
        assert await records.sessions(OTHERS).get(theirs.spec.id) == theirs

    async def test_a_name_is_taken_for_all_projects(self, records: Records, store: SessionStore) -> None:
        """As its files and its sandbox are named after it."""
        theirs = a_session("one", project=OTHERS)
        await records.sessions(OTHERS).add(theirs)
        with pytest.raises(Conflict, match="already"):
            await store.add(a_session("one"))
        assert not await store.replace(a_session("one"), a_session("one"))
        await store.remove(replace(a_session("one"), created_at=LATE))
        assert await records.sessions(OTHERS).get(theirs.spec.id) == theirs

    async def test_idle_limits_are_replaced_and_compared(self, store: SessionStore) -> None:
        """Also those that are not set, which are no number."""
        seen = a_session()
        await store.add(seen)
        unset = replace(seen, spec=replace(seen.spec, idle=IdleLimits()))
        half = replace(seen, spec=replace(seen.spec, idle=IdleLimits(freeze_after_s=900)))
        assert not await store.replace(unset, half)
        assert await store.replace(seen, unset)
        assert await store.get(seen.spec.id) == unset
        assert await store.replace(unset, half)
        assert await store.get(seen.spec.id) == half

    async def test_a_store_that_answers_says_so(self, records: Records) -> None:
        """Also before its first use, and after it was closed."""
        await records.check()
        await records.aclose()
        await records.check()

    async def test_closing_twice_is_no_error(self, records: Records, store: SessionStore) -> None:
        """As for everything that is owned."""
        await store.add(a_session())
        await records.aclose()
        await records.aclose()
