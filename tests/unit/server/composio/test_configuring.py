"""What was sent becomes a change: what is left out stays, null is the usual, switches are merged, the rest replaced."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from workbench.model.approval import DefaultPolicy, Permissions, Policy
from workbench.model.configuration import (
    Choice,
    ManageConnections,
    MultiAccount,
    SandboxSwitches,
    SessionConfig,
    ToolChoice,
)
from workbench.model.tier import LARGE, STANDARD
from workbench.server.composio.configuring import changed, shown_config, wanted_tier
from workbench.wire.composio import ChangeSession

FULL = SessionConfig(
    toolkits=Choice(enable=("github",)),
    tools={"github": ToolChoice(tools=Choice(disable=("A",)), tags=Choice(enable=("readOnlyHint",)))},
    tags=Choice(disable=("destructiveHint",)),
    auth_configs={"github": "ac"},
    connected_accounts={"github": ("ca",)},
    manage_connections=ManageConnections(
        enable=False, callback_url="https://cb", wait_for_connections=True, connection_removal=False
    ),
    sandbox=SandboxSwitches(enable=False, proxy_execution=False, tool_execution=False, auto_offload_threshold=9),
    proxy_execute=True,
    multi_account=MultiAccount(enable=True, max_accounts_per_toolkit=4, require_explicit_selection=True),
    preload=("A",),
    search=False,
    multi_execute=False,
    submit_feedback=True,
    timezone="Asia/Tokyo",
)
BLOCKS = (
    "toolkits", "tools", "tags", "auth_configs", "connected_accounts", "manage_connections", "workbench",
    "proxy_execute", "multi_account", "preload", "search", "execute", "experimental",
)  # fmt: skip


def sent(**body: object) -> ChangeSession:
    return ChangeSession.model_validate_json(json.dumps(body), strict=True)


def test_nothing_sent_changes_nothing() -> None:
    assert changed(FULL, sent()) == FULL


def test_null_everywhere_is_what_a_new_session_has() -> None:
    assert changed(FULL, sent(**dict.fromkeys(BLOCKS))) == SessionConfig()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"manage_connections": {"enable_wait_for_connections": None, "callback_url": None}},
            replace(FULL, manage_connections=ManageConnections(enable=False, connection_removal=False)),
        ),
        (
            {"workbench": {"auto_offload_threshold": None, "enable": None}},
            replace(FULL, sandbox=SandboxSwitches(proxy_execution=False, tool_execution=False)),
        ),
        ({"search": {"enable": None}}, replace(FULL, search=True)),
        ({"execute": {"enable_multi_execute": None}}, replace(FULL, multi_execute=True)),
        (
            {"multi_account": {"enable": None, "require_explicit_selection": None}},
            replace(FULL, multi_account=MultiAccount(max_accounts_per_toolkit=4)),
        ),
        ({"experimental": {"submit_feedback": None}}, replace(FULL, submit_feedback=False)),
        ({"experimental": {"assistive_prompt_config": {"user_timezone": None}}}, replace(FULL, timezone="")),
    ],
)
def test_a_switch_that_is_null_is_the_usual_one_and_its_neighbours_stay(
    body: dict[str, object], expected: SessionConfig
) -> None:
    assert changed(FULL, sent(**body)) == expected


def test_maps_and_lists_are_replaced_as_a_whole() -> None:
    now = changed(FULL, sent(toolkits={"disable": []}, tools={"slack": {"enable": ["B"]}}, tags=["createHint"],
                             auth_configs={}, connected_accounts={"slack": []}, preload={"tools": "all"}))  # fmt: skip
    assert now.toolkits == Choice(disable=())
    assert now.tools == {"slack": ToolChoice(tools=Choice(enable=("B",)))}
    assert now.tags == Choice(enable=("createHint",))
    assert (now.auth_configs, now.connected_accounts) == ({}, {"slack": ()})
    assert (now.preload, now.preload_all) == ((), True)


def test_the_size_is_none_unless_it_was_said() -> None:
    assert wanted_tier(sent()) is None
    assert wanted_tier(sent(workbench={"enable": True})) is None
    assert wanted_tier(sent(sandbox={"sandbox_size": "large"})) == LARGE
    assert wanted_tier(sent(sandbox={"sandbox_size": None})) == STANDARD
    assert wanted_tier(sent(workbench=None)) == STANDARD


def test_a_part_of_a_character_counts_as_a_whole_one() -> None:
    assert changed(SessionConfig(), sent(workbench={"auto_offload_threshold": 0.5})).sandbox.auto_offload_threshold == 1


def test_what_was_never_said_is_not_shown() -> None:
    told = shown_config("u", "standard", SessionConfig()).model_dump(exclude_none=True)
    assert set(told) == {"user_id", "manage_connections", "workbench", "preload", "search", "execute", "instant"}


def test_raw_calls_that_were_ruled_out_are_shown_as_off_in_the_sandbox() -> None:
    told = shown_config("u", "standard", SessionConfig(proxy_execute=False))
    assert (told.workbench.proxy_execution_enabled, told.proxy_execute) == (False, told.proxy_execute)
    assert told.proxy_execute is not None
    assert not told.proxy_execute.enable


def test_everything_that_was_said_is_shown() -> None:
    assert shown_config("u", "large", FULL).model_dump(exclude_none=True) == {
        "user_id": "u",
        "toolkits": {"enabled": ["github"]},
        "tools": {"github": {"disabled": ["A"], "tags": {"enabled": ["readOnlyHint"]}}},
        "tags": {"disabled": ["destructiveHint"]},
        "auth_configs": {"github": "ac"},
        "connected_accounts": {"github": ["ca"]},
        "manage_connections": {
            "enabled": False,
            "callback_url": "https://cb",
            "enable_wait_for_connections": True,
            "enable_connection_removal": False,
        },
        "workbench": {
            "enable": False,
            "proxy_execution_enabled": False,
            "tool_execution_enabled": False,
            "auto_offload_threshold": 9,
            "sandbox_size": "large",
        },
        "proxy_execute": {"enable": True},
        "multi_account": {"enable": True, "max_accounts_per_toolkit": 4, "require_explicit_selection": True},
        "preload": {"tools": ["A"]},
        "search": {"enable": False},
        "execute": {"enable_multi_execute": False},
        "instant": False,
    }


def test_who_is_asked_before_a_tool_runs_is_replaced_as_a_whole_and_null_is_nobody() -> None:
    sent = {
        "permissions": {"default": "ask_once_per_session", "overrides": {"A:ca_1": "always_deny"}},
        "no_elicitation_support_fallback": "allow",
    }
    asking = changed(SessionConfig(), ChangeSession.model_validate({"experimental": sent}))
    told = Permissions(default=DefaultPolicy.ASK_ONCE, overrides={"A:ca_1": Policy.ALWAYS_DENY})
    assert (asking.permissions, asking.allow_unasked) == (told, True)
    same = changed(asking, ChangeSession.model_validate({"experimental": {"submit_feedback": {"enable": True}}}))
    assert (same.permissions, same.allow_unasked) == (told, True)
    for cleared in ({"permissions": None}, None):
        now = changed(asking, ChangeSession.model_validate({"experimental": cleared}))
        assert now.permissions == Permissions()
