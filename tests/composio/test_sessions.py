"""Sessions of the sessions API over HTTP: made, looked at, changed and deleted."""

from __future__ import annotations

import re
from typing import Any

import httpx2
import pytest
from tests.composio.asking import SESSION, SIX, bad_request, refused, run_cell
from tests.server.running import Running

API = f"/api/v3.1{SESSION}"


def create(client: httpx2.Client, made: list[str], **body: object) -> dict[str, Any]:
    answer = client.post(API, json={"user_id": "tester", "manage_connections": {"enable": True}, **body})
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    made.append(told["session_id"])
    return told


def change(client: httpx2.Client, session: str, **body: object) -> dict[str, Any]:
    answer = client.patch(f"{API}/{session}", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_a_session_is_made_with_everything_that_sdks_read(
    server: Running, client: httpx2.Client, prefix: str, made: list[str]
) -> None:
    answer = client.post(f"{prefix}{SESSION}", json={"user_id": "user_123", "manage_connections": {"enable": True}})
    told = answer.json()
    made.append(told["session_id"])
    assert answer.status_code == 201
    assert re.fullmatch(r"trs_[a-z0-9]{16}", told["session_id"])
    assert told["mcp"] == {"type": "http", "url": f"{server.url}/tool_router/{told['session_id']}/mcp"}
    assert (told["tool_router_tools"], told["config_version"]) == (SIX, 1)
    assert "COMPOSIO_REMOTE_WORKBENCH" in told["experimental"]["assistive_prompt"]
    assert told["config"] == {
        "user_id": "user_123",
        "manage_connections": {
            "enabled": True,
            "enable_wait_for_connections": False,
            "enable_connection_removal": True,
        },
        "workbench": {
            "enable": True,
            "proxy_execution_enabled": True,
            "tool_execution_enabled": True,
            "sandbox_size": "standard",
        },
        "preload": {"tools": []},
        "search": {"enable": True},
        "execute": {"enable_multi_execute": True},
        "instant": False,
    }
    assert client.get(f"{prefix}{SESSION}/{told['session_id']}").json() == told


def test_everything_that_was_sent_is_shown_under_the_names_of_answers(client: httpx2.Client, made: list[str]) -> None:
    sent = {
        "toolkits": {"disable": ["linear"], "require_approval": ["gmail"]},
        "auth_configs": {"github": "ac_1"},
        "connected_accounts": {"github": ["ca_1"]},
        "manage_connections": {"enable": True, "callback_url": "https://cb", "enable_wait_for_connections": True},
        "tools": {
            "gmail": {"enable": ["GMAIL_SEND_EMAIL"]},
            "github": {"disable": ["GITHUB_X"], "require_approval": ["GITHUB_Y"]},
            "slack": {"tags": ["readOnlyHint"]},
        },
        "tags": {"enable": ["readOnlyHint"], "disable": ["destructiveHint"]},
        "proxy_execute": {"enable": True},
        "multi_account": {"enable": True, "require_explicit_selection": True, "max_accounts_per_toolkit": 3},
        "workbench": {"enable": True, "enable_proxy_execution": False, "auto_offload_threshold": 300,
                      "sandbox_size": "large", "enable_tool_execution": False},
        "experimental": {"assistive_prompt_config": {"user_timezone": "Europe/London"}, "fast_mode": True,
                         "submit_feedback": {"enable": True}},
        "preload": {"tools": ["GITHUB_X"]},
        "instant": False,
        "premium_usage": {"some": "policy"},
        "hooks": [],
        "what nobody knows": 1,
    }  # fmt: skip
    told = create(client, made, **sent)
    config = told["config"]
    assert config["toolkits"] == {"disabled": ["linear"], "require_approval": ["gmail"]}
    assert config["tools"] == {
        "gmail": {"enabled": ["GMAIL_SEND_EMAIL"]},
        "github": {"disabled": ["GITHUB_X"], "require_approval": ["GITHUB_Y"]},
        "slack": {"tags": {"enabled": ["readOnlyHint"]}},
    }
    assert config["tags"] == {"enabled": ["readOnlyHint"], "disabled": ["destructiveHint"]}
    assert (config["auth_configs"], config["connected_accounts"]) == ({"github": "ac_1"}, {"github": ["ca_1"]})
    assert config["manage_connections"]["callback_url"] == "https://cb"
    assert config["workbench"] == {
        "enable": True, "proxy_execution_enabled": False, "tool_execution_enabled": False,
        "auto_offload_threshold": 300, "sandbox_size": "large",
    }  # fmt: skip
    assert (config["proxy_execute"], config["preload"]) == ({"enable": True}, {"tools": ["GITHUB_X"]})
    assert config["multi_account"] == {
        "enable": True, "max_accounts_per_toolkit": 3, "require_explicit_selection": True
    }  # fmt: skip
    assert "Europe/London" in told["experimental"]["assistive_prompt"]
    extra = {"COMPOSIO_WAIT_FOR_CONNECTIONS", "COMPOSIO_PROXY_EXECUTE", "COMPOSIO_SUBMIT_FEEDBACK"}
    assert set(told["tool_router_tools"]) == {*SIX, *extra}
    # The size is that of the sandbox, whoever asks.
    described = client.get(f"/v1/sessions/{told['session_id']}").json()
    assert (described["sandbox"]["sandbox_size"], described["user_id"]) == ("large", "tester")


@pytest.mark.parametrize("name", ["sandbox", "workbench"])
def test_a_session_without_a_sandbox_says_so_literally(client: httpx2.Client, made: list[str], name: str) -> None:
    told = create(client, made, **{name: {"enable": False}})
    assert told["config"]["workbench"]["enable"] is False
    assert told["tool_router_tools"] == SIX[:4]
    assert "REMOTE" not in told["experimental"]["assistive_prompt"]
    refusal = client.post(f"/v1/sessions/{told['session_id']}/cells", json={"code": "1"})
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (409, "sandbox_off")


def test_a_session_for_known_tools_only_offers_no_search_and_the_like(client: httpx2.Client, made: list[str]) -> None:
    told = create(
        client, made, toolkits={"enable": ["github"]}, manage_connections={"enable": False},
        workbench={"enable": False}, preload={"tools": "all"}, search={"enable": False},
        execute={"enable_multi_execute": False},
    )  # fmt: skip
    assert told["tool_router_tools"] == ["COMPOSIO_GET_TOOL_SCHEMAS"]
    assert told["config"]["preload"] == {"tools": "all"}


_TOOL = {"slug": "x", "name": "n", "description": "d", "input_schema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"user_id": ""}, ["user_id", "at least 1 character"]),
        ({"user_id": 5}, ["user_id", "string"]),
        ({"user_id": None}, ["user_id"]),
        ({"sandbox": {}, "workbench": {}}, ["`sandbox` and `workbench`", "send one of them"]),
        ({"workbench": {"sandbox_size": "huge"}}, ["sandbox_size", "'standard', 'medium', 'large' or 'xlarge'"]),
        ({"workbench": {"auto_offload_threshold": 0}}, ["auto_offload_threshold", "greater than 0"]),
        ({"workbench": {"enable": "yes"}}, ["workbench.enable", "boolean"]),
        ({"proxy_execute": {"enable": False}, "workbench": {"enable_proxy_execution": True}}, ["proxy_execute"]),
        ({"toolkits": {"enable": ["a"], "disable": ["b"]}}, ["toolkits", "`enable` or `disable`"]),
        ({"tags": ["someHint"]}, ["tags", "readOnlyHint"]),
        ({"multi_account": {"max_accounts_per_toolkit": 11}}, ["max_accounts_per_toolkit", "10"]),
        ({"hooks": [{"type": "before_execute"}]}, ["hooks", "your own code"]),
        ({"experimental": {"permissions": {"default": "ask_sometimes"}}}, ["experimental.permissions.default"]),
        ({"experimental": {"session_config_id": "sc_1"}}, ["session_config_id", "no saved"]),
        ({"experimental": {"custom_tools": [{**_TOOL, "slug": "a b"}]}}, ["experimental.custom_tools.0.slug"]),
        ({"experimental": {"custom_tools": [{**_TOOL, "slug": "LOCAL_X"}]}}, ["LOCAL_", "another name"]),
        ({"experimental": {"custom_tools": [{**_TOOL, "slug": "x" * 55}]}}, ["61 characters", "shorten"]),
        ({"experimental": {"custom_tools": [{**_TOOL, "input_schema": {"type": "object"}}]}}, ['"properties"']),
        ({"experimental": {"custom_tools": [_TOOL, _TOOL]}}, ["LOCAL_X", "rename one"]),
        ({"experimental": {"custom_toolkits": [
            {"slug": "K", "name": "n", "description": "d", "tools": []}]}}, ["custom_toolkits.0.tools"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(client: httpx2.Client, body: dict[str, object], words: list[str]) -> None:
    bad_request(client.post(API, json={"user_id": "u", **body}), *words)


def test_everything_that_is_wrong_is_listed(client: httpx2.Client) -> None:
    answer = client.post(API, json={"search": 1, "workbench": {"sandbox_size": "huge", "enable": 2}})
    error = bad_request(answer, "sandbox_size", "user_id", "search")
    assert len(error["errors"]) == 4
    assert "/docs" in error["suggested_fix"]


def test_tools_of_the_callers_own_get_their_names(client: httpx2.Client, made: list[str], prefix: str) -> None:
    schema = {"type": "object", "properties": {"p": {"type": "string", "default": None}}, "required": ["p"]}
    grep = {"slug": "grep", "name": "Grep", "description": "Search files", "input_schema": schema, "preload": True}
    kit = {"slug": "dev_tools", "name": "Dev", "description": "Tools", "tools": [grep]}
    brought = {"custom_tools": [grep, {**grep, "extends_toolkit": "github"}], "custom_toolkits": [kit]}
    told = create(client, made, experimental=brought)
    named = told["experimental"]
    assert [(one["slug"], one["original_slug"]) for one in named["custom_tools"]] == [
        ("LOCAL_GREP", "grep"),
        ("LOCAL_GITHUB_GREP", "grep"),
    ]
    assert named["custom_tools"][1]["extends_toolkit"] == "github"
    assert named["custom_tools"][0]["input_schema"] == schema
    tool = named["custom_toolkits"][0]["tools"][0]
    assert (named["custom_toolkits"][0]["slug"], tool["slug"], tool["original_slug"], tool["preload"]) == (
        "dev_tools", "LOCAL_DEV_TOOLS_GREP", "grep", True,
    )  # fmt: skip
    # Nothing of them is kept; they come again with whatever needs them.
    place = f"{prefix}{SESSION}/{told['session_id']}"
    assert "custom_tools" not in client.get(place).json()["experimental"]
    again = client.post(f"{place}/attach", json={"experimental": brought})
    assert (again.status_code, again.json()) == (200, told)
    assert client.post(f"{place}/attach", json={}).status_code == 200


def test_a_change_keeps_what_it_does_not_name(client: httpx2.Client, made: list[str]) -> None:
    session = create(
        client, made,
        toolkits={"enable": ["github"]}, tools={"github": {"enable": ["A"]}}, auth_configs={"github": "ac"},
        workbench={"enable_proxy_execution": False, "sandbox_size": "medium", "auto_offload_threshold": 5},
        manage_connections={"enable": True, "callback_url": "https://cb"}, preload={"tools": ["A"]},
        multi_account={"enable": True, "max_accounts_per_toolkit": 4},
        experimental={"assistive_prompt_config": {"user_timezone": "Asia/Tokyo"}},
    )["session_id"]  # fmt: skip
    told = change(client, session, workbench={"auto_offload_threshold": 7}, toolkits={"disable": ["slack"]})
    config = told["config"]
    assert (told["config_version"], told["session_id"]) == (2, session)
    assert config["workbench"]["auto_offload_threshold"] == 7
    assert (config["workbench"]["proxy_execution_enabled"], config["workbench"]["sandbox_size"]) == (False, "medium")
    assert config["toolkits"] == {"disabled": ["slack"]}
    assert config["tools"] == {"github": {"enabled": ["A"]}}
    # Switches are merged, maps are replaced.
    told = change(client, session, manage_connections={"enable": False}, multi_account={"enable": False},
                  tools={"slack": {"disable": ["B"]}}, preload={"tools": []})  # fmt: skip
    config = told["config"]
    assert (config["manage_connections"]["enabled"], config["manage_connections"]["callback_url"]) == (
        False,
        "https://cb",
    )
    assert config["multi_account"] == {"enable": False, "max_accounts_per_toolkit": 4}
    assert (config["tools"], config["preload"]) == ({"slack": {"disabled": ["B"]}}, {"tools": []})
    assert "COMPOSIO_MANAGE_CONNECTIONS" not in told["tool_router_tools"]
    # Null is what a new session has.
    nothing = dict.fromkeys(
        ("toolkits", "tools", "auth_configs", "sandbox", "manage_connections", "multi_account", "experimental")
    )
    told = change(client, session, **nothing)
    fresh = create(client, made)
    assert told["config"] == fresh["config"]
    assert told["experimental"] == fresh["experimental"]
    assert told["config_version"] == 4


def test_a_change_of_another_version_is_refused_and_not_tried_again(
    client: httpx2.Client, session: str, prefix: str
) -> None:
    place = f"{prefix}{SESSION}/{session}"
    assert client.patch(place, json={"search": {"enable": False}, "expected_config_version": 1}).status_code == 200
    answer = client.patch(place, json={"search": {"enable": True}, "expected_config_version": 1})
    error = refused(answer, 409, "ToolRouterV2_ConfigVersionConflict", 4309, "version 2")
    assert error["suggested_fix"]
    assert answer.headers["x-should-retry"] == "false"
    assert client.get(place).json()["config"]["search"] == {"enable": False}


def test_another_size_keeps_the_memory_of_a_living_sandbox(client: httpx2.Client, session: str) -> None:
    run_cell(client, session, "kept = 6 * 7")
    told = change(client, session, workbench={"sandbox_size": "medium"})
    assert told["config"]["workbench"]["sandbox_size"] == "medium"
    assert run_cell(client, session, "kept") == "42"
    assert client.get(f"/v1/sessions/{session}").json()["sandbox"]["sandbox_size"] == "medium"
    assert (
        change(client, session, workbench={"sandbox_size": None})["config"]["workbench"]["sandbox_size"] == "standard"
    )


def test_a_sandbox_is_switched_off_and_on_again(client: httpx2.Client, session: str) -> None:
    run_cell(client, session, "open('/mnt/files/kept.txt', 'w').write('1')")
    told = change(client, session, sandbox={"enable": False})
    assert (told["config"]["workbench"]["enable"], told["tool_router_tools"]) == (False, SIX[:4])
    assert client.post(f"/v1/sessions/{session}/cells", json={"code": "1"}).status_code == 409
    items = client.get(f"{API}/{session}/mounts/files/items").json()["items"]
    assert [one["mount_relative_path"] for one in items] == ["kept.txt"]
    change(client, session, sandbox={"enable": True})
    assert run_cell(client, session, "open('/mnt/files/kept.txt').read()") == "'1'"


def test_versions_are_listed_the_newest_first(client: httpx2.Client, made: list[str], prefix: str) -> None:
    session = create(client, made)["session_id"]
    for size in ("medium", "large"):
        change(client, session, workbench={"sandbox_size": size})
    place = f"{prefix}{SESSION}/{session}/config_history"
    whole = client.get(place).json()
    assert [(one["version"], one["is_current"]) for one in whole["items"]] == [(3, True), (2, False), (1, False)]
    assert [one["config"]["workbench"]["sandbox_size"] for one in whole["items"]] == ["large", "medium", "standard"]
    assert {key: whole[key] for key in whole.keys() - {"items"}} == {
        "total_pages": 1, "current_page": 1, "total_items": 3,
    }  # fmt: skip
    assert all(one["config"]["user_id"] == "tester" and one["created_at"].endswith("Z") for one in whole["items"])
    first = client.get(place, params={"limit": 2}).json()
    assert (first["total_pages"], first["current_page"], [one["version"] for one in first["items"]]) == (2, 1, [3, 2])
    second = client.get(place, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert (second["current_page"], [one["version"] for one in second["items"]]) == (2, [1])
    assert not second["items"][0]["is_current"]
    assert "next_cursor" not in second
    for wrong in ({"limit": 101}, {"limit": 0}, {"cursor": "x"}):
        bad_request(client.get(place, params=wrong), next(iter(wrong)))


def test_a_deleted_session_is_gone(client: httpx2.Client, session: str, prefix: str) -> None:
    place = f"{prefix}{SESSION}/{session}"
    answer = client.delete(place)
    assert (answer.status_code, answer.json()) == (200, {"session_id": session, "deleted": True})
    asked = [
        client.delete(place),
        client.get(place),
        client.patch(place, json={}),
        client.post(f"{place}/attach", json={}),
        client.get(f"{place}/config_history"),
        client.get(f"{place}/mounts/files/items"),
    ]
    for one in asked:
        refused(one, 404, "ToolRouterV2_SessionNotFound", 4304, f"Session {session} not found")


def test_a_session_of_another_door_is_shown_like_all_others(client: httpx2.Client, made: list[str]) -> None:
    name = client.post("/v1/sessions", json={"user_id": "other", "sandbox": {"sandbox_size": "medium"}}).json()["id"]
    made.append(name)
    told = client.get(f"{API}/{name}").json()
    assert (told["config_version"], told["config"]["user_id"], told["tool_router_tools"]) == (1, "other", SIX)
    assert told["config"]["workbench"]["sandbox_size"] == "medium"
    assert change(client, name, search={"enable": False})["config_version"] == 2


def test_who_did_what_is_written_down(client: httpx2.Client, session: str) -> None:
    change(client, session, search={"enable": False})
    client.post(f"{API}/{session}/mounts/files/upload_url", json={"mount_relative_path": "a"})
    client.delete(f"{API}/{session}")
    items = client.get("/v1/audit", params={"limit": 1000}).json()["items"]
    actions = {one["action"] for one in items if one["session"] == session}
    assert {"session.create", "session.change", "file.link_upload", "session.delete"} <= actions
