"""OAuth2 against a real authorisation server: there and back, renewed, by a code, taken back; and everything that goes
wrong on the way.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from tests.connections.authorisation import CLIENT_ID, SCOPES
from tests.connections.conftest import BROWSER, REDIRECT, Place, agreed, opened, session_of

from workbench.core.connection_requests import (
    AccountName,
    AuthConfigName,
    BegunConnection,
    FinishByFields,
    Returned,
)
from workbench.errors import Conflict, Denied, InvalidRequest, NotConfigured, NotFound, UpstreamError
from workbench.model.connection import ACCESS_TOKEN, AuthConfigId, ConnectionStatus, Credential
from workbench.model.ids import DEFAULT_PROJECT
from workbench.model.toolkit import AuthKind


def _works(place: Place, credential: Credential) -> bool:
    """Whether the service takes it."""
    bearer = f"Bearer {credential.values[ACCESS_TOKEN].reveal()}"
    answer = httpx2.get(f"{place.authorisation.url}/notes", headers={"authorization": bearer}, trust_env=False)
    return answer.status_code == 200


async def _credential(place: Place, account: str = "") -> Credential:
    return await place.connections.credential_for(session_of(), await place.toolkit("notes"), account)


async def test_a_person_who_agrees_is_connected_and_the_service_takes_the_token(place: Place) -> None:
    config = await place.add_config()
    begun = await place.begin("notes", alias="work")
    assert begun.account.status is ConnectionStatus.INITIATED
    url = await place.sent_away(begun)
    asked = dict(parse_qsl(urlsplit(url).query))
    assert (asked["client_id"], asked["redirect_uri"], asked["scope"]) == (CLIENT_ID, REDIRECT, SCOPES)
    assert (asked["code_challenge_method"], len(asked["code_challenge"])) == ("S256", 43)
    back = agreed(url)
    view = await place.links.returned(Returned(state=back["state"], browser=BROWSER, code=back["code"]))
    account = view.account
    assert (account.status, account.alias, account.auth_config) == (ConnectionStatus.ACTIVE, "work", config)
    assert account.scopes == tuple(SCOPES.split())
    assert account.expires_at > place.clock.now_iso()
    assert view.link.finished_at
    credential = await _credential(place)
    assert credential.account == account.id
    assert _works(place, credential)


async def test_the_clients_secret_goes_by_basic_where_the_service_wants_it_so(place: Place) -> None:
    place.authorisation.world.client_auth = "client_secret_basic"
    kit = await place.toolkit("notes")
    scheme = kit.auth[0]
    assert scheme.oauth is not None
    basic = replace(kit, auth=(replace(scheme, oauth=replace(scheme.oauth, client_auth="basic")),))
    place.catalogue._own[0]._kits = (basic,)  # type: ignore[attr-defined]
    await place.add_config()
    assert _works(place, await _connected_credential(place))
    path, form = next(one for one in place.authorisation.world.seen if one[0] == "/token")
    assert "client_secret" not in form, path


async def _connected_credential(place: Place) -> Credential:
    await place.connected()
    return await _credential(place)


async def test_a_person_who_refuses_is_not_connected_and_may_try_again(place: Place) -> None:
    await place.add_config()
    begun = await place.begin("notes")
    back = agreed(await place.sent_away(begun), yes=False)
    assert "code" not in back
    view = await place.links.returned(Returned(state=back["state"], browser=BROWSER, error=back["error"]))
    assert view.account.status is ConnectionStatus.FAILED
    assert "access_denied" in view.account.status_reason
    with pytest.raises(Denied, match="is failed"):
        await _credential(place)
    back = agreed(await place.sent_away(begun))
    view = await place.links.returned(Returned(state=back["state"], browser=BROWSER, code=back["code"]))
    assert view.account.is_active


async def test_a_state_is_good_once_and_for_the_browser_that_was_sent_away(place: Place) -> None:
    await place.add_config()
    begun = await place.begin("notes")
    back = agreed(await place.sent_away(begun))
    for browser in ("c" * 43, ""):
        with pytest.raises(Denied, match="another browser"):
            await place.links.returned(Returned(state=back["state"], browser=browser, code=back["code"]))
    good = Returned(state=back["state"], browser=BROWSER, code=back["code"])
    done = await asyncio.gather(*(place.links.returned(good) for _ in range(3)), return_exceptions=True)
    assert sum(not isinstance(one, BaseException) for one in done) == 1
    assert all(isinstance(one, NotFound | Conflict) for one in done if isinstance(one, BaseException)), done
    with pytest.raises(NotFound):
        await place.links.returned(good)
    with pytest.raises(Conflict, match="used already"):
        await place.sent_away(begun)


async def test_to_be_sent_away_again_makes_the_state_before_worthless(place: Place) -> None:
    await place.add_config()
    begun = await place.begin("notes")
    first = agreed(await place.sent_away(begun))
    await place.sent_away(begun)
    with pytest.raises(NotFound):
        await place.links.returned(Returned(state=first["state"], browser=BROWSER, code=first["code"]))


async def test_a_code_that_is_not_the_services_fails_and_says_so(place: Place) -> None:
    await place.add_config()
    begun = await place.begin("notes")
    back = agreed(await place.sent_away(begun))
    view = await place.links.returned(Returned(state=back["state"], browser=BROWSER, code="made-up"))
    assert view.account.status is ConnectionStatus.FAILED
    assert "invalid_grant" in view.account.status_reason


async def test_a_link_that_nobody_used_in_time_is_over(place: Place) -> None:
    await place.add_config()
    begun = await place.begin("notes")
    back = agreed(await place.sent_away(begun))
    place.clock.seconds += 1801
    with pytest.raises(NotFound, match="is over"):
        await place.links.look(begun.token)
    with pytest.raises(NotFound, match="is over"):
        await place.links.returned(Returned(state=back["state"], browser=BROWSER, code=back["code"]))
    told = await place.connections.get(AccountName(project=DEFAULT_PROJECT, account=begun.account.id))
    assert told.status is ConnectionStatus.EXPIRED
    assert await place.connections.sweep() == 1


async def test_a_token_that_is_due_is_renewed_before_it_is_used(place: Place) -> None:
    await place.add_config()
    await place.connected()
    before = await _credential(place)
    place.clock.seconds += 3600 - 30
    after = await _credential(place)
    assert after.values != before.values
    assert _works(place, after)
    assert len(place.authorisation.world.tokens) == 2


async def test_many_calls_at_once_renew_a_token_once_although_it_is_good_once(place: Place) -> None:
    await place.add_config()
    await place.connected()
    place.authorisation.world.slow_s = 0.2
    place.clock.seconds += 7200
    credentials = await asyncio.gather(*(_credential(place) for _ in range(8)))
    assert len({one.values[ACCESS_TOKEN].reveal() for one in credentials}) == 1
    assert [path for path, form in place.authorisation.world.seen if form.get("grant_type") == "refresh_token"] == [
        "/token"
    ]
    assert _works(place, credentials[0])


async def test_processes_that_share_the_records_renew_a_token_once_as_well(place: Place) -> None:
    await place.add_config()
    await place.connected()
    place.authorisation.world.slow_s = 0.2
    place.clock.seconds += 7200
    others = [opened(place.authorisation, place.data, place.clock) for _ in range(3)]
    try:
        credentials = await asyncio.gather(*(_credential(one) for one in (place, *others) for _ in range(2)))
    finally:
        for one in others:
            await one.close()
    assert len({one.values[ACCESS_TOKEN].reveal() for one in credentials}) == 1
    assert len(place.authorisation.world.tokens) == 2


async def test_who_was_killed_while_renewing_keeps_the_others_waiting_for_a_while_only(place: Place) -> None:
    await place.add_config()
    account = await place.connected()
    place.clock.seconds += 7200
    now, until = place.clock.now_iso(), place.clock.after(1.0)
    assert await place.records.connections.hold(account.id, "killed", now, until)
    assert _works(place, await _credential(place))


async def test_a_token_that_the_service_refuses_is_renewed_for_who_was_refused(place: Place) -> None:
    await place.add_config()
    await place.connected()
    refused, kit = await _credential(place), await place.toolkit("notes")
    again = await place.connections.renewed(session_of(), kit, refused)
    assert again.values != refused.values
    # Another who was refused with the same one gets what is there by now.
    assert (await place.connections.renewed(session_of(), kit, refused)).values == again.values
    assert len(place.authorisation.world.tokens) == 2


async def test_what_the_service_does_not_renew_is_expired_with_the_next_step(place: Place) -> None:
    await place.add_config()
    account = await place.connected()
    place.authorisation.world.tokens[0].revoked = True
    place.clock.seconds += 7200
    with pytest.raises(Denied, match=r"is expired: .*invalid_grant.*workbench connect notes"):
        await _credential(place)
    told = await place.connections.get(AccountName(project=DEFAULT_PROJECT, account=account.id))
    assert told.status is ConnectionStatus.EXPIRED
    asked = len(place.authorisation.world.seen)
    with pytest.raises(Denied, match="is expired"):
        await _credential(place)
    assert len(place.authorisation.world.seen) == asked


async def test_a_service_that_cannot_be_asked_is_no_reason_to_forget_an_account(place: Place) -> None:
    await place.add_config()
    await place.connected()
    before = await _credential(place)
    place.authorisation.world.broken = True
    place.clock.seconds += 3600 - 30
    assert (await _credential(place)).values == before.values
    place.clock.seconds += 60
    with pytest.raises(UpstreamError, match="status 500"):
        await _credential(place)
    place.authorisation.world.broken = False
    assert _works(place, await _credential(place))


async def test_without_its_auth_config_an_account_cannot_be_renewed(place: Place) -> None:
    config = await place.add_config()
    await place.connected()
    await place.connections.remove_config(AuthConfigName(project=DEFAULT_PROJECT, config=AuthConfigId(config)))
    with pytest.raises(NotFound, match="auth-configs list"):
        await place.connections.remove_config(AuthConfigName(project=DEFAULT_PROJECT, config=AuthConfigId(config)))
    place.clock.seconds += 7200
    with pytest.raises(Denied, match=r"auth config .* was removed"):
        await _credential(place)


async def test_a_removed_account_is_taken_back_at_the_service(place: Place) -> None:
    await place.add_config()
    account = await place.connected()
    credential = await _credential(place)
    assert await place.connections.remove(AccountName(project=DEFAULT_PROJECT, account=account.id))
    assert not _works(place, credential)
    with pytest.raises(Denied, match="no active connection of user 'alice' with notes; connect it"):
        await _credential(place)
    with pytest.raises(NotFound):
        await place.connections.remove(AccountName(project=DEFAULT_PROJECT, account=account.id))


async def test_a_code_typed_in_elsewhere_connects(place: Place) -> None:
    await place.add_config()
    begun = await place.begin("notes")
    shown = await place.links.device(begun.token)
    assert shown.verification_uri == f"{place.authorisation.url}/activate"
    assert not shown.account.is_active
    place.clock.seconds += 2
    assert (await place.links.device(begun.token)).user_code == shown.user_code
    place.authorisation.world.granted[shown.user_code] = True
    asked = len(place.authorisation.world.seen)
    place.clock.seconds += 6
    assert (await place.links.device(begun.token)).account.is_active
    assert len(place.authorisation.world.seen) == asked + 1
    assert _works(place, await _credential(place))


async def test_a_code_that_is_refused_elsewhere_fails(place: Place) -> None:
    await place.add_config()
    begun = await place.begin("notes")
    shown = await place.links.device(begun.token)
    place.authorisation.world.granted[shown.user_code] = False
    place.clock.seconds += 6
    with pytest.raises(Denied, match="access_denied"):
        await place.links.device(begun.token)
    assert (await place.links.look(begun.token)).account.status is ConnectionStatus.FAILED
    assert (await place.links.device(begun.token)).user_code != shown.user_code


async def test_without_a_client_there_is_nothing_to_connect_by_and_the_next_step_is_told(place: Place) -> None:
    with pytest.raises(NotConfigured, match="workbench auth-configs add notes --client-id"):
        await place.begin("notes")
    with pytest.raises(InvalidRequest, match="not connected by OAuth2"):
        await place.add_config("keyed")
    # Another way there is can be offered.
    begun = await place.begin("mixed")
    assert [way.kind for way in (await place.links.look(begun.token)).ways] == ["API_KEY"]


async def _told_first(place: Place, begun: BegunConnection, subdomain: str) -> None:
    values = {"subdomain": subdomain}
    await place.links.finish(FinishByFields(token=begun.token, kind=AuthKind.OAUTH2, values=values))


async def test_what_is_part_of_the_addresses_is_asked_first_and_goes_along_with_calls(place: Place) -> None:
    await place.add_config("zone")
    begun = await place.begin("zone")
    with pytest.raises(InvalidRequest, match="Subdomain is missing: open the link"):
        await place.sent_away(begun)
    await _told_first(place, begun, "acme")
    account = (await place.links.look(begun.token)).account
    assert account.status is ConnectionStatus.INITIATED
    refused = agreed(await place.sent_away(begun), yes=False)
    await place.links.returned(Returned(state=refused["state"], browser=BROWSER, error=refused["error"]))
    url = await place.sent_away(begun)
    assert url.startswith(f"{place.authorisation.url}/sites/acme/authorize?")
    back = agreed(url)
    view = await place.links.returned(Returned(state=back["state"], browser=BROWSER, code=back["code"]))
    assert (view.account.is_active, view.account.label) == (True, "ann@example.com")
    kit = await place.toolkit("zone")
    credential = await place.connections.credential_for(session_of(), kit)
    assert credential.values["subdomain"].reveal() == "acme"
    name = AccountName(project=DEFAULT_PROJECT, account=account.id)
    await place.connections.refresh(name)
    assert await place.connections.remove(name) is True
    assert [path for path, _ in place.authorisation.world.seen if path != "/authorize"] == [
        "/sites/acme/token",
        "/sites/acme/token",
        "/sites/acme/revoke",
    ]


@pytest.mark.parametrize("subdomain", ["evil.example/", "a.b", "x@evil", "", "-a", "a" * 64, "a?b", "..", "a\\b"])
async def test_what_is_no_part_of_a_hosts_name_goes_nowhere(place: Place, subdomain: str) -> None:
    await place.add_config("zone")
    begun = await place.begin("zone")
    with pytest.raises(InvalidRequest, match=r"(?i)subdomain"):
        await _told_first(place, begun, subdomain)
    assert place.authorisation.world.seen == []


async def test_to_fill_in_something_else_ends_what_was_under_way(place: Place) -> None:
    await place.add_config("zone")
    begun = await place.begin("zone")
    await _told_first(place, begun, "acme")
    back = agreed(await place.sent_away(begun))
    await _told_first(place, begun, "other")
    with pytest.raises(NotFound):
        await place.links.returned(Returned(state=back["state"], browser=BROWSER, code=back["code"]))
    assert "/sites/other/authorize" in await place.sent_away(begun)
