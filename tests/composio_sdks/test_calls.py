"""Tools, as each SDK lists, finds and calls them, on a server that has the two of its own and no app's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.composio_sdks.told import Told

pytestmark = pytest.mark.long

META = [
    "COMPOSIO_SEARCH_TOOLS",
    "COMPOSIO_GET_TOOL_SCHEMAS",
    "COMPOSIO_MULTI_EXECUTE_TOOL",
    "COMPOSIO_MANAGE_CONNECTIONS",
    "COMPOSIO_REMOTE_WORKBENCH",
    "COMPOSIO_REMOTE_BASH_TOOL",
]


def test_a_session_has_the_six_tools_that_lead_to_everything(told: Told) -> None:
    tools = [one["function"] for one in told.gave("tools")]
    assert [one["name"] for one in tools] == META
    for one in tools:
        assert one["description"]
        assert one["parameters"]["type"] == "object"
    code = next(one for one in tools if one["name"] == "COMPOSIO_REMOTE_WORKBENCH")
    assert code["parameters"]["required"] == ["code_to_execute"]


def test_code_runs_in_the_sandbox_and_keeps_its_variables(told: Told) -> None:
    first, second = told.done("workbench"), told.done("workbench again")
    assert (first["results"], first["stdout"], first["stderr"], first["error"]) == ("2", "", "", "")
    assert second["stdout"] == "1\n"
    assert first["sandbox_id_suffix"] == second["sandbox_id_suffix"]
    assert told.gave("workbench")["log_id"] != told.gave("workbench again")["log_id"]


def test_code_that_raises_is_a_failure_with_what_it_raised(told: Told) -> None:
    assert "ZeroDivisionError" in told.failure("workbench raises")
    assert "ZeroDivisionError" in told.gave("workbench raises")["data"]["error"]


def test_code_that_is_missing_is_refused_by_its_name(told: Told) -> None:
    refused = told.raised("workbench without code")
    assert (refused.kind, refused.status) == ("BadRequestError", 400)
    assert "code_to_execute" in refused.message


def test_bash_runs_in_the_same_sandbox(told: Told) -> None:
    bash = told.done("bash")
    assert (bash["stdout"], bash["stdoutLines"], bash["stderrLines"]) == ("hi\n/home/user\n", 2, 0)
    assert bash["sandbox_id_suffix"] == told.done("workbench")["sandbox_id_suffix"]


def test_a_tool_of_an_app_that_nobody_connected_fails_and_says_so(told: Told) -> None:
    assert "no active connection" in told.failure("execute of an app")
    assert told.gave("execute of an app")["log_id"]


@pytest.mark.parametrize("name", ["execute without arguments", "execute with an account"])
def test_a_tool_that_is_not_here_fails_and_says_so(told: Told, name: str) -> None:
    assert "no toolkit is configured" in told.failure(name)
    assert told.gave(name)["log_id"]


def test_a_search_finds_what_there_is(told: Told) -> None:
    found = told.gave("search for a model")
    (one,) = found["results"]
    assert "COMPOSIO_SEARCH_GROQ_CHAT" in one["primary_tool_slugs"]
    assert found["success"] is True
    assert "COMPOSIO_SEARCH_GROQ_CHAT" in found["tool_schemas"]


def test_a_search_finds_tools_of_apps_with_their_schemas_and_how_to_connect(told: Told) -> None:
    found = told.gave("search")
    (one,) = found["results"]
    assert "GITHUB_GET_A_PULL_REQUEST" in one["primary_tool_slugs"]
    assert "pull_number" in found["tool_schemas"]["GITHUB_GET_A_PULL_REQUEST"]["input_schema"]["properties"]
    (github,) = (state for state in found["toolkit_connection_statuses"] if state["toolkit"] == "github")
    assert github["has_active_connection"] is False
    assert any("COMPOSIO_MANAGE_CONNECTIONS" in step for step in found["next_steps_guidance"])


def test_several_tools_are_called_at_once_and_each_answers_for_itself(told: Told) -> None:
    many = told.done("multi execute")
    assert (many["total_count"], many["success_count"], many["error_count"]) == (2, 1, 1)
    model, app = many["results"]
    assert model["response"]["data"]["choices"][0]["message"]["content"] == "yes"
    assert "GITHUB_X" in app["error"]


def test_schemas_of_tools_are_given_and_others_are_named(told: Told) -> None:
    schemas = told.done("schemas")
    assert set(schemas["tool_schemas"]) == {"COMPOSIO_SEARCH_EXA_ANSWER"}
    assert schemas["not_found"] == ["NO_SUCH"]


def test_an_app_is_connected_by_a_link_to_our_own_page(told: Told) -> None:
    github = told.done("connections")["results"]["github"]
    assert (github["status"], github["has_active_connection"]) == ("initiated", False)
    for begun in (github, told.gave("authorize")):
        assert begun["redirect_url"].startswith(f"{told.server.url}/connect/")
    assert told.raised("account of nobody").status == 404


def test_toolkits_are_those_there_are(told: Told) -> None:
    assert told.gave("toolkits")["items"] == []
    states = {one["slug"]: one for one in told.gave("all toolkits")["items"]}
    assert {"github", "gmail", "composio_search"} <= set(states)
    assert (states["github"]["is_no_auth"], states["github"]["connection"]["is_active"]) == (False, False)
    assert states["composio_search"]["is_no_auth"] is True


def test_a_call_on_behalf_of_a_connection_that_there_is_not_is_refused(told: Told) -> None:
    refused = told.raised("proxy")
    assert (refused.kind, refused.status) == ("BadRequestError", 400)
    assert "no active connection" in refused.message
    assert "github" in refused.message


def test_the_newest_line_calls_tools_by_another_address_too(told: Told) -> None:
    if told.line != "python 0.30":
        assert "execute meta" not in told.names
        return
    assert told.done("execute meta")["results"][0]["index"] == 1
    assert told.gave("provider of a session")["data"]["results"] == "42"


def test_the_newest_line_asks_its_user_before_a_tool_runs(told: Told) -> None:
    if told.line != "python 0.30":
        assert "execute that is asked about" not in told.names
        return
    assert told.raised("execute that is asked about").kind == "ToolInputRequiredError"
    assert told.done("execute that was allowed")["choices"]
    assert "did not allow it" in told.failure("execute that was not allowed")


def test_the_default_provider_names_a_user_and_gets_that_users_sandbox(told: Told) -> None:
    gave = told.gave("provider")
    answer: dict[str, Any] = json.loads(gave) if isinstance(gave, str) else gave
    assert (answer["successful"], answer["error"], answer["data"]["results"]) == (True, None, "42")
