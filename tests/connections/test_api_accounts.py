"""Auth configs and connected accounts as the sessions API has them, by plain HTTP on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.connections.authorisation import CLIENT_ID, CLIENT_SECRET, Authorisation, authorisation_server
from tests.connections.serving import Serving, serving
from tests.mcp.http.talking import own_settings

_KEY = "CANARY-imported-key-31bd"


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Serving, Authorisation]]:
    """One server and one service for all tests here."""
    with (
        authorisation_server() as authorisation,
        own_settings(toolkits_allow="127.0.0.1") as settings,
        serving(settings, authorisation.url) as server,
    ):
        authorisation.world.redirect_uris.add(f"{server.url}/connect/callback")
        yield server, authorisation


@pytest.fixture
def client(world: tuple[Serving, Authorisation]) -> Iterator[httpx2.Client]:
    with world[0].client() as client:
        yield client


@pytest.fixture
def browser(world: tuple[Serving, Authorisation]) -> Iterator[httpx2.Client]:
    with world[0].browser() as browser:
        yield browser


def _config(client: httpx2.Client, toolkit: str, scheme: str = "", **credentials: Any) -> str:
    wanted: dict[str, Any] = {"type": "use_custom_auth", "credentials": credentials}
    if scheme:
        wanted["authScheme"] = scheme
    answer = client.post("/api/v3.1/auth_configs", json={"toolkit": {"slug": toolkit}, "auth_config": wanted})
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert told["toolkit"] == {"slug": toolkit}
    made: str = told["auth_config"]["id"]
    return made


def _error(answer: httpx2.Response) -> tuple[int, str, str]:
    told = answer.json()["error"]
    return answer.status_code, told["slug"], told["message"]


def test_an_auth_config_is_made_listed_looked_at_and_removed(client: httpx2.Client) -> None:
    made = _config(
        client, "notes", "OAUTH2", client_id=CLIENT_ID, client_secret=CLIENT_SECRET, scopes="notes.read,notes.write"
    )
    shown = client.get(f"/api/v3.1/auth_configs/{made}")
    told = shown.json()
    assert (told["id"], told["auth_scheme"], told["is_composio_managed"], told["status"]) == (
        made, "OAUTH2", False, "ENABLED")  # fmt: skip
    assert told["credentials"] == {"client_id": CLIENT_ID, "scopes": ["notes.read", "notes.write"]}
    assert CLIENT_SECRET not in shown.text
    key = _config(client, "desk", "API_KEY")
    listed = client.get("/api/v3/auth_configs", params={"toolkit_slug": "desk,keyed"}).json()
    assert ([one["id"] for one in listed["items"]], listed["total_items"]) == ([key], 1)
    assert [one["name"] for one in listed["items"][0]["expected_input_fields"]] == ["api_key", "subdomain"]
    assert client.get("/api/v3.1/auth_configs", params={"is_composio_managed": "true"}).json()["items"] == []
    assert client.get("/api/v3.1/auth_configs", params={"search": key}).json()["total_items"] == 1
    for one in (made, key):
        assert client.delete(f"/api/v3.1/auth_configs/{one}").json()["success"] is True
    assert _error(client.get(f"/api/v3.1/auth_configs/{made}"))[:2] == (404, "HTTP_NotFound")


@pytest.mark.parametrize(
    ("toolkit", "config", "status", "slug", "words"),
    [
        ("nothing", {}, 404, "HTTP_NotFound", "'nothing' is not configured"),
        ("notes", {"type": "use_composio_managed_auth"}, 400, "ToolRouterV2_NoManagedAuth", "register one there"),
        ("notes", {"authScheme": "OAUTH2"}, 400, "ToolRouterV2_BadRequest", "a client id is needed"),
        ("notes", {"authScheme": "API_KEY"}, 400, "ToolRouterV2_BadRequest", "they are by: OAUTH2"),
        ("keyed", {"authScheme": "OAUTH2"}, 400, "ToolRouterV2_BadRequest", "so no client is needed"),
        ("open", {}, 400, "ToolRouterV2_BadRequest", "needs none"),
    ],
)
def test_what_cannot_be_an_auth_config_says_why(
    client: httpx2.Client, toolkit: str, config: dict[str, str], status: int, slug: str, words: str
) -> None:
    answer = client.post("/api/v3.1/auth_configs", json={"toolkit": {"slug": toolkit}, "auth_config": config})
    told = _error(answer)
    assert (told[:2], words in told[2]) == ((status, slug), True), told


def test_a_link_of_an_auth_config_is_finished_by_a_person(client: httpx2.Client, browser: httpx2.Client) -> None:
    config = _config(client, "keyed", "API_KEY")
    sent = {"auth_config_id": config, "user_id": "linked", "alias": "work", "callback_url": "https://app.example/done"}
    answer = client.post("/api/v3.1/connected_accounts/link", json=sent)
    assert answer.status_code == 201, answer.text
    begun = answer.json()
    assert set(begun) == {"link_token", "redirect_url", "connected_account_id", "expires_at"}
    page = urlsplit(begun["redirect_url"]).path
    assert browser.post(page, data={"kind": "API_KEY", "field.api_key": _KEY}).status_code == 303
    told = client.get(f"/api/v3.1/connected_accounts/{begun['connected_account_id']}").json()
    assert (told["status"], told["alias"], told["auth_config"]["id"]) == ("ACTIVE", "work", config)
    query = {"auth_config_ids": config, "statuses": "ACTIVE", "user_ids": "linked"}
    assert client.get("/api/v3.1/connected_accounts", params=query).json()["total_items"] == 1
    assert client.get(f"/api/v3.1/auth_configs/{config}").json()["no_of_connections"] == 1
    for wrong, status in ({**sent, "auth_config_id": "ac_none"}, 404), ({**sent, "callback_url": "ftp://x"}, 400):
        assert client.post("/api/v3.1/connected_accounts/link", json=wrong).status_code == status
    shared = {**sent, "experimental": {"account_type": "SHARED"}}
    assert "PRIVATE" in _error(client.post("/api/v3.1/connected_accounts/link", json=shared))[2]


def _imported(client: httpx2.Client, toolkit: str, scheme: str, user: str, **val: str) -> httpx2.Response:
    config = _config(client, toolkit, scheme)
    connection = {"user_id": user, "state": {"authScheme": scheme, "val": {"status": "ACTIVE", **val}}}
    body = {"auth_config": {"id": config}, "connection": connection}
    return client.post("/api/v3.1/connected_accounts", json=body)


def test_a_key_that_is_known_is_imported_exchanged_and_switched_off_and_on(
    client: httpx2.Client, world: tuple[Serving, Authorisation]
) -> None:
    made = _imported(client, "known", "BEARER_TOKEN", "importing", token="unknown")
    assert made.status_code == 201, made.text
    account = made.json()["id"]
    assert made.json()["connectionData"] == {"authScheme": "BEARER_TOKEN", "val": {"status": "ACTIVE"}}
    place = f"/api/v3.1/connected_accounts/{account}"
    assert client.get(f"/v1/connections/{account}").json()["label"] == ""
    key = {"state": {"authScheme": "BEARER_TOKEN", "val": {"token": "known-CANARY-2"}}}
    changed = client.patch(place, json={"alias": "imported", "connection": key})
    assert changed.json() == {"id": account, "status": "ACTIVE", "success": True}, changed.text
    shown = client.get(f"/v1/connections/{account}").json()
    assert (shown["alias"], shown["label"]) == ("imported", "ann@example.com")
    assert client.patch(f"{place}/status", json={"enabled": False}).json() == {"success": True}
    off = client.get(place).json()
    assert (off["status"], off["is_disabled"]) == ("INACTIVE", True)
    session = client.post("/api/v3.1/tool_router/session", json={"user_id": "importing"}).json()["session_id"]
    run = f"/api/v3.1/tool_router/session/{session}/execute"
    refused = client.post(run, json={"tool_slug": "KNOWN_GET", "arguments": {}}).json()
    assert "switched off" in refused["error"]
    assert client.patch(f"{place}/status", json={"enabled": True}).json() == {"success": True}
    done = client.post(run, json={"tool_slug": "KNOWN_GET", "arguments": {}}).json()
    assert done["data"]["account"] == account, done
    client.delete(f"/api/v3.1/tool_router/session/{session}")
    kinds = {"state": {"authScheme": "API_KEY", "val": {"api_key": "x"}}}
    assert "of the same kind" in _error(client.patch(place, json={"connection": kinds}))[2]
    assert client.delete(place).json() == {"success": True}
    assert _error(client.patch(f"{place}/status", json={"enabled": True}))[0] == 404
    server = world[0]
    for text in (
        server.log.read_bytes(),
        *(one.read_bytes() for one in server.settings.data_dir.glob("workbench.db*")),
    ):
        assert b"CANARY" not in text


def test_without_a_key_there_is_a_link_and_tokens_of_oauth2_are_not_taken(client: httpx2.Client) -> None:
    config = _config(client, "notes", "OAUTH2", client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
    body: dict[str, Any] = {"auth_config": {"id": config}, "connection": {"user_id": "there"}}
    begun = client.post("/api/v3.1/connected_accounts", json=body)
    assert (begun.status_code, begun.json()["status"]) == (201, "INITIATED"), begun.text
    assert begun.json()["connectionData"]["val"]["redirectUrl"] == begun.json()["redirect_url"]
    body["connection"]["state"] = {"authScheme": "OAUTH2", "val": {"access_token": _KEY}}
    refused = client.post("/api/v3.1/connected_accounts", json=body)
    assert (_error(refused)[0], _KEY in refused.text) == (400, False)
    missing = _imported(client, "desk", "API_KEY", "half", generic_api_key=_KEY)
    assert "Subdomain is missing" in _error(missing)[2]
    assert client.get("/api/v3.1/connected_accounts", params={"user_ids": "half"}).json()["items"] == []


def test_a_session_without_a_client_says_that_there_is_no_app_of_ours(client: httpx2.Client) -> None:
    session = client.post("/api/v3.1/tool_router/session", json={"user_id": "clientless"}).json()["session_id"]
    told = _error(client.post(f"/api/v3.1/tool_router/session/{session}/link", json={"toolkit": "zone"}))
    assert (told[:2], "auth-configs add zone" in told[2]) == ((400, "ToolRouterV2_NoManagedAuth"), True), told
    client.delete(f"/api/v3.1/tool_router/session/{session}")


def test_a_person_fills_in_what_the_service_is_found_by_and_goes_on(
    client: httpx2.Client, browser: httpx2.Client, world: tuple[Serving, Authorisation]
) -> None:
    config = _config(client, "zone", "OAUTH2", client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
    sent = {"auth_config_id": config, "user_id": "zoned"}
    begun = client.post("/api/v3.1/connected_accounts/link", json=sent).json()
    page = urlsplit(begun["redirect_url"]).path
    shown = browser.get(page).text
    assert ("name='field.subdomain'" in shown, "id=authorize" in shown) == (True, False)
    assert browser.get(f"{page}/authorize").status_code == 422
    wrong = browser.post(page, data={"kind": "OAUTH2", "field.subdomain": "evil.example/"})
    assert (wrong.status_code, "no part of a host" in wrong.text) == (422, True)
    assert browser.post(page, data={"kind": "OAUTH2", "field.subdomain": "acme"}).status_code == 303
    again = browser.get(page).text
    assert ("id=authorize" in again, "Change what was filled in" in again) == (True, True)
    sent_to = browser.get(f"{page}/authorize")
    assert (sent_to.status_code, "/sites/acme/authorize?" in sent_to.headers["location"]) == (303, True)
    _agree(browser, sent_to.headers["location"])
    told = client.get(f"/v1/connections/{begun['connected_account_id']}").json()
    assert (told["status"], told["label"]) == ("ACTIVE", "ann@example.com")
    assert "/sites/acme/token" in [path for path, _ in world[1].world.seen]


def _agree(browser: httpx2.Client, url: str) -> None:
    parts = urlsplit(url)
    asked = dict(httpx2.QueryParams(parts.query))
    back = browser.post(f"{parts.scheme}://{parts.netloc}/authorize", data={**asked, "agreed": "yes"})
    done = browser.get(back.headers["location"])
    assert "is connected" in done.text, done.text
