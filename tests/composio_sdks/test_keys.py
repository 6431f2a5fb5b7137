"""Keys and tokens, in each header that a client of the sessions API sends them in."""

from __future__ import annotations

import pytest
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import Asked, World

pytestmark = pytest.mark.long

EXECUTE = {"tool_slug": "COMPOSIO_REMOTE_WORKBENCH", "arguments": {"code_to_execute": "6 * 7"}}
PROXY = {"toolkit_slug": "github", "endpoint": "/user", "method": "GET"}


def created(world: World, count: int = 1) -> list[str]:
    made = world.ask(
        *[Asked("POST", "/api/v3.1/tool_router/session", {"x-api-key": world.plain.key}, {"user_id": "u"})] * count
    )
    return [one.json["session_id"] for one in made]


def token(world: World, session: str, key: str = "") -> str:
    bearer = {"authorization": f"Bearer {key or world.plain.key}"}
    (made,) = world.ask(Asked("POST", f"/v1/sessions/{session}/tokens", bearer, {}))
    assert made.status == 201, made
    presented: str = made.json["token"]
    return presented


def test_a_wrong_key_is_told_as_such(told: Told) -> None:
    refused = told.raised("create with a wrong key")
    assert (refused.kind, refused.status) == ("AuthenticationError", 401)
    assert "workbench keys create" in refused.message


def test_a_key_without_the_scope_cannot_proxy(told: Told) -> None:
    assert told.gave("create with the narrow key")["session_id"]
    refused = told.raised("proxy with the narrow key")
    assert (refused.kind, refused.status) == ("PermissionDeniedError", 403)
    assert "proxy" in refused.message


@pytest.mark.parametrize("prefix", ["/api/v3", "/api/v3.1"])
def test_the_token_of_a_session_is_its_access_key(world: World, prefix: str) -> None:
    mine, other = created(world, 2)
    key = {"x-session-access-key": token(world, mine)}
    at = f"{prefix}/tool_router/session"
    read, ran, elsewhere, new = world.ask(
        Asked("GET", f"{at}/{mine}", key),
        Asked("POST", f"{at}/{mine}/execute", key, EXECUTE),
        Asked("POST", f"{at}/{other}/execute", key, EXECUTE),
        Asked("POST", at, key, {"user_id": "u"}),
    )
    assert (read.status, read.json["session_id"]) == (200, mine)
    assert (ran.status, ran.json["result_type"], ran.json["data"]["results"]) == (200, "completed", "42")
    assert (elsewhere.status, new.status) == (403, 403)


def test_the_token_of_a_key_that_cannot_proxy_cannot_either(world: World) -> None:
    (mine,) = created(world)
    key = {"x-session-access-key": token(world, mine, world.narrow_key)}
    (refused,) = world.ask(Asked("POST", f"/api/v3/tool_router/session/{mine}/proxy_execute", key, PROXY))
    assert (refused.status, refused.json["error"]["slug"]) == (403, "APIKey_InsufficientPermissions")


def test_two_different_credentials_are_none(world: World) -> None:
    (mine,) = created(world)
    both = {"x-session-access-key": token(world, mine), "x-api-key": world.plain.key}
    (refused,) = world.ask(Asked("GET", f"/api/v3.1/tool_router/session/{mine}", both))
    assert (refused.status, refused.json["error"]["slug"]) == (401, "HTTP_Unauthorized")


@pytest.mark.parametrize("line", ["0.16", "0.21"])
def test_an_sdk_with_a_token_reaches_its_session_and_nothing_else(world: World, line: str) -> None:
    mine, other = created(world, 2)
    done = world.node(line, world.plain, "token.mjs", TOKEN=token(world, mine), SESSION=mine, OTHER=other)
    assert done.code == 0, done.stderr
    told = Told(f"typescript {line}", world.plain, done.facts)
    assert told.gave("use") == mine
    assert told.done("workbench")["results"] == "42"
    for name in ("create", "use of another", "update", "delete"):
        assert told.raised(name).status == 403, name


def test_the_newest_python_sdk_sends_a_users_key_in_a_header_of_its_own(world: World) -> None:
    done = world.python("0.30", world.plain, "-m", "tests.composio_sdks.python.user_key", USER_KEY=world.plain.key)
    assert done.code == 0, done.stderr
    told = Told("python 0.30", world.plain, done.facts)
    assert told.done("workbench")["results"] == "42"
