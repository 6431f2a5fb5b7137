"""The suite that every store of connected accounts passes. `testing.storage_contract` says how it is used."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from workbench.contracts.connections import AccountsRequest
from workbench.contracts.storage import Records
from workbench.errors import Conflict, NotFound
from workbench.model.connection import (
    AccountId,
    AuthConfig,
    AuthConfigId,
    ConnectedAccount,
    ConnectionStatus,
    PendingLink,
)
from workbench.model.ids import DEFAULT_PROJECT, ProjectId
from workbench.model.toolkit import AuthKind
from workbench.testing.storage_contract import EARLY, LATE, OTHERS, OpenedRecords

_SEALED = b"\x00sealed\xff"
_BETWEEN = "2030-01-01T12:00:00.000000Z"


def an_account(name: str = "ca_1", user: str = "alice", project: ProjectId = DEFAULT_PROJECT) -> ConnectedAccount:
    """With something in every field."""
    return ConnectedAccount(
        id=AccountId(name),
        project=project,
        user=user,
        toolkit="github",
        alias="für die Arbeit",
        auth_config=AuthConfigId("ac_1"),
        kind=AuthKind.OAUTH2,
        status=ConnectionStatus.ACTIVE,
        status_reason="finished",
        scopes=("repo", "user:email"),
        created_at=EARLY,
        updated_at=EARLY,
        expires_at=LATE,
        label="octocat",
    )


def a_config(name: str = "ac_1", project: ProjectId = DEFAULT_PROJECT) -> AuthConfig:
    """With something in every field."""
    return AuthConfig(
        id=AuthConfigId(name),
        project=project,
        toolkit="github",
        kind=AuthKind.OAUTH2,
        client_id="client",
        scopes=("repo",),
        created_at=EARLY,
    )


def a_link(digest: str = "d1", account: str = "ca_1") -> PendingLink:
    """With something in every field of a new one."""
    return PendingLink(
        digest=digest,
        account=AccountId(account),
        project=DEFAULT_PROJECT,
        user="alice",
        toolkit="github",
        callback_url="https://app.example/back",
        created_at=EARLY,
        expires_at=LATE,
    )


class ConnectionStoreContract(OpenedRecords):
    """Subclass it, with the fixture `open_records`."""

    async def test_an_account_comes_back_as_it_was_kept_with_what_is_sealed(
        self, records: Records, more_records: Records
    ) -> None:
        """One with little in it as well."""
        await records.connections.add(an_account(), _SEALED)
        bare = replace(an_account("ca_2"), auth_config=None, scopes=(), expires_at="", label="", alias="")
        await records.connections.add(bare)
        kept = await more_records.connections.get(DEFAULT_PROJECT, AccountId("ca_1"))
        assert (kept.account, kept.sealed) == (an_account(), _SEALED)
        kept = await more_records.connections.get(DEFAULT_PROJECT, AccountId("ca_2"))
        assert (kept.account, kept.sealed) == (bare, b"")

    async def test_an_id_of_an_account_is_taken_once(self, records: Records) -> None:
        """Whoever has it."""
        await records.connections.add(an_account())
        with pytest.raises(Conflict, match="ca_1"):
            await records.connections.add(an_account(user="bob"))

    async def test_another_projects_accounts_are_not_there(self, records: Records) -> None:
        """For nobody who looks, lists or removes."""
        await records.connections.add(an_account(), _SEALED)
        with pytest.raises(NotFound, match="workbench connections list"):
            await records.connections.get(OTHERS, AccountId("ca_1"))
        assert await records.connections.list(AccountsRequest(project=OTHERS)) == ()
        assert not await records.connections.remove(OTHERS, AccountId("ca_1"))
        assert await records.connections.get(DEFAULT_PROJECT, AccountId("ca_1"))

    async def test_accounts_are_listed_by_time_of_one_user_or_all_page_by_page(self, records: Records) -> None:
        """Also when the last of a page is gone."""
        store = records.connections
        for number, user in enumerate(["alice", "bob", "alice"]):
            await store.add(replace(an_account(f"ca_{number}", user), toolkit=f"kit{number % 2}"))
        ids = [one.id for one in await store.list(AccountsRequest(project=DEFAULT_PROJECT))]
        assert ids == ["ca_0", "ca_1", "ca_2"]
        alices = await store.list(AccountsRequest(project=DEFAULT_PROJECT, user="alice"))
        assert [one.id for one in alices] == ["ca_0", "ca_2"]
        ones = await store.list(AccountsRequest(project=DEFAULT_PROJECT, toolkit="kit1"))
        assert [one.id for one in ones] == ["ca_1"]
        first = await store.list(AccountsRequest(project=DEFAULT_PROJECT, limit=2))
        await store.remove(DEFAULT_PROJECT, first[-1].id)
        after = (first[-1].created_at, first[-1].id)
        rest = await store.list(AccountsRequest(project=DEFAULT_PROJECT, after=after, limit=2))
        assert [one.id for one in rest] == ["ca_2"]

    async def test_of_several_who_change_an_account_at_once_one_is_first(
        self, records: Records, more_records: Records
    ) -> None:
        """Also among processes."""
        await records.connections.add(an_account(), _SEALED)
        seen = await records.connections.get(DEFAULT_PROJECT, AccountId("ca_1"))
        news = [replace(seen.account, status_reason=str(number), updated_at=LATE) for number in range(4)]
        stores = [records.connections, more_records.connections] * 2
        done = await asyncio.gather(
            *(store.replace(seen, new, b"new") for store, new in zip(stores, news, strict=True))
        )
        assert sorted(done) == [False, False, False, True]
        kept = await records.connections.get(DEFAULT_PROJECT, AccountId("ca_1"))
        assert (kept.account, kept.sealed) == (news[done.index(True)], b"new")
        assert kept.revision > seen.revision

    async def test_an_account_that_is_gone_is_not_written_again(self, records: Records) -> None:
        """By who had seen it before."""
        await records.connections.add(an_account(), _SEALED)
        seen = await records.connections.get(DEFAULT_PROJECT, AccountId("ca_1"))
        assert await records.connections.remove(DEFAULT_PROJECT, AccountId("ca_1"))
        assert not await records.connections.remove(DEFAULT_PROJECT, AccountId("ca_1"))
        assert not await records.connections.replace(seen, seen.account, b"new")
        assert await records.connections.list(AccountsRequest(project=DEFAULT_PROJECT)) == ()

    async def test_only_one_holds_an_account_until_its_time_is_over(
        self, records: Records, more_records: Records
    ) -> None:
        """Or it is let go by who holds it."""
        one, other = records.connections, more_records.connections
        await one.add(an_account())
        account = AccountId("ca_1")
        assert await one.hold(account, "a", EARLY, _BETWEEN)
        assert not await other.hold(account, "b", EARLY, _BETWEEN)
        assert await one.hold(account, "a", EARLY, _BETWEEN)
        await other.let_go(account, "b")
        assert not await other.hold(account, "b", EARLY, _BETWEEN)
        assert await other.hold(account, "b", LATE, LATE)
        await one.let_go(account, "a")
        assert not await one.hold(account, "a", EARLY, LATE)
        await other.let_go(account, "b")
        assert await one.hold(account, "a", EARLY, LATE)
        assert not await one.hold(AccountId("ca_none"), "a", EARLY, LATE)

    async def test_holding_an_account_is_no_change_of_it(self, records: Records) -> None:
        """Who saw it before may still write."""
        await records.connections.add(an_account())
        seen = await records.connections.get(DEFAULT_PROJECT, AccountId("ca_1"))
        assert await records.connections.hold(AccountId("ca_1"), "a", EARLY, LATE)
        assert await records.connections.replace(seen, seen.account, b"new")

    async def test_auth_configs_come_back_newest_first_and_go(self, records: Records, more_records: Records) -> None:
        """With what is sealed, and of their own project only."""
        store = records.connections
        await store.add_config(a_config(), _SEALED)
        later = replace(a_config("ac_2"), toolkit="gmail", created_at=LATE, scopes=())
        await store.add_config(later)
        await store.add_config(a_config("ac_3", OTHERS))
        assert await more_records.connections.config(DEFAULT_PROJECT, AuthConfigId("ac_1")) == (a_config(), _SEALED)
        assert await store.configs(DEFAULT_PROJECT) == (later, a_config())
        assert await store.configs(DEFAULT_PROJECT, "github") == (a_config(),)
        with pytest.raises(Conflict, match="ac_1"):
            await store.add_config(a_config())
        with pytest.raises(NotFound, match="workbench auth-configs list"):
            await store.config(DEFAULT_PROJECT, AuthConfigId("ac_3"))
        assert not await store.remove_config(OTHERS, AuthConfigId("ac_1"))
        assert await store.remove_config(DEFAULT_PROJECT, AuthConfigId("ac_1"))
        assert not await store.remove_config(DEFAULT_PROJECT, AuthConfigId("ac_1"))

    async def test_a_link_is_found_by_its_digest_and_by_its_state_while_it_has_one(self, records: Records) -> None:
        """And never by an empty one."""
        store = records.connections
        await store.add(an_account())
        await store.add_link(a_link(), _SEALED)
        await store.add_link(a_link("d2"))
        assert await store.link("d1") == (a_link(), _SEALED)
        with pytest.raises(NotFound, match="ask for a new one"):
            await store.link("other")
        with pytest.raises(NotFound):
            await store.link_by_state("")
        asked = replace(a_link(), state="s1")
        assert await store.replace_link(a_link(), asked, b"verifier")
        assert await store.link_by_state("s1") == (asked, b"verifier")
        done = replace(asked, state="", finished_at=LATE)
        assert await store.replace_link(asked, done, b"")
        with pytest.raises(NotFound):
            await store.link_by_state("s1")
        assert await store.link("d1") == (done, b"")

    async def test_a_state_is_used_by_one_of_several_who_bring_it(
        self, records: Records, more_records: Records
    ) -> None:
        """Also among processes."""
        await records.connections.add(an_account())
        asked = replace(a_link(), state="s1")
        await records.connections.add_link(asked)
        used = replace(asked, state="")
        stores = [records.connections, more_records.connections] * 2
        done = await asyncio.gather(*(store.replace_link(asked, used, b"") for store in stores))
        assert sorted(done) == [False, False, False, True]

    async def test_what_nobody_finished_in_time_is_written_down_as_expired(self, records: Records) -> None:
        """Once, and nothing else is touched."""
        store = records.connections
        waiting = replace(an_account(), status=ConnectionStatus.INITIATED, updated_at=EARLY)
        await store.add(waiting)
        await store.add(replace(an_account("ca_2"), status=ConnectionStatus.INITIATED, updated_at=LATE))
        await store.add(replace(an_account("ca_3"), status=ConnectionStatus.ACTIVE, updated_at=EARLY))
        assert await store.expire_unused(_BETWEEN, LATE, "too late") == 1
        assert await store.expire_unused(_BETWEEN, LATE, "too late") == 0
        kept = await store.get(DEFAULT_PROJECT, AccountId("ca_1"))
        over = replace(waiting, status=ConnectionStatus.EXPIRED, status_reason="too late", updated_at=LATE)
        assert (kept.account, kept.revision) == (over, 2)
        assert (await store.get(DEFAULT_PROJECT, AccountId("ca_3"))).account.status is ConnectionStatus.ACTIVE

    async def test_links_go_with_their_account_and_when_they_are_old(self, records: Records) -> None:
        """And are made for one that is there only."""
        store = records.connections
        with pytest.raises(NotFound, match="ca_1"):
            await store.add_link(a_link())
        await store.add(an_account())
        await store.add(an_account("ca_2"))
        await store.add_link(a_link("d1"))
        await store.add_link(replace(a_link("d2", "ca_2"), expires_at=EARLY))
        assert await store.drop_links_expired_before(_BETWEEN) == 1
        assert await store.drop_links_expired_before(_BETWEEN) == 0
        await store.remove(DEFAULT_PROJECT, AccountId("ca_1"))
        for digest in ("d1", "d2"):
            with pytest.raises(NotFound):
                await store.link(digest)
        assert await store.get(DEFAULT_PROJECT, AccountId("ca_2"))

    async def test_all_that_is_sealed_is_found_page_by_page_and_sealed_anew(self, records: Records) -> None:
        """Of all projects, without a change of the record."""
        store = records.connections
        await store.add(an_account(), b"one")
        await store.add(an_account("ca_2", project=OTHERS), b"two")
        await store.add(an_account("ca_3"))
        await store.add_config(a_config(), b"three")
        await store.add_link(a_link(), b"four")
        found, after = list[bytes](), ""
        while page := await store.sealed_under(after, 1):
            ((after, sealed),) = page
            found.append(sealed)
            assert not await store.reseal(after, b"another", b"new")
            assert await store.reseal(after, sealed, b"new " + sealed)
        assert sorted(found) == [b"four", b"one", b"three", b"two"]
        kept = await store.get(DEFAULT_PROJECT, AccountId("ca_1"))
        assert (kept.sealed, kept.revision) == (b"new one", 1)
        assert (await store.config(DEFAULT_PROJECT, AuthConfigId("ac_1")))[1] == b"new three"
        assert (await store.link("d1"))[1] == b"new four"

    async def test_a_forgotten_users_accounts_and_links_are_gone(self, records: Records) -> None:
        """And no others."""
        store = records.connections
        await store.add(an_account(), _SEALED)
        await store.add_link(a_link(), _SEALED)
        await store.add(an_account("ca_2", "bob"))
        await store.add(an_account("ca_3", project=OTHERS))
        await records.house.forget_user(DEFAULT_PROJECT, "alice")
        assert [one.id for one in await store.list(AccountsRequest(project=DEFAULT_PROJECT))] == ["ca_2"]
        assert [one.id for one in await store.list(AccountsRequest(project=OTHERS))] == ["ca_3"]
        with pytest.raises(NotFound):
            await store.link("d1")
