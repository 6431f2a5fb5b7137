"""Sessions, as each SDK makes them, finds them again, changes them and deletes them."""

from __future__ import annotations

import re

import pytest
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import World

pytestmark = pytest.mark.long

META = [
    "COMPOSIO_SEARCH_TOOLS",
    "COMPOSIO_GET_TOOL_SCHEMAS",
    "COMPOSIO_MULTI_EXECUTE_TOOL",
    "COMPOSIO_MANAGE_CONNECTIONS",
]
CREATED = (
    "create",
    "create with everything of a sandbox",
    "create without a sandbox",
    "create xlarge",
    "create with an empty block",
    "create with everything else",
)


def test_every_topic_was_gone_through_to_its_end(told: Told) -> None:
    topics = [name for name in told.names if name.startswith("all of ")]
    # The newest asks a person as well.
    assert len(topics) == (8 if told.line == "python 0.30" else 7)
    assert [told.gave(topic) for topic in topics] == [None] * len(topics)


def test_a_session_has_an_id_and_its_mcp_address_with_the_key_to_it(told: Told) -> None:
    for name in CREATED:
        made = told.gave(name)
        assert re.fullmatch(r"trs_[a-z0-9]{16}", made["session_id"])
        assert made["mcp"] == {
            "type": "http",
            "url": f"{told.server.url}/tool_router/{made['session_id']}/mcp",
            "headers": {"x-api-key": told.server.key},
        }


def test_a_sandbox_is_as_it_was_asked_for(told: Told, world: World) -> None:
    asked = {
        "create": {"enable": True, "proxy_execution_enabled": True, "sandbox_size": "standard"},
        "create with everything of a sandbox": {
            "enable": True,
            "proxy_execution_enabled": False,
            "sandbox_size": "large",
            "auto_offload_threshold": 300,
        },
        "create without a sandbox": {"enable": False},
        "create xlarge": {"enable": True, "sandbox_size": "xlarge"},
        "create with an empty block": {"enable": True, "sandbox_size": "standard"},
    }
    for name, sandbox in asked.items():
        made = world.session(told.gave(name)["session_id"])
        assert made["config"]["workbench"] | sandbox == made["config"]["workbench"]
        assert made["config_version"] == 1


def test_what_else_was_asked_for_is_kept(told: Told, world: World) -> None:
    config = world.session(told.gave("create with everything else")["session_id"])["config"]
    assert config["user_id"] == "u2"
    assert config["toolkits"] == {"disabled": ["linear"]}
    assert config["tools"] == {
        "gmail": {"enabled": ["GMAIL_SEND_EMAIL"]},
        "github": {"disabled": ["GITHUB_X"]},
        "slack": {"tags": {"enabled": ["readOnlyHint"]}},
    }
    assert config["tags"] == {"enabled": ["readOnlyHint"], "disabled": ["destructiveHint"]}
    assert config["auth_configs"] == {"github": "ac_1"}
    assert config["connected_accounts"] == {"github": ["ca_1"]}
    managed = {"enabled": True, "callback_url": "https://cb", "enable_wait_for_connections": True}
    assert config["manage_connections"] | managed == config["manage_connections"]
    several = {"enable": True, "require_explicit_selection": True}
    assert config["multi_account"] | several == config["multi_account"]
    assert config["preload"] == {"tools": ["GITHUB_X"]}
    if told.line == "python 0.30":
        assert config["proxy_execute"] == {"enable": True}


def test_without_a_sandbox_its_tools_are_not_there_and_cannot_be_called(told: Told) -> None:
    assert told.gave("tools without a sandbox") == META
    refused = told.raised("workbench without a sandbox")
    assert (refused.kind, refused.status) == ("BadRequestError", 400)
    assert "sandbox" in refused.message


def test_a_size_that_there_is_not_is_refused(told: Told) -> None:
    refused = told.raised("create with a size of nobody")
    if told.line.startswith("python"):
        assert (refused.kind, refused.status) == ("BadRequestError", 400)
        assert "standard" in refused.message
    else:
        # By the SDK itself, which knows them.
        assert refused.kind == "ZodError"


def test_a_change_keeps_the_memory_and_counts_the_version(told: Told, world: World) -> None:
    # The older one of Python says nothing of versions.
    assert told.gave("update")["config_version"] == (None if told.line == "python 0.19" else 2)
    assert told.done("after the update")["results"] == "42"


def test_a_change_of_an_old_version_is_a_conflict_and_asked_once(told: Told, world: World) -> None:
    if "update of an old version" not in told.names:
        assert told.line in {"python 0.19", "typescript 0.16", "typescript 0.19"}, "this SDK sends no version"
        return
    refused = told.raised("update of an old version")
    assert refused.kind in {"SessionConfigConflictError", "ComposioSessionConfigConflictError"}
    session = told.gave("update")["session_id"]
    patches = [one for one in world.requests() if one["method"] == "PATCH" and one.get("session") == session]
    assert [one["status"] for one in patches] == [200, 409]


def test_the_history_has_every_version(told: Told) -> None:
    if "history" not in told.names:
        assert told.line in {"python 0.19", "typescript 0.16", "typescript 0.19"}, "this SDK cannot ask for it"
        return
    history = told.gave("history")
    assert [(one["version"], one["is_current"]) for one in history["items"]] == [(2, True), (1, False)]
    assert [one["config"]["workbench"]["sandbox_size"] for one in history["items"]] == ["medium", "standard"]


def test_a_session_is_found_again_until_it_is_deleted(told: Told) -> None:
    session = told.gave("update")["session_id"]
    assert told.gave("use")["session_id"] == session
    deleted = told.gave("delete")
    assert (deleted["session_id"], deleted["deleted"]) == (session, True)
    for name in ("use of nobody", "execute after delete", "delete again"):
        assert told.raised(name).status == 404


def test_pythons_create_takes_no_position_and_says_so_itself(told: Told) -> None:
    if not told.line.startswith("python"):
        return
    refused = told.raised("create by position")
    assert refused.kind == "TypeError"
    assert refused.message == "ToolRouter.create() takes 1 positional argument but 2 were given"


def test_the_preset_of_direct_tools_is_understood(told: Told, world: World) -> None:
    config = world.session(told.gave("create of direct tools")["session_id"])["config"]
    assert config["workbench"]["enable"] is False
    assert config["manage_connections"]["enabled"] is False
    assert (config["search"], config["execute"]) == ({"enable": False}, {"enable_multi_execute": False})
    assert config["preload"] == {"tools": "all"}
    away = {*META, "COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"} - {"COMPOSIO_GET_TOOL_SCHEMAS"}
    assert not away & set(told.gave("direct tools"))
