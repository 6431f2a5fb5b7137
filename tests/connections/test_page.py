"""The page and the routes of connections, asked as a browser, an SDK and a REST client ask them, on a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from tests.connections.authorisation import CLIENT_ID, CLIENT_SECRET, Authorisation, authorisation_server
from tests.connections.serving import Serving, serving
from tests.host.support import eventually
from tests.mcp.http.talking import own_settings

_KEY = "CANARY-api-key-77aa"


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
def server(world: tuple[Serving, Authorisation]) -> Serving:
    return world[0]


@pytest.fixture
def client(server: Serving) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def browser(server: Serving) -> Iterator[httpx2.Client]:
    with server.browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def config(world: tuple[Serving, Authorisation]) -> str:
    """A client of OAuth2 for the toolkit `notes`."""
    with world[0].client() as client:
        sent = {"toolkit": "notes", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
        answer = client.post("/v1/auth-configs", json=sent)
        assert answer.status_code == 201, answer.text
        assert CLIENT_SECRET not in answer.text
        listed = client.get("/v1/auth-configs")
        assert [one["id"] for one in listed.json()["items"]] == [answer.json()["id"]]
        assert CLIENT_SECRET not in listed.text
        made: str = answer.json()["id"]
        return made


def _begun(client: httpx2.Client, toolkit: str, **more: str) -> tuple[str, str]:
    """The id, and the path of the page."""
    answer = client.post("/v1/connections", json={"toolkit": toolkit, "user_id": "alice", **more})
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert told["connection"]["status"] == "INITIATED"
    return told["connection"]["id"], urlsplit(told["url"]).path


def _status(client: httpx2.Client, account: str) -> str:
    told: str = client.get(f"/api/v3.1/connected_accounts/{account}").json()["status"]
    return told


@pytest.mark.parametrize(
    ("toolkit", "kind", "filled"),
    [
        ("keyed", "API_KEY", {"field.api_key": f" {_KEY}\n"}),
        ("bearing", "BEARER_TOKEN", {"field.token": _KEY}),
        ("named", "BASIC", {"field.username": "ann", "field.password": _KEY}),
        ("desk", "API_KEY", {"field.api_key": _KEY, "field.subdomain": "acme"}),
    ],
)
def test_a_key_that_is_filled_in_connects(
    client: httpx2.Client, browser: httpx2.Client, toolkit: str, kind: str, filled: dict[str, str]
) -> None:
    account, page = _begun(client, toolkit)
    shown = browser.get(page)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name in filled:
        assert f"name='{name}'" in shown.text
    answer = browser.post(page, data={**filled, "kind": kind})
    assert (answer.status_code, answer.headers["location"]) == (303, f"./{page.rpartition('/')[2]}")
    done = browser.get(page)
    assert "is connected" in done.text
    assert _KEY not in done.text
    assert _status(client, account) == "ACTIVE"
    assert browser.post(page, data={**filled, "kind": kind}).status_code == 409


def test_the_page_runs_nothing_fetches_nothing_and_is_not_framed(client: httpx2.Client, browser: httpx2.Client) -> None:
    _, page = _begun(client, "desk")
    for answer in (browser.get(page), browser.get("/connect/callback"), browser.get(f"/connect/{'x' * 43}")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        assert "script" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "<script" not in answer.text
        assert not re.findall(r"(?:src|action)=", answer.text)
    assert "&lt;as in your address&gt;" in browser.get(page).text


def test_what_is_missing_or_cannot_be_one_is_told_on_the_page_and_can_be_filled_in_again(
    client: httpx2.Client, browser: httpx2.Client
) -> None:
    account, page = _begun(client, "keyed")
    for filled, words in (
        ({"kind": "API_KEY"}, "API key is missing"),
        ({"kind": "API_KEY", "field.api_key": "a\r\nX-Evil: 1"}, "characters"),
        ({"kind": "BASIC", "field.api_key": "a"}, "not connected by BASIC"),
        ({"kind": "nothing"}, "does not say how"),
    ):
        answer = browser.post(page, data=filled)
        assert (answer.status_code, words in answer.text) == (422, True), answer.text
        assert "X-Evil" not in answer.text
    assert _status(client, account) == "INITIATED"
    assert browser.post(page, data={"kind": "API_KEY", "field.api_key": _KEY}).status_code == 303


def test_who_has_no_good_link_is_told_so_and_no_body_is_read(browser: httpx2.Client) -> None:
    for path in (f"/connect/{'x' * 43}", "/connect/short", f"/connect/{'x' * 43}/authorize", "/connect/a/device"):
        answer = browser.get(path)
        assert (answer.status_code, "link" in answer.text) == (404, True), path
    answer = browser.post(f"/connect/{'x' * 43}", content=b"x" * 1_000_000)
    assert (answer.status_code, answer.headers["connection"]) == (404, "close")
    large = browser.post("/connect/callback", data={"a": "b"})
    assert large.status_code in (404, 405)


def test_a_form_is_a_form_and_of_a_size(client: httpx2.Client, browser: httpx2.Client) -> None:
    _, page = _begun(client, "keyed")
    assert browser.post(page, json={"kind": "API_KEY"}).status_code == 415
    assert browser.post(page, data={"kind": "API_KEY", "field.api_key": "x" * 100_000}).status_code == 413
    many = {f"f{number}": "x" for number in range(60)}
    assert browser.post(page, data=many).status_code == 422


def _gone_through(browser: httpx2.Client, page: str, *, agree: bool = True) -> httpx2.Response:
    """As a person does it, link by link; the answer of the callback."""
    assert f"href='{page.rpartition('/')[2]}/authorize'" in browser.get(page).text
    away = browser.get(f"{page}/authorize")
    assert away.status_code == 303
    cookie = away.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/connect" in cookie
    there = away.headers["location"]
    with httpx2.Client(trust_env=False) as service:
        assert service.get(there).status_code == 200
        asked = dict(parse_qsl(urlsplit(there).query))
        back = service.post(there.partition("?")[0], data={**asked, "agreed": "yes" if agree else "no"})
    return browser.get(back.headers["location"])


def test_a_person_goes_to_the_service_and_comes_back_connected(
    client: httpx2.Client, browser: httpx2.Client, config: str
) -> None:
    account, page = _begun(client, "notes", alias="home")
    shown = browser.get(page).text
    assert "Connect Notes &amp; &lt;Co&gt;" in shown
    assert ">alice<" in shown
    done = _gone_through(browser, page)
    assert (done.status_code, "is connected" in done.text) == (200, True)
    told = client.get(f"/v1/connections/{account}").json()
    assert (told["status"], told["alias"], told["auth_config_id"]) == ("ACTIVE", "home", config)
    assert told["scopes"] == ["notes.read", "notes.write"]
    assert "CANARY" not in client.get(f"/v1/connections/{account}").text
    assert browser.get(f"{page}/authorize").status_code == 409


def test_a_person_is_sent_on_to_where_the_caller_wants_them(
    client: httpx2.Client, browser: httpx2.Client, config: str
) -> None:
    account, page = _begun(client, "notes", callback_url="https://app.example/back?x=1")
    done = _gone_through(browser, page)
    assert done.status_code == 303
    assert done.headers["location"] == (
        f"https://app.example/back?x=1&status=success&connected_account_id={account}&toolkit=notes"
    )
    account, page = _begun(client, "notes", callback_url="https://app.example/back")
    assert "status=failed" in _gone_through(browser, page, agree=False).headers["location"]
    assert _status(client, account) == "FAILED"
    assert "The last try failed" in browser.get(page).text


def test_another_browser_does_not_finish_what_one_began(
    client: httpx2.Client, browser: httpx2.Client, server: Serving, config: str
) -> None:
    account, page = _begun(client, "notes")
    browser.get(page)
    there = browser.get(f"{page}/authorize").headers["location"]
    with httpx2.Client(trust_env=False) as service:
        asked = dict(parse_qsl(urlsplit(there).query))
        back = service.post(there.partition("?")[0], data={**asked, "agreed": "yes"}).headers["location"]
    with server.browser() as victim:
        answer = victim.get(back)
        assert (answer.status_code, "another browser" in answer.text) == (403, True)
        assert victim.get(back.replace("state=", "state=x")).status_code == 404
    assert _status(client, account) == "INITIATED"
    assert browser.get(back).status_code == 200
    assert browser.get(back).status_code == 404


@pytest.mark.parametrize("came_from", [None, "cross-site", "same-site", "none"])
def test_nobody_is_sent_to_the_service_before_they_saw_for_whom(
    client: httpx2.Client, server: Serving, config: str, came_from: str | None
) -> None:
    _, page = _begun(client, "notes")
    headers = {} if came_from is None else {"sec-fetch-site": came_from}
    with server.browser() as lured:
        if came_from is not None:
            lured.get(page)
        answer = lured.get(f"{page}/authorize", headers=headers)
        assert (answer.status_code, answer.headers["location"]) == (303, f"../{page.rpartition('/')[2]}")
        assert str(httpx2.URL(f"{server.url}{page}/authorize").join(answer.headers["location"])) == server.url + page
        lured.get(page)
        gone = lured.get(f"{page}/authorize", headers={"sec-fetch-site": "same-origin"})
        assert "/authorize?" in gone.headers["location"]


def test_a_code_can_be_typed_in_on_another_device(
    client: httpx2.Client, browser: httpx2.Client, world: tuple[Serving, Authorisation], config: str
) -> None:
    account, page = _begun(client, "notes")
    shown = browser.get(f"{page}/device").text
    code = re.search(r"id=user-code>([^<]+)<", shown)
    assert code
    assert "http-equiv=refresh" in shown
    world[1].world.granted[code[1]] = True
    eventually(lambda: "is connected" in browser.get(f"{page}/device").text, "the page notices", 20.0)
    assert _status(client, account) == "ACTIVE"


@pytest.mark.parametrize("prefix", ["/api/v3.1", "/api/v3"])
def test_a_session_links_lists_renews_revokes_and_removes_as_sdks_ask(
    client: httpx2.Client, browser: httpx2.Client, config: str, prefix: str
) -> None:
    user = f"sdk-{prefix[-1]}"
    session = client.post(f"{prefix}/tool_router/session", json={"user_id": user}).json()["session_id"]
    linked = client.post(f"{prefix}/tool_router/session/{session}/link", json={"toolkit": "notes", "alias": "work"})
    assert linked.status_code == 201, linked.text
    told = linked.json()
    assert told["redirect_url"].endswith(f"/connect/{told['link_token']}")
    account = told["connected_account_id"]
    _gone_through(browser, urlsplit(told["redirect_url"]).path)
    found = client.get(f"{prefix}/connected_accounts", params={"user_ids": [user], "statuses": "ACTIVE"}).json()
    assert [one["id"] for one in found["items"]] == [account]
    assert found["items"][0]["toolkit"]["slug"] == "notes"
    kits = client.get(f"{prefix}/tool_router/session/{session}/toolkits", params={"is_connected": "true"}).json()
    assert [one["connected_account"]["id"] for one in kits["items"]] == [account]
    execute = f"{prefix}/tool_router/session/{session}/execute"
    called = client.post(execute, json={"tool_slug": "NOTES_GET", "arguments": {}}).json()
    assert (called["error"], called["data"]) == (None, {"account": account})
    unconnected = client.post(execute, json={"tool_slug": "KEYED_GET", "arguments": {}})
    assert "no active connection" in unconnected.text
    renewed = client.post(f"{prefix}/connected_accounts/{account}/refresh")
    assert (renewed.status_code, renewed.json()["status"]) == (200, "ACTIVE"), renewed.text
    revoked = client.post(f"{prefix}/connected_accounts/{account}/revoke")
    assert (revoked.status_code, revoked.json()["status"]) == (200, "REVOKED"), revoked.text
    assert client.post(f"{prefix}/connected_accounts/{account}/revoke").status_code == 409
    assert client.delete(f"{prefix}/connected_accounts/{account}").json() == {"success": True}
    gone = client.delete(f"{prefix}/connected_accounts/{account}")
    assert (gone.status_code, gone.json()["error"]["slug"]) == (404, "HTTP_NotFound")
    client.delete(f"{prefix}/tool_router/session/{session}")


def test_accounts_are_listed_page_by_page_and_removed_by_rest(client: httpx2.Client, browser: httpx2.Client) -> None:
    made = [_begun(client, "keyed", user_id="pages")[0] for _ in range(3)]
    asked: dict[str, str | int] = {"user_id": "pages", "limit": 2}
    first = client.get("/v1/connections", params=asked).json()
    rest = client.get("/v1/connections", params={**asked, "cursor": first["next_cursor"]}).json()
    assert [one["id"] for one in (*first["items"], *rest["items"])] == made
    assert rest["next_cursor"] is None
    made_up = client.get("/v1/connections", params={"cursor": "bm9uZQ=="})
    assert (made_up.status_code, "cursor" in made_up.json()["error"]["message"]) == (422, True)
    assert client.delete(f"/v1/connections/{made[0]}").json() == {"told_service": False}
    assert client.get(f"/v1/connections/{made[0]}").status_code == 404


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ({"toolkit": "nothing"}, 404, "'nothing' is not configured"),
        ({"toolkit": "keyd"}, 404, "did you mean keyed"),
        ({"toolkit": "open"}, 422, "needs no account"),
        ({"toolkit": "silent"}, 501, "does not say how"),
        ({"toolkit": "keyed", "callback_url": "javascript:alert(1)"}, 422, "callback_url must be like"),
        ({"toolkit": "keyed", "callback_url": "https://user:pw@host/"}, 422, "callback_url must be like"),
        ({"toolkit": "notes", "auth_config_id": "ac_none"}, 404, "auth-configs list"),
    ],
)
def test_what_cannot_be_connected_says_why(
    client: httpx2.Client, sent: dict[str, str], status: int, words: str
) -> None:
    answer = client.post("/v1/connections", json=sent)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (status, True), answer.text


def test_a_users_accounts_go_with_the_user_and_are_taken_back(
    client: httpx2.Client, browser: httpx2.Client, world: tuple[Serving, Authorisation], config: str
) -> None:
    account, page = _begun(client, "notes", user_id="leaving")
    _gone_through(browser, page)
    token = world[1].world.tokens[-1]
    assert client.delete("/v1/users/leaving").status_code == 200
    assert client.get(f"/v1/connections/{account}").status_code == 404
    assert token.revoked
    database = world[0].settings.data_dir / "workbench.db"
    for path in (database, database.with_name("workbench.db-wal")):
        content = path.read_bytes() if path.exists() else b""
        assert b"leaving" not in content
        assert account.encode() not in content


def test_no_secret_is_in_the_database_the_logs_or_the_audit(
    client: httpx2.Client, browser: httpx2.Client, world: tuple[Serving, Authorisation], config: str
) -> None:
    server, authorisation = world
    _, page = _begun(client, "notes", user_id="canary")
    _gone_through(browser, page)
    _, keyed = _begun(client, "keyed", user_id="canary")
    browser.post(keyed, data={"kind": "API_KEY", "field.api_key": _KEY})
    secrets = {_KEY, CLIENT_SECRET, page.rpartition("/")[2], keyed.rpartition("/")[2]}
    secrets |= {one.access_token for one in authorisation.world.tokens}
    secrets |= {one.refresh_token for one in authorisation.world.tokens}
    secrets |= {form["code"] for _, form in authorisation.world.seen if "code" in form}
    secrets |= {form["code_verifier"] for _, form in authorisation.world.seen if "code_verifier" in form}
    secrets |= {cookie.value for cookie in browser.cookies.jar if cookie.value}
    key = (server.settings.data_dir / "connections.key").read_text(encoding="ascii").strip()
    assert (server.settings.data_dir / "connections.key").stat().st_mode & 0o777 == 0o600
    written = [path for path in server.settings.data_dir.rglob("workbench.db*") if path.is_file()]
    assert written
    for path in (*written, server.log):
        content = path.read_bytes()
        for secret in (*secrets, key):
            assert secret.encode() not in content, path
    audit = client.get("/v1/audit").text
    assert "connection.finish" in audit
    assert not [secret for secret in secrets if secret in audit]
