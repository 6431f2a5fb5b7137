"""The page in a real browser, with scripts switched off: filled in, sent away and back, and typed in elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.connections.authorisation import CLIENT_ID, CLIENT_SECRET, Authorisation, authorisation_server
from tests.connections.browser import Browser, browser
from tests.connections.serving import Serving, serving
from tests.host.support import eventually
from tests.mcp.http.talking import own_settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Serving, Authorisation]]:
    with (
        authorisation_server() as authorisation,
        own_settings(toolkits_allow="127.0.0.1") as settings,
        serving(settings, authorisation.url) as server,
    ):
        authorisation.world.redirect_uris.add(f"{server.url}/connect/callback")
        with server.client() as client:
            sent = {"toolkit": "notes", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
            assert client.post("/v1/auth-configs", json=sent).status_code == 201
        yield server, authorisation


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path / "browser") as window:
        yield window


@pytest.fixture
def client(world: tuple[Serving, Authorisation]) -> Iterator[httpx2.Client]:
    with world[0].client() as client:
        yield client


def _begun(client: httpx2.Client, toolkit: str, **more: str) -> tuple[str, str]:
    told = client.post("/v1/connections", json={"toolkit": toolkit, "user_id": "alice", **more}).json()
    return told["connection"]["id"], told["url"]


def _is_active(client: httpx2.Client, account: str) -> bool:
    return bool(client.get(f"/v1/connections/{account}").json()["status"] == "ACTIVE")


def test_a_key_is_filled_in(client: httpx2.Client, window: Browser, world: tuple[Serving, Authorisation]) -> None:
    account, url = _begun(client, "desk")
    window.go(url)
    assert ">alice<" in window.text("#user")
    window.fill("input[name='field.api_key']", "CANARY-key-of-a-person")
    window.fill("input[name='field.subdomain']", "acme")
    window.click("button")
    assert "is connected" in window.text("#done")
    assert account in window.text("#account")
    assert _is_active(client, account)
    assert window.url == url
    assert not [one for one in window.requests if not one.startswith(world[0].url)], window.requests
    assert not [one for one in window.console if "Content Security" in one]


def test_a_field_that_is_missing_is_asked_for_by_the_browser_itself(client: httpx2.Client, window: Browser) -> None:
    account, url = _begun(client, "keyed")
    window.go(url)
    window.click("button")
    window.fill("input[name='field.api_key']", "x")
    assert window.url == url
    assert not _is_active(client, account)
    window.click("button")
    assert "is connected" in window.text("#done")


def test_a_person_agrees_at_the_service_and_comes_back(
    client: httpx2.Client, window: Browser, world: tuple[Serving, Authorisation]
) -> None:
    account, url = _begun(client, "notes")
    window.go(url)
    window.click("#authorize")
    window.click("#agree")
    assert "is connected" in window.text("#done")
    assert _is_active(client, account)
    assert urlsplit(window.url).path == "/connect/callback"
    assert {urlsplit(one).netloc for one in window.requests} == {
        urlsplit(world[0].url).netloc,
        urlsplit(world[1].url).netloc,
    }


def test_what_the_service_is_found_by_is_filled_in_first(
    client: httpx2.Client, window: Browser, world: tuple[Serving, Authorisation]
) -> None:
    sent = {"toolkit": "zone", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    assert client.post("/v1/auth-configs", json=sent).status_code == 201
    account, url = _begun(client, "zone")
    window.go(url)
    window.fill("input[name='field.subdomain']", "acme")
    window.click("#go-on")
    window.click("#authorize")
    window.click("#agree")
    assert "is connected" in window.text("#done")
    assert any(one.startswith(f"{world[1].url}/sites/acme/authorize?") for one in window.requests)
    assert "ann@example.com" in window.text("main")
    assert _is_active(client, account)
    assert not [one for one in window.console if "Content Security" in one]


def test_a_person_who_refuses_is_told_and_may_try_again(client: httpx2.Client, window: Browser) -> None:
    account, url = _begun(client, "notes")
    window.go(url)
    window.click("#authorize")
    window.click("#refuse")
    assert "is not connected" in window.text("#failed")
    window.go(url)
    assert "access_denied" in window.text("#problem")
    window.click("#authorize")
    window.click("#agree")
    assert "is connected" in window.text("#done")
    assert _is_active(client, account)


def test_a_person_ends_where_the_caller_wants_them(
    client: httpx2.Client, window: Browser, world: tuple[Serving, Authorisation]
) -> None:
    back = f"{world[1].url}/back"
    account, url = _begun(client, "notes", callback_url=back)
    window.go(url)
    window.click("#authorize")
    window.click("#agree")
    eventually(lambda: window.url.startswith(back), "the browser is where the caller wants it")
    assert f"status=success&connected_account_id={account}" in window.url
    _, url = _begun(client, "keyed", callback_url=back)
    window.go(url)
    window.fill("input[name='field.api_key']", "x")
    window.click("button")
    assert "Go back to" in window.text("#back")
    # Without a click: the page goes on by itself.
    eventually(lambda: window.url.startswith(back), "the page went on")


def test_a_code_is_typed_in_elsewhere_and_the_page_notices(
    client: httpx2.Client, window: Browser, world: tuple[Serving, Authorisation]
) -> None:
    account, url = _begun(client, "notes")
    window.go(url)
    window.click("#device")
    code = re.search(r">([A-Z-]+)<", window.text("#user-code"))
    assert code
    world[1].world.granted[code[1]] = True
    assert "is connected" in window.text("#done")
    assert _is_active(client, account)
