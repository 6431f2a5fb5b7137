"""COMPOSIO_MANAGE_CONNECTIONS with the accounts that there are: listed, renamed, removed, and by whom they are not."""

from __future__ import annotations

from typing import Any

import httpx2
from tests.composio.tools.apps.post_office import PostOffice
from tests.composio.tools.apps.test_accounts import LIST, linked
from tests.composio.tools.calling import Calling, configured
from tests.server.running import Running

_MANAGE = "COMPOSIO_MANAGE_CONNECTIONS"


def _managed(calling: Calling, **wish: str) -> dict[str, Any]:
    data = calling.data(_MANAGE, {"toolkits": [{"toolkit": "Post", **wish}]})
    told: dict[str, Any] = data["results"]["post"]
    return told


def test_accounts_are_listed_renamed_and_removed(
    client: httpx2.Client, made: list[str], server: Running, office: PostOffice, key: str
) -> None:
    second = f"{key}-second"
    office.keys.add(second)
    calling = linked(client, made, server, key, "managing")
    linked(client, made, server, second, "managing")
    told = _managed(calling, action="list")
    assert (told["status"], [one["status"] for one in told["accounts"]]) == ("active", ["ACTIVE", "ACTIVE"])
    newer, older = (one["id"] for one in told["accounts"])
    several = _managed(calling, action="remove")
    assert (several["status"], newer in several["error_message"]) == ("failed", True)
    renamed = _managed(calling, action="rename", account=newer, alias="work")
    assert (renamed["status"], renamed["alias"]) == ("renamed", "work")
    assert "called 'work' already" in _managed(calling, action="rename", account=older, alias="work")["error_message"]
    removed = _managed(calling, action="remove", account="work")
    assert (removed["status"], removed["has_active_connection"]) == ("removed", True)
    assert removed["connected_account_id"] == newer
    assert client.get(f"/api/v3.1/connected_accounts/{newer}").status_code == 404
    assert calling.data(LIST)["letters"] == []
    assert office.asked[-1][2] == key
    assert _managed(calling, action="remove")["has_active_connection"] is False
    assert "no active connection" in calling.run(LIST)["error"]
    assert "there are: none" in _managed(calling, action="remove", account=older)["error_message"]


def test_another_account_is_begun_under_another_name(
    client: httpx2.Client, made: list[str], server: Running, key: str
) -> None:
    calling = linked(client, made, server, key, "another")
    assert _managed(calling)["status"] == "active"
    assert _managed(calling, alias=key[-8:])["status"] == "active"
    begun = _managed(calling, alias="second")
    assert (begun["status"], begun["has_active_connection"]) == ("initiated", True)
    told = client.get(f"/api/v3.1/connected_accounts/{begun['connected_account_id']}").json()
    assert (told["alias"], told["status"]) == ("second", "INITIATED")


def test_a_session_may_be_kept_from_removing(client: httpx2.Client, made: list[str], server: Running, key: str) -> None:
    kept = {"manage_connections": {"enable": True, "enable_connection_removal": False}}
    calling = linked(client, made, server, key, "kept-from", **kept)
    (account,) = _managed(calling, action="list")["accounts"]
    refused = _managed(calling, action="remove", account=account["id"])
    assert (refused["status"], "enable_connection_removal" in refused["error_message"]) == ("failed", True)
    assert "`alias` is missing" in _managed(calling, action="rename")["error_message"]
    assert _managed(calling, action="rename", alias="mine")["status"] == "renamed"
    assert client.get(f"/api/v3.1/connected_accounts/{account['id']}").json()["alias"] == "mine"


def test_an_account_of_somebody_else_is_none(client: httpx2.Client, made: list[str], server: Running, key: str) -> None:
    mine = linked(client, made, server, key, "mine-alone")
    (account,) = _managed(mine, action="list")["accounts"]
    other = configured(client, made, user_id="a-stranger")
    assert _managed(other, action="list")["accounts"] == []
    for action in ("rename", "remove"):
        told = _managed(other, action=action, account=account["id"], alias="x")
        assert (told["status"], "there are: none" in told["error_message"]) == ("failed", True)
    assert client.get(f"/api/v3.1/connected_accounts/{account['id']}").json()["status"] == "ACTIVE"


def test_code_in_a_box_of_the_users_does_not_remove_accounts(
    client: httpx2.Client, made: list[str], server: Running, key: str
) -> None:
    calling = linked(client, made, server, key, "boxed", sandbox={"enable": False})
    token = client.post(f"/v1/sessions/{calling.session}/local-sandbox", json={}).json()["env"]
    with server.client("") as boxed:
        boxed.headers["x-session-access-key"] = token["COMPOSIO_API_KEY"]
        inside = Calling(boxed, calling.session)
        (account,) = _managed(inside, action="list")["accounts"]
        for action in ("rename", "remove"):
            told = _managed(inside, action=action, account=account["id"], alias="x")
            assert (told["status"], "code does not" in told["error_message"]) == ("failed", True)
    assert client.get(f"/api/v3.1/connected_accounts/{account['id']}").json()["status"] == "ACTIVE"


def test_what_makes_no_sense_is_named(calling: Calling) -> None:
    for wrong, words in (
        ([{"action": "list"}], "`toolkits[0].toolkit` is missing"),
        ([{"toolkit": "post", "action": "sell"}], "has to be one of initiate, list, rename, remove"),
        ([7], "has to be a text or an object"),
        (["post", {"toolkit": "post", "action": "list"}], "names post twice"),
    ):
        answer = calling.post("execute", {"tool_slug": _MANAGE, "arguments": {"toolkits": wrong}})
        assert words in answer.text, answer.text
