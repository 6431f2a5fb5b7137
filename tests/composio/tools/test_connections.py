"""Toolkits, connections and raw calls: what there is, and the truth about what there is not."""

from __future__ import annotations

import httpx2
import pytest
from tests.composio.asking import bad_request, refused
from tests.composio.tools.calling import Calling, configured
from tests.server.running import Running, make_key

from workbench.model.access import Scope

PROXY = {
    "toolkit_slug": "github",
    "endpoint": "/user",
    "method": "GET",
    "parameters": [{"name": "per_page", "value": "1", "type": "query"}],
}


def test_toolkits_are_listed_as_the_session_sees_them(calling: Calling) -> None:
    told = calling.get("toolkits")
    assert (told["next_cursor"], told["total_pages"], told["total_items"]) == (None, 1, 1)
    (toolkit,) = told["items"]
    assert (toolkit["slug"], toolkit["enabled"], toolkit["is_no_auth"]) == ("composio_search", True, True)
    assert toolkit["connected_account"] is None
    assert set(toolkit["meta"]) == {"logo", "description", "isNoAuth"}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"toolkits": "github,composio_search"}, 1),
        ({"toolkits": "github"}, 0),
        ({"search": "SEARCH"}, 1),
        ({"search": "hub"}, 0),
        ({"is_connected": "true"}, 0),
        ({"is_connected": "false"}, 1),
        ({"limit": 2, "toolkits": "github,hackernews", "is_connected": "true", "search": "g"}, 0),
    ],
)
def test_toolkits_are_chosen_by_the_query(calling: Calling, query: dict[str, object], count: int) -> None:
    assert len(calling.get("toolkits", **query)["items"]) == count


def test_a_toolkit_without_accounts_is_not_connected(calling: Calling) -> None:
    told = calling.post("link", {"toolkit": "composio_search"})
    refused(told, 400, "ToolRouterV2_ToolkitsIsNoAuth", 4326, "needs no account")
    unknown = calling.post("link", {"toolkit": "github", "callback_url": "https://cb", "alias": "work"})
    refused(unknown, 404, "HTTP_NotFound", 10404, "'github' is not configured")


def test_there_is_no_connected_account(client: httpx2.Client, prefix: str) -> None:
    refused(client.get(f"{prefix}/connected_accounts/ca_9"), 404, "HTTP_NotFound", 10404, "ca_9")


def test_connections_are_told_as_they_are(client: httpx2.Client, made: list[str]) -> None:
    calling = configured(client, made, manage_connections={"enable": True, "enable_wait_for_connections": True})
    asked = {"toolkits": ["composio_search", "GitHub", "github"], "session_id": "gate"}
    data = calling.data("COMPOSIO_MANAGE_CONNECTIONS", asked)
    assert {slug: one["status"] for slug, one in data["results"].items()} == {
        "composio_search": "active",
        "github": "failed",
    }
    assert "not configured" in data["results"]["github"]["error_message"]
    assert data["summary"] == {
        "total_toolkits": 2,
        "active_connections": 1,
        "initiated_connections": 0,
        "failed_connections": 1,
    }
    waited = calling.data("COMPOSIO_WAIT_FOR_CONNECTIONS", {"toolkits": ["composio_search", "github"]})
    assert [one["status"] for one in waited["results"].values()] == ["ACTIVE", "NOT_FOUND"]


def test_a_raw_call_needs_a_key_for_it_and_says_what_is_missing(calling: Calling, server: Running, prefix: str) -> None:
    calling.prefix = prefix
    refused(calling.post("proxy_execute", PROXY), 404, "HTTP_NotFound", 10404, "github")
    key = make_key(server.settings, Scope.SESSIONS).presented
    with server.client(key) as client:
        told = Calling(client, calling.session, prefix).post("proxy_execute", PROXY)
        refused(told, 403, "APIKey_InsufficientPermissions", 812, "proxy")
    bad_request(calling.post("proxy_execute", {**PROXY, "method": "BREW"}), "method")


def test_a_token_makes_raw_calls_if_the_key_that_made_it_could(calling: Calling, server: Running) -> None:
    def told_with(key: str) -> int:
        with server.client(key) as client:
            token = client.post(f"/v1/sessions/{calling.session}/tokens", json={}).json()["token"]
        with server.client("") as client:
            client.headers["x-session-access-key"] = token
            return Calling(client, calling.session).post("proxy_execute", PROXY).status_code

    assert told_with(server.key) == 404
    assert told_with(make_key(server.settings, Scope.SESSIONS, Scope.PROXY).presented) == 404
    assert told_with(make_key(server.settings, Scope.SESSIONS).presented) == 403


@pytest.mark.parametrize(
    "config", [{"workbench": {"enable": True, "enable_proxy_execution": False}}, {"proxy_execute": {"enable": False}}]
)
def test_raw_calls_that_are_switched_off_are_refused_as_that(
    client: httpx2.Client, made: list[str], config: dict[str, object]
) -> None:
    off = configured(client, made, **config)
    bad_request(off.post("proxy_execute", PROXY), "switched off")


def test_the_tool_for_raw_calls_needs_the_same_key(client: httpx2.Client, made: list[str], server: Running) -> None:
    on = configured(client, made, proxy_execute={"enable": True})
    arguments = {"toolkit": "github", "endpoint": "/user", "method": "GET"}
    assert "is not configured on this workbench" in on.run("COMPOSIO_PROXY_EXECUTE", arguments)["error"]
    with server.client(make_key(server.settings, Scope.SESSIONS).presented) as other:
        told = Calling(other, on.session).post(
            "execute", {"tool_slug": "COMPOSIO_PROXY_EXECUTE", "arguments": arguments}
        )
    refused(told, 403, "APIKey_InsufficientPermissions", 812, "proxy")
