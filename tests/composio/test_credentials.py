"""Who may ask the sessions API for what, and by which headers they say who they are."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from tests.composio.asking import SESSION, refused
from tests.server.running import Running, make_key

from workbench.model.access import Scope

API = f"/api/v3.1{SESSION}"
HEADERS = ("x-api-key", "x-session-access-key", "x-user-api-key", "x-org-api-key")


@pytest.fixture
def anyone(server: Running) -> Iterator[httpx2.Client]:
    with server.client("") as client:
        yield client


@pytest.fixture
def token(client: httpx2.Client, session: str) -> str:
    made: str = client.post(f"/v1/sessions/{session}/tokens", json={}).json()["token"]
    return made


def test_without_a_good_key_nothing_is_answered(anyone: httpx2.Client, prefix: str) -> None:
    asked = [
        anyone.post(f"{prefix}{SESSION}", json={"user_id": "u"}),
        anyone.get(f"{prefix}{SESSION}/trs_x"),
        anyone.get(f"{prefix}/nothing"),
        anyone.get(f"{prefix}{SESSION}/trs_x", headers={"x-api-key": "ak_test"}),
    ]
    for answer in asked:
        refused(answer, 401, "HTTP_Unauthorized", 10401)


@pytest.mark.parametrize("place", [API, "/v1/sessions", "/mcp"])
@pytest.mark.parametrize("header", [*HEADERS, "authorization"])
def test_a_key_comes_in_any_header_at_every_door(
    server: Running, anyone: httpx2.Client, header: str, place: str
) -> None:
    value = f"Bearer {server.key}" if header == "authorization" else server.key
    # What the door says of what was asked, which it had not looked at without a key.
    assert anyone.post(place, json=[], headers={header: value}).status_code in {400, 406, 422}


@pytest.mark.parametrize("place", [f"{API}/trs_x", "/v1/sessions", "/mcp"])
@pytest.mark.parametrize("header", [*HEADERS, "authorization"])
def test_one_header_that_came_twice_with_different_keys_is_refused(
    server: Running, anyone: httpx2.Client, place: str, header: str
) -> None:
    other = make_key(server.settings, Scope.SESSIONS).presented
    kind = "Bearer " if header == "authorization" else ""
    answer = anyone.get(place, headers=[(header, kind + server.key), (header, kind + other)])
    assert answer.status_code == 401
    assert f"different keys, in {header};" in answer.json()["error"]["message"]
    assert anyone.get(place, headers=[(header, kind + server.key)] * 2).status_code != 401


@pytest.mark.parametrize("place", [f"{API}/trs_x", "/v1/sessions", "/mcp"])
def test_two_different_keys_are_refused_and_named(server: Running, anyone: httpx2.Client, place: str) -> None:
    other = make_key(server.settings, Scope.SESSIONS).presented
    for second in ("authorization", "x-user-api-key"):
        value = f"Bearer {other}" if second == "authorization" else other
        answer = anyone.get(place, headers={"x-api-key": server.key, second: value})
        assert answer.status_code == 401
        assert "x-api-key" in answer.json()["error"]["message"]
        assert second in answer.json()["error"]["message"]
        same = f"Bearer {server.key}" if second == "authorization" else server.key
        assert anyone.get(place, headers={"x-api-key": server.key, second: same}).status_code != 401


def test_a_token_reaches_its_own_session_and_its_files(anyone: httpx2.Client, session: str, token: str) -> None:
    anyone.headers["x-session-access-key"] = token
    assert anyone.get(f"{API}/{session}").json()["session_id"] == session
    assert anyone.get(f"{API}/{session}/config_history").status_code == 200
    assert anyone.post(f"{API}/{session}/attach", json={}).status_code == 200
    files = f"{API}/{session}/mounts/files"
    assert anyone.get(f"{files}/items").json() == {"items": []}
    assert anyone.post(f"{files}/upload_url", json={"mount_relative_path": "a"}).status_code == 201


def test_a_token_makes_changes_and_deletes_nothing_and_reaches_no_other(
    client: httpx2.Client, anyone: httpx2.Client, session: str, token: str, made: list[str]
) -> None:
    other = client.post(API, json={"user_id": "u"}).json()["session_id"]
    made.append(other)
    anyone.headers["x-session-access-key"] = token
    asked = [
        anyone.post(API, json={"user_id": "u"}),
        anyone.patch(f"{API}/{session}", json={"search": {"enable": False}}),
        anyone.delete(f"{API}/{session}"),
        anyone.get(f"{API}/{other}"),
        anyone.post(f"{API}/{other}/attach", json={}),
        anyone.get(f"{API}/{other}/config_history"),
        anyone.get(f"{API}/{other}/mounts/files/items"),
        anyone.post(f"{API}/{other}/mounts/files/upload_url", json={"mount_relative_path": "a"}),
        anyone.post(f"{API}/{other}/mounts/files/download_url", json={"mount_relative_path": "a"}),
        anyone.post(f"{API}/{other}/mounts/files/delete", json={"mount_relative_path": "a"}),
    ]
    for answer in asked:
        refused(answer, 403, "APIKey_InsufficientPermissions", 812, "token")
    assert client.get(f"{API}/{session}").json()["config_version"] == 1


def test_a_key_without_the_scope_and_one_of_another_project_get_nowhere(
    server: Running, anyone: httpx2.Client, session: str
) -> None:
    anyone.headers["x-api-key"] = make_key(server.settings, Scope.PROXY).presented
    refused(anyone.get(f"{API}/{session}"), 403, "APIKey_InsufficientPermissions", 812, "scope")
    anyone.headers["x-api-key"] = make_key(server.settings, Scope.SESSIONS, project="elsewhere").presented
    refused(anyone.get(f"{API}/{session}"), 404, "ToolRouterV2_SessionNotFound", 4304)
    refused(anyone.delete(f"{API}/{session}"), 404, "ToolRouterV2_SessionNotFound", 4304)
