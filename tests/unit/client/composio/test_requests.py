"""What is sent for every call of the sessions API, and what its answers mean."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from workbench.client._requests import Request
from workbench.client.composio import _requests
from workbench.client.values import UNCHANGED
from workbench.errors import Conflict, InvalidRequest, WorkbenchError

SESSION = "/api/v3.1/tool_router/session"


def body(request: Request[Any]) -> Any:
    assert request.body is not None
    return json.loads(request.body)


def created(**told: Any) -> Any:
    sandbox, workbench = told.pop("sandbox", None), told.pop("workbench", None)
    asked = _requests.blocks(told, sandbox=sandbox, workbench=workbench, nothing=None)
    return body(_requests.create_session({"user_id": "user_123", **asked}))


def changed(*, expected: int | None = None, **told: Any) -> Any:
    sandbox, workbench = told.pop("sandbox", UNCHANGED), told.pop("workbench", UNCHANGED)
    asked = _requests.blocks(told, sandbox=sandbox, workbench=workbench, nothing=UNCHANGED)
    return body(_requests.change_session("trs_1", asked, expected))


def executed(slug: str = "X", arguments: Any = None, account: str | None = None) -> Request[Any]:
    return _requests.execute("trs_1", slug, arguments, account=account, definitions={})


def test_a_session_of_a_user_is_asked_for_by_the_name_alone() -> None:
    request = _requests.create_session({"user_id": "user_123"})
    assert (request.method, request.path) == ("POST", SESSION)
    assert body(request) == {"user_id": "user_123", "manage_connections": {"enable": True}}


def test_a_sandbox_says_that_it_is_on_unless_it_is_off() -> None:
    assert created(sandbox={})["workbench"] == {"enable": True}
    assert created(workbench={"enable": False})["workbench"] == {"enable": False}
    options = {"enable_proxy_execution": False, "auto_offload_threshold": 300, "sandbox_size": "large"}
    assert created(sandbox=options)["workbench"] == {"enable": True, **options}


def test_both_names_of_the_sandbox_at_once_are_an_error() -> None:
    with pytest.raises(InvalidRequest, match="two names for the same"):
        created(sandbox={}, workbench={})


@pytest.mark.parametrize(
    ("told", "wire"),
    [
        ({"toolkits": ["github", "gmail"]}, {"toolkits": {"enable": ["github", "gmail"]}}),
        ({"toolkits": {"disable": ["linear"]}}, {"toolkits": {"disable": ["linear"]}}),
        ({"tags": ["readOnlyHint"]}, {"tags": {"enable": ["readOnlyHint"]}}),
        (
            {"tools": {"gmail": ["GMAIL_SEND_EMAIL"], "slack": {"tags": ["readOnlyHint"]}}},
            {"tools": {"gmail": {"enable": ["GMAIL_SEND_EMAIL"]}, "slack": {"tags": {"enable": ["readOnlyHint"]}}}},
        ),
        ({"auth_configs": {"github": "ac_1"}}, {"auth_configs": {"github": "ac_1"}}),
        ({"connected_accounts": {"github": "ca_1"}}, {"connected_accounts": {"github": ["ca_1"]}}),
        ({"manage_connections": False}, {"manage_connections": {"enable": False}}),
        (
            {"manage_connections": {"callback_url": "https://cb", "wait_for_connections": True}},
            {"manage_connections": {"enable": True, "callback_url": "https://cb", "enable_wait_for_connections": True}},
        ),
        ({"multi_account": {"enable": True}}, {"multi_account": {"enable": True, "require_explicit_selection": True}}),
        ({"preload": {"tools": ["GITHUB_X"]}}, {"preload": {"tools": ["GITHUB_X"]}}),
        ({"preload": ["GITHUB_X"]}, {"preload": {"tools": ["GITHUB_X"]}}),
        ({"proxy_execute": True}, {"proxy_execute": {"enable": True}}),
        (
            {"experimental": {"assistive_prompt_config": {"user_timezone": "Europe/London"}}},
            {"experimental": {"assistive_prompt_config": {"user_timezone": "Europe/London"}}},
        ),
    ],
)
def test_short_forms_become_what_the_wire_has(told: dict[str, Any], wire: dict[str, Any]) -> None:
    assert created(**told) == {"user_id": "user_123", "manage_connections": {"enable": True}, **wire}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"sandbox": {"sandbox_sise": "large"}}, r"no such option of sandbox: .*did you mean 'sandbox_size'\?"),
        ({"workbench": {"sandboxSize": "large"}}, r"no such option of workbench: .*did you mean 'sandbox_size'\?"),
        ({"sandbox": {"sandbox_size": "huge"}}, "workbench.sandbox_size: Input should be 'standard', 'medium'"),
        ({"sandbox": "large"}, "sandbox must be a dict, not str"),
        ({"toolkits": "github"}, r"toolkits takes a list, not one text: \['github'\]"),
        ({"toolkits": {"enabled": ["github"]}}, r"no such option of toolkits: .*did you mean 'enable'\?"),
        ({"tools": ["GITHUB_X"]}, "tools takes a dict from toolkits"),
        ({"proxy_execute": "yes"}, "proxy_execute must be a dict, not str"),
        ({"manage_connections": "yes"}, "manage_connections must be a dict, not str"),
        ({"preload": 3}, "preload takes a list, not int"),
        ({"manage_connections": {"enabled": True}}, r"did you mean 'enable'\?"),
        ({"multi_account": {"enable": True, "max_accounts_per_toolkit": 11}}, "max_accounts_per_toolkit"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_sent(told: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        created(**told)


def test_a_user_without_a_name_is_refused_here() -> None:
    with pytest.raises(InvalidRequest, match="user_id"):
        _requests.create_session({"user_id": ""})


def test_a_change_says_what_changes_and_null_takes_back() -> None:
    assert changed(sandbox={"sandbox_size": "medium"}) == {"workbench": {"sandbox_size": "medium"}}
    assert changed(toolkits=None, expected=3) == {"toolkits": None, "expected_config_version": 3}
    assert changed(workbench=None) == {"workbench": None}
    with pytest.raises(InvalidRequest, match="nothing to change"):
        changed()
    with pytest.raises(InvalidRequest, match="expected_config_version"):
        changed(toolkits=["github"], expected=0)


def test_arguments_are_sent_when_they_are_given() -> None:
    assert body(executed()) == {"tool_slug": "X"}
    assert body(executed(arguments={})) == {"tool_slug": "X", "arguments": {}}
    assert body(executed(arguments={"a": 1}, account="ca_1")) == {
        "tool_slug": "X",
        "arguments": {"a": 1},
        "account": "ca_1",
    }
    meta = _requests.execute("trs_1", "COMPOSIO_SEARCH_TOOLS", None, account=None, definitions={}, meta=True)
    assert (meta.path, body(meta)) == (f"{SESSION}/trs_1/execute_meta", {"slug": "COMPOSIO_SEARCH_TOOLS"})


@pytest.mark.parametrize("arguments", [["a"], "a", {"a": object()}, {"a": float("nan")}])
def test_arguments_that_are_no_json_object_are_named(arguments: Any) -> None:
    with pytest.raises(InvalidRequest, match="arguments"):
        executed(arguments=arguments)


def test_a_tool_without_a_name_is_refused_here() -> None:
    with pytest.raises(InvalidRequest, match="slug of the tool is empty"):
        executed(" ")


def test_only_what_is_safe_to_repeat_is_repeated() -> None:
    proxy = _requests.proxy_execute("s", toolkit="t", endpoint="/", method="GET", body=None, parameters=None)
    unsafe = [
        executed(),
        proxy,
        _requests.create_session({"user_id": "u"}),
        _requests.change_session("s", {"toolkits": None}, None),
        _requests.link("s", "github", callback_url=None, alias=None),
    ]
    safe = [
        _requests.get_session("s"),
        _requests.list_tools("s", None),
        _requests.list_config_history("s", None, None),
        _requests.get_account("ca_1"),
        _requests.download_link("s", "files", "a"),
    ]
    assert not any(request.again for request in unsafe)
    assert all(request.again for request in safe)


def test_a_tool_may_run_for_longer_than_the_client_is_patient() -> None:
    assert executed().silence_s >= 180.0


def test_an_answer_of_a_tool_is_a_value() -> None:
    answer = executed().parse({"data": {"a": 1}, "error": None, "log_id": "log_1", "result_type": "completed"})
    assert (answer.data, answer.error, answer.log_id) == ({"a": 1}, None, "log_1")
    assert answer.successful
    failed = executed().parse({"data": {}, "error": "boom", "log_id": "log_2", "result_type": "failed"})
    assert (failed.error, failed.successful) == ("boom", False)


def test_an_answer_without_its_kind_is_known_by_its_error() -> None:
    assert executed().parse({"data": {}, "error": "boom", "log_id": "l"}).result_type == "failed"
    assert executed().parse({"data": {}, "error": None, "log_id": "l"}).result_type == "completed"


def test_a_call_that_was_blocked_or_wants_an_answer_did_not_succeed_and_says_why() -> None:
    blocked = executed().parse({"result_type": "blocked", "message": "not today", "reason": {"hook_id": "h"}})
    assert (blocked.successful, blocked.error) == (False, "not today")
    asking = executed().parse({"result_type": "input_required", "input_requests": {}})
    assert not asking.successful
    assert "a person has to be asked first, and nothing was done" in (asking.error or "")


def test_a_refusal_after_the_answer_had_begun_is_raised() -> None:
    refusal = {"error": {"message": "no sandbox", "code": 4300, "slug": "ToolRouterV2_BadRequest", "status": 400}}
    with pytest.raises(InvalidRequest, match="no sandbox"):
        executed().parse(refusal)


@pytest.mark.parametrize(("given", "sent"), [(1, "1"), (True, "true"), ("x", "x")])
def test_parameters_of_a_proxied_request_are_texts_in_headers_unless_told(given: Any, sent: str) -> None:
    request = _requests.proxy_execute(
        "trs_1",
        toolkit="github",
        endpoint="/user",
        method="GET",
        body=None,
        parameters=[{"name": "a", "value": given, "in": "query"}, {"name": "b", "value": given}],
    )
    assert body(request)["parameters"] == [
        {"name": "a", "type": "query", "value": sent},
        {"name": "b", "type": "header", "value": sent},
    ]


def test_a_parameter_without_a_value_is_named() -> None:
    with pytest.raises(InvalidRequest, match="a parameter is"):
        _requests.proxy_execute(
            "s", toolkit="t", endpoint="/", method="GET", body=None, parameters=[{"name": "a", "where": "query"}]
        )


def test_a_list_of_toolkits_is_asked_for_as_the_wire_has_it() -> None:
    request = _requests.list_toolkits(
        "trs_1", toolkits=["github", "hackernews"], cursor=None, limit=2, is_connected=True, search="g"
    )
    assert request.query == {"limit": "2", "toolkits": "github,hackernews", "is_connected": "true", "search": "g"}


def test_a_prefix_is_sent_without_the_slash_before_it() -> None:
    assert _requests.list_files("s", "files", "/data", "c1", 10).query == {
        "mount_relative_prefix": "data",
        "cursor": "c1",
        "limit": "10",
    }
    for top in ("/", "/mnt/files", "/mnt/files/", None):
        assert _requests.list_files("s", "files", top, None, None).query == {}
    inside = _requests.list_files("s", "files", "/mnt/files/data", None, None)
    assert inside.query == {"mount_relative_prefix": "data"}


@pytest.mark.parametrize("make", [_requests.get_session, _requests.delete_session])
@pytest.mark.parametrize(("name", "part"), [("../keys", "..%2Fkeys"), ("..", "%2E%2E"), ("a?b", "a%3Fb")])
def test_a_name_stays_one_part_of_the_address(make: Callable[[str], Request[Any]], name: str, part: str) -> None:
    assert make(name).path == f"{SESSION}/{part}"


@pytest.mark.parametrize("path", ["", "..", "a/../../b"])
def test_a_path_that_leaves_the_mount_is_not_sent(path: str) -> None:
    for make in (_requests.download_link, _requests.delete_file):
        with pytest.raises(WorkbenchError):
            make("s", "files", path)


def test_a_change_of_another_version_is_a_conflict() -> None:
    from workbench.client._answers import refusal

    told = {"error": {"message": "m", "code": 4309, "slug": "ToolRouterV2_ConfigVersionConflict", "status": 409}}
    assert isinstance(refusal("http://x", 409, json.dumps(told).encode()), Conflict)
