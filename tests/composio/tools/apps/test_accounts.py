"""Accounts on a real server: connected by a link, used by the calls of their user, and never told to anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
from tests.composio.asking import refused
from tests.composio.tools.apps.conftest import connect
from tests.composio.tools.apps.post_office import PostOffice
from tests.composio.tools.calling import WORKBENCH, Calling, configured
from tests.server.running import Running

SEND, LIST = "POST_SEND_A_LETTER", "POST_LIST_LETTERS"
LETTER = {"to": "ann", "text": "hello"}
WAITING = {"manage_connections": {"enable": True, "enable_wait_for_connections": True}}


def person(server: Running) -> httpx2.Client:
    """In a browser, without any key."""
    return httpx2.Client(base_url=server.url, trust_env=False, timeout=30.0)


def account(client: httpx2.Client, name: str) -> dict[str, Any]:
    answer = client.get(f"/api/v3.1/connected_accounts/{name}")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_from_a_missing_account_to_a_letter_that_was_sent(
    client: httpx2.Client, made: list[str], server: Running, office: PostOffice, key: str
) -> None:
    calling = configured(client, made, user_id="from-missing", **WAITING)
    missing = calling.run(SEND, LETTER)
    assert "no active connection of user 'from-missing' with post" in missing["error"]
    assert office.asked == []
    begun = calling.data("COMPOSIO_MANAGE_CONNECTIONS", {"toolkits": ["post"]})["results"]["post"]
    assert begun["status"] == "initiated"
    assert account(client, begun["connected_account_id"])["status"] == "INITIATED"
    with person(server) as browser:
        connect(browser, begun["redirect_url"], key)
    waited = calling.data("COMPOSIO_WAIT_FOR_CONNECTIONS", {"toolkits": ["post"], "mode": "all"})
    assert waited["results"]["post"]["status"] == "ACTIVE"
    told = account(client, begun["connected_account_id"])
    assert (told["status"], told["user_id"], told["toolkit"]["slug"]) == ("ACTIVE", "from-missing", "post")
    assert told["state"] == {"authScheme": "API_KEY", "val": {}}
    assert calling.data(SEND, LETTER)["sent"] is True
    assert office.letters == [LETTER]
    assert office.asked[-1] == ("POST", "/letters", key)
    (shown,) = calling.get("toolkits", toolkits="post")["items"]
    assert shown["connected_account"]["id"] == begun["connected_account_id"]
    assert calling.get("toolkits", is_connected="true")["total_items"] == 1
    # Of this user and of nobody else.
    other = configured(client, made, user_id="somebody-else")
    assert "no active connection" in other.run(SEND, LETTER)["error"]


def test_what_does_not_fit_is_told_before_anything_is_sent(
    client: httpx2.Client, made: list[str], server: Running, office: PostOffice, key: str
) -> None:
    calling = linked(client, made, server, key, "fits")
    assert "`text` is missing" in calling.run(SEND, {"to": "ann"})["error"]
    assert "`copies` breaks `minimum` of 1" in calling.run(SEND, {**LETTER, "copies": 0})["error"]
    wrong = calling.run("POST_SEND_A_LETER", LETTER)["error"]
    assert "did you mean POST_SEND_A_LETTER" in wrong
    assert office.asked == []


def linked(client: httpx2.Client, made: list[str], server: Running, key: str, user: str, **config: Any) -> Calling:
    """A session whose user has an account."""
    calling = configured(client, made, user_id=user, **config)
    link = calling.post("link", {"toolkit": "post", "alias": key[-8:]})
    assert link.status_code == 201, link.text
    with person(server) as browser:
        connect(browser, link.json()["redirect_url"], key)
    return calling


def test_of_several_accounts_the_one_that_is_named_is_used(
    client: httpx2.Client, made: list[str], server: Running, office: PostOffice, key: str
) -> None:
    second = f"{key}-second"
    office.keys.add(second)
    several = {"multi_account": {"enable": True, "max_accounts_per_toolkit": 2, "require_explicit_selection": True}}
    calling = linked(client, made, server, key, "several", **several)
    assert calling.data(LIST)["letters"] == []
    linked(client, made, server, second, "several")
    told = calling.run(LIST)
    assert "pass one as `account`" in told["error"]
    for chosen in (key, second):
        assert calling.run(LIST, {}, account=chosen[-8:])["error"] is None
        assert office.asked[-1][2] == chosen
    found = calling.data("COMPOSIO_SEARCH_TOOLS", {"queries": [{"use_case": "list letters"}]})
    (status,) = (one for one in found["toolkit_connection_statuses"] if one["toolkit"] == "post")
    assert [one["alias"] for one in status["accounts"]] == [second[-8:], key[-8:]]
    third = calling.post("link", {"toolkit": "post"})
    assert third.status_code == 429, third.text


def test_raw_calls_are_made_as_the_user_and_to_the_service_alone(
    client: httpx2.Client, made: list[str], server: Running, office: PostOffice, key: str
) -> None:
    calling = linked(client, made, server, key, "raw", proxy_execute={"enable": True})
    body = {"toolkit_slug": "post", "endpoint": "/letters", "method": "GET",
            "parameters": [{"name": "to", "value": "ann", "type": "query"}]}  # fmt: skip
    told = calling.post("proxy_execute", body).json()
    assert (told["result_type"], told["status"], told["data"]["letters"]) == ("completed", 200, [])
    assert office.asked == [("GET", "/letters?to=ann", key)]
    sent = calling.post("proxy_execute", {**body, "method": "POST", "parameters": None, "body": LETTER}).json()
    assert (sent["status"], office.letters) == (201, [LETTER])
    away = calling.post("proxy_execute", {**body, "endpoint": "http://127.0.0.2:1/steal"})
    assert away.status_code == 403, away.text
    mine = calling.post("proxy_execute", {**body, "parameters": [{"name": "Authorization", "value": "x"}]})
    assert mine.status_code == 400
    inside = calling.data(
        WORKBENCH, {"code_to_execute": "proxy_execute('GET', '/letters', 'post', query_params={'to': 'bob'})"}
    )
    assert "hello" in inside["results"]
    assert office.asked[-1] == ("GET", "/letters?to=bob", key)
    by_tool = calling.data("COMPOSIO_PROXY_EXECUTE", {"toolkit": "post", "endpoint": "/letters", "method": "GET"})
    assert by_tool["status"] == 200


def test_a_key_that_the_service_does_not_take_any_more_is_told_and_not_shown(
    client: httpx2.Client, made: list[str], server: Running, office: PostOffice, key: str
) -> None:
    calling = linked(client, made, server, key, "revoked")
    office.keys.discard(key)
    told = calling.run(SEND, LETTER)
    assert told["error"]
    assert key not in json.dumps(told)


def test_the_shape_of_answers_is_told_and_the_key_is_nowhere(
    client: httpx2.Client, made: list[str], server: Running, office: PostOffice, key: str
) -> None:
    calling = linked(client, made, server, key, "shape")
    for _ in range(3):
        calling.data(SEND, {**LETTER, "text": "canary-text"})
    code = "run_composio_tool('POST_LIST_LETTERS', {'to': 'ann'})"
    assert "canary-text" in calling.data(WORKBENCH, {"code_to_execute": code})["results"]
    told = calling.data("COMPOSIO_GET_TOOL_SCHEMAS", {"tool_slugs": [SEND, LIST]})["tool_schemas"]
    assert told[SEND]["seen_output"]["shape"]["sent"] == "boolean"
    assert "canary-text" not in json.dumps(told)
    assert "seen in" in told[LIST]["seen_output"]["note"]
    everything = b"".join(
        path.read_bytes() for path in Path(server.settings.data_dir).rglob("*") if path.is_file() and path.name != "x"
    )
    assert key.encode() not in everything
    audit = client.get("/v1/audit", params={"session": calling.session}).text
    assert key not in audit


def test_an_account_of_another_project_is_not_there(client: httpx2.Client, made: list[str]) -> None:
    refused(client.get("/api/v3.1/connected_accounts/ca_none"), 404, "HTTP_NotFound", 10404, "ca_none")
