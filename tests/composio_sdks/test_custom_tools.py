"""Tools of the caller's own process: the server names them, and calls go where they belong."""

from __future__ import annotations

import pytest
from tests.composio_sdks.told import Told

pytestmark = pytest.mark.long


def test_a_custom_tool_gets_its_whole_name_from_the_server(told: Told) -> None:
    (tool,) = told.gave("create with a custom tool")
    assert (tool["slug"], tool["name"], tool["description"]) == ("LOCAL_GREP", "Grep", "Search files")


def test_a_custom_tool_is_called_by_both_of_its_names_in_the_callers_process(told: Told) -> None:
    assert told.done("custom tool") == told.done("custom tool by its whole name") == {"matches": ["needle"]}


def test_a_custom_tool_is_found_by_a_search(told: Told) -> None:
    (found,) = told.gave("search beside it")["results"]
    assert "LOCAL_GREP" in found["primary_tool_slugs"] + found["related_tool_slugs"]


def test_functions_for_an_agent_are_called_where_they_belong(told: Told) -> None:
    assert {"COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_MULTI_EXECUTE_TOOL"} <= set(told.gave("functions"))
    ran, failed = told.gave("function"), told.gave("function that fails")
    assert (ran["successful"], ran["error"], ran["data"]["results"]) == (True, None, "42")
    assert failed["successful"] is False
    assert "ZeroDivisionError" in failed["error"]


def test_a_batch_of_custom_and_other_tools_is_answered_together(told: Told) -> None:
    batch = told.gave("a batch of both")["data"]
    assert sorted(one["tool_slug"] for one in batch["results"]) == ["GITHUB_X", "LOCAL_SHOUT"]
    assert (batch["total_count"], batch["success_count"], batch["error_count"]) == (2, 1, 1)


def test_a_session_that_is_used_again_takes_custom_tools_along(told: Told) -> None:
    assert told.gave("attach")["session_id"].startswith("trs_")
    assert told.done("custom tool after attach") == {"matches": ["again"]}
