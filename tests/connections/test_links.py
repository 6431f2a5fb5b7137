"""Links, and which of a user's accounts a call is made with."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.connections.conftest import Place, session_of

from workbench.core.connection_links import checked_callback
from workbench.core.connection_requests import (
    AccountName,
    AddAuthConfig,
    BeginConnection,
    ChangeAccount,
    FinishByFields,
    ImportAccount,
    ListAccounts,
)
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, QuotaExceeded, StoreUnavailable
from workbench.model.configuration import MultiAccount, SessionConfig
from workbench.model.connection import ConnectedAccount, ConnectionStatus
from workbench.model.ids import DEFAULT_PROJECT
from workbench.model.toolkit import AuthKind


async def _keyed(place: Place, key: str = "CANARY", **more: object) -> ConnectedAccount:
    begun = await place.begin("keyed", **more)
    return await place.links.finish(FinishByFields(token=begun.token, kind=AuthKind.API_KEY, values={"api_key": key}))


async def _used(place: Place, config: SessionConfig | None = None, account: str = "", user: str = "alice") -> str:
    session, kit = session_of(user, config), await place.toolkit("keyed")
    return (await place.connections.credential_for(session, kit, account)).account


async def test_a_link_connects_once_whoever_is_quick(place: Place) -> None:
    begun = await place.begin("keyed")
    request = FinishByFields(token=begun.token, kind=AuthKind.API_KEY, values={"api_key": "a"})
    done = await asyncio.gather(*(place.links.finish(request) for _ in range(4)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["Conflict", "Conflict", "Conflict", "ConnectedAccount"]
    with pytest.raises(Conflict, match="used already"):
        await place.links.finish(request)


async def test_a_link_is_kept_as_a_digest_and_its_token_is_not_shown(place: Place) -> None:
    begun = await place.begin("keyed")
    assert begun.token not in repr(begun)
    assert begun.token not in repr(await place.links.look(begun.token))
    assert begun.path == f"/connect/{begun.token}"
    await place.records.aclose()
    for path in place.data.iterdir():
        assert begun.token.encode() not in path.read_bytes()


async def test_a_link_goes_with_its_account(place: Place) -> None:
    begun = await place.begin("keyed")
    await place.connections.remove(AccountName(project=DEFAULT_PROJECT, account=begun.account.id))
    with pytest.raises(NotFound, match="ask for a new one"):
        await place.links.look(begun.token)


async def test_the_newest_good_account_is_the_usual_one(place: Place) -> None:
    with pytest.raises(Denied, match=r"no active connection of user 'alice' with keyed; .*workbench connect keyed"):
        await _used(place)
    first = await _keyed(place)
    second = await _keyed(place, alias="work")
    await place.begin("keyed")
    assert await _used(place) == second.id
    assert await _used(place, account=first.id) == first.id
    assert await _used(place, account="work") == second.id
    with pytest.raises(InvalidRequest, match=rf"no account 'home' of keyed .*{first.id}, {second.id} \(work\)"):
        await _used(place, account="home")


async def test_another_users_account_is_never_used(place: Place) -> None:
    mine = await _keyed(place)
    for account in ("", mine.id):
        with pytest.raises((Denied, InvalidRequest)):
            await _used(place, account=account, user="bob")
    named = SessionConfig(connected_accounts={"keyed": (mine.id,)})
    with pytest.raises(Denied):
        await _used(place, named, user="bob")


async def test_a_configuration_names_the_accounts_that_are_used(place: Place) -> None:
    first = await _keyed(place)
    second = await _keyed(place)
    named = SessionConfig(connected_accounts={"Keyed": (first.id,)})
    assert await _used(place, named) == first.id
    with pytest.raises(InvalidRequest, match="no account"):
        await _used(place, named, account=second.id)
    gone = SessionConfig(connected_accounts={"keyed": ("ca_gone",)})
    with pytest.raises(Denied, match="no active connection"):
        await _used(place, gone)


async def test_one_of_several_is_named_where_a_configuration_wants_it(place: Place) -> None:
    config = SessionConfig(multi_account=MultiAccount(enable=True, require_explicit_selection=True))
    first = await _keyed(place, alias="home")
    assert await _used(place, config) == first.id
    await _keyed(place, alias="work")
    with pytest.raises(InvalidRequest, match=r"pass one as `account`: .*home.*work"):
        await _used(place, config)
    assert await _used(place, config, account="home") == first.id


async def test_more_accounts_than_a_session_allows_are_refused(place: Place) -> None:
    await _keyed(place)
    await _keyed(place)
    with pytest.raises(QuotaExceeded, match="the session allows 2; remove one first"):
        await place.begin("keyed", most_accounts=2)
    await place.begin("keyed", most_accounts=3)


async def test_links_that_nobody_uses_are_bounded_and_go_with_the_next_one_after_their_time(place: Place) -> None:
    good = await _keyed(place)
    for _ in range(20):
        await place.begin("keyed")
    with pytest.raises(QuotaExceeded, match="20 links for keyed that wait to be used"):
        await place.begin("keyed")
    assert await _used(place) == good.id
    place.clock.seconds += 1801
    last = await place.begin("keyed")
    found = await place.connections.list(ListAccounts(project=DEFAULT_PROJECT))
    assert [one.id for one in found] == [good.id, last.account.id]


async def test_what_a_user_is_told_about_a_connection_says_what_is_next(place: Place) -> None:
    kit = await place.toolkit("keyed")
    reach = await place.connections.reach(kit, session_of())
    assert (reach.is_active, "connect it by" in reach.words) == (False, True)
    begun = await place.begin("keyed")
    assert "not finished yet" in (await place.connections.reach(kit, session_of())).words
    await place.links.finish(FinishByFields(token=begun.token, kind=AuthKind.API_KEY, values={"api_key": "a"}))
    reach = await place.connections.reach(kit, session_of())
    assert (reach.is_active, begun.account.id in reach.words) == (True, True)


async def test_a_key_that_the_service_refuses_is_expired_as_there_is_no_way_to_another(place: Place) -> None:
    account, kit = await _keyed(place), await place.toolkit("keyed")
    refused = await place.connections.credential_for(session_of(), kit)
    with pytest.raises(Denied, match=r"is expired: the service does not take it any more.*workbench connect keyed"):
        await place.connections.renewed(session_of(), kit, refused)
    told = await place.connections.get(AccountName(project=DEFAULT_PROJECT, account=account.id))
    assert told.status is ConnectionStatus.EXPIRED


async def test_a_secret_that_was_put_beside_another_record_is_not_used(place: Place) -> None:
    store = place.records.connections
    mine, other = await _keyed(place), await _keyed(place, user="bob")
    seen, theirs = [await store.get(DEFAULT_PROJECT, one.id) for one in (mine, other)]
    assert await store.replace(seen, seen.account, theirs.sealed)
    with pytest.raises(StoreUnavailable, match="belongs to something else") as problem:
        await _used(place)
    assert "CANARY" not in str(problem.value)


async def test_accounts_are_listed_without_anything_secret(place: Place) -> None:
    await _keyed(place, key="CANARY-in-a-list")
    found = await place.connections.list(ListAccounts(project=DEFAULT_PROJECT))
    kept = await place.records.connections.get(DEFAULT_PROJECT, found[0].id)
    credential = await place.connections.credential_for(session_of(), await place.toolkit("keyed"))
    for shown in (repr(found), repr(kept), repr(credential)):
        assert "CANARY" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "https://app.example.com\\.evil.example/",
        "data:text/html,x",
        "ftp://a/b",
        "https://",
        "https://user@host/",
        "https://host/a b",
        "https://host/\r\nx: y",
        "//host/path",
        "https://[::1",
        "https://host/" + "x" * 2000,
    ],
)
def test_a_person_is_sent_to_addresses_of_the_web_only(url: str) -> None:
    with pytest.raises(InvalidRequest, match="callback_url must be like"):
        checked_callback(url)
    assert checked_callback("https://app.example/x?y=z") == "https://app.example/x?y=z"
    assert checked_callback("") == ""


async def _known(place: Place, token: str, kind: AuthKind = AuthKind.BEARER_TOKEN) -> ConnectedAccount:
    begun = await place.begin("known")
    name = "token" if kind is AuthKind.BEARER_TOKEN else "api_key"
    return await place.links.finish(FinishByFields(token=begun.token, kind=kind, values={name: token}))


async def test_an_account_is_called_as_its_service_calls_it(place: Place) -> None:
    account = await _known(place, "known-1")
    assert (account.status, account.label) == (ConnectionStatus.ACTIVE, "ann@example.com")
    kept = await place.connections.get(AccountName(project=DEFAULT_PROJECT, account=account.id))
    assert kept.label == "ann@example.com"


async def test_that_a_service_does_not_say_who_it_is_costs_the_name_only(place: Place) -> None:
    account = await _known(place, "unknown")
    assert (account.status, account.label) == (ConnectionStatus.ACTIVE, "")
    kit = await place.toolkit("known")
    credential = await place.connections.credential_for(session_of(), kit)
    assert credential.values["token"].reveal() == "unknown"


async def test_a_link_that_nobody_used_is_written_down_as_expired(place: Place) -> None:
    begun, kept = await place.begin("keyed"), await _keyed(place)
    place.clock.seconds = 1900
    await place.connections.sweep()
    place.clock.seconds = 0
    name = AccountName(project=DEFAULT_PROJECT, account=begun.account.id)
    written = await place.connections.get(name)
    assert (written.status, written.status_reason[:21]) == (ConnectionStatus.EXPIRED, "its link was not used")
    assert (await place.connections.get(AccountName(project=DEFAULT_PROJECT, account=kept.id))).is_active
    with pytest.raises(NotFound):
        await place.links.look(begun.token)


async def test_an_account_is_renamed_and_switched_off_and_on_with_what_it_has(place: Place) -> None:
    first, second = await _keyed(place, alias="home"), await _keyed(place)
    change = ChangeAccount(project=DEFAULT_PROJECT, account=second.id)
    assert (await place.connections.change(replace(change, alias="work"))).alias == "work"
    with pytest.raises(Conflict, match="called 'home' already"):
        await place.connections.change(replace(change, alias="home"))
    off = await place.connections.change(replace(change, enabled=False))
    assert (off.status, off.alias) == (ConnectionStatus.INACTIVE, "work")
    assert await _used(place) == first.id
    with pytest.raises(Denied, match=r"is inactive \(it was switched off"):
        await _used(place, account="work")
    assert (await place.connections.change(replace(change, enabled=False))).status is ConnectionStatus.INACTIVE
    assert (await place.connections.change(replace(change, enabled=True))).is_active
    assert await _used(place, account="work") == second.id
    waiting = await place.begin("keyed")
    with pytest.raises(Conflict, match="is initiated"):
        await place.connections.change(ChangeAccount(project=DEFAULT_PROJECT, account=waiting.account.id, enabled=True))


async def test_an_auth_config_of_a_key_offers_that_way_alone(place: Place) -> None:
    wanted = AddAuthConfig(project=DEFAULT_PROJECT, toolkit="known", kind=AuthKind.API_KEY)
    config = await place.connections.add_config(wanted)
    begun = await place.begin("known", auth_config=config.id)
    assert [one.kind for one in (await place.links.look(begun.token)).ways] == [AuthKind.API_KEY]
    done = await place.links.finish(FinishByFields(token=begun.token, kind=AuthKind.API_KEY, values={"api_key": "k"}))
    assert done.auth_config == config.id
    with pytest.raises(InvalidRequest, match=r"not connected by BASIC; they are by: BEARER_TOKEN, API_KEY"):
        await place.connections.add_config(replace(wanted, kind=AuthKind.BASIC))


async def test_a_key_that_is_known_already_is_kept_without_a_person(place: Place) -> None:
    asked = BeginConnection(project=DEFAULT_PROJECT, user="alice", toolkit="keyed", alias="import")
    added = await place.links.add(ImportAccount(begin=asked, kind=AuthKind.API_KEY, values={"api_key": "k"}))
    assert (added.is_active, added.alias) == (True, "import")
    with pytest.raises(InvalidRequest, match="API key is missing"):
        await place.links.add(ImportAccount(begin=asked, kind=AuthKind.API_KEY, values={}))
    assert len(await place.connections.list(ListAccounts(project=DEFAULT_PROJECT, user="alice"))) == 1
