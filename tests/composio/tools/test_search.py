"""Tools are found by what they do, with everything that SDKs want to know of them."""

from __future__ import annotations

import httpx2
import pytest
from tests.composio.asking import bad_request
from tests.composio.tools.calling import ANSWER, CHAT, Calling, configured

GREP = {
    "slug": "GREP",
    "name": "Grep",
    "description": "Search files of the laptop for a pattern",
    "input_schema": {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
}


def test_what_fits_is_found_with_schema_status_time_and_next_steps(calling: Calling) -> None:
    answer = calling.post("search", {"queries": [{"use_case": "search the web for news"}], "model": "gpt-5"})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert set(told) == {
        "success", "error", "results", "tool_schemas", "toolkit_connection_statuses", "next_steps_guidance", "session",
        "time_info",
    }  # fmt: skip
    assert (told["success"], told["error"]) == (True, None)
    (result,) = told["results"]
    assert (result["index"], result["use_case"]) == (1, "search the web for news")
    assert result["primary_tool_slugs"][0] == ANSWER
    assert result["toolkits"] == ["composio_search"]
    schema = told["tool_schemas"][ANSWER]
    assert (schema["tool_slug"], schema["toolkit"], schema["hasFullSchema"]) == (ANSWER, "composio_search", True)
    assert schema["input_schema"]["properties"]["content"]
    (status,) = told["toolkit_connection_statuses"]
    assert (status["toolkit"], status["has_active_connection"]) == ("composio_search", True)
    assert set(told["session"]) == {"id", "generate_id", "instructions"}
    assert told["session"]["id"].isalpha()
    assert told["session"]["id"] in told["session"]["instructions"]
    assert set(told["time_info"]) == {"current_time_utc", "current_time_utc_epoch_seconds", "message"}
    assert any("COMPOSIO_MULTI_EXECUTE_TOOL" in step for step in told["next_steps_guidance"])


def test_what_nothing_fits_is_told_as_that(calling: Calling) -> None:
    told = calling.post("search", {"queries": [{"use_case": "merge pull requests on github"}]}).json()
    (result,) = told["results"]
    assert (result["primary_tool_slugs"], result["toolkits"], told["tool_schemas"]) == ([], [], {})
    assert "not configured" in result["error"]
    assert any("no tool" in step for step in told["next_steps_guidance"])


def test_tools_of_the_client_are_found_with_the_request_that_brings_them(calling: Calling) -> None:
    query = {"queries": [{"use_case": "grep files for a pattern"}]}
    assert "LOCAL_GREP" not in calling.post("search", query).json()["tool_schemas"]
    told = calling.post("search", {**query, "experimental": {"custom_tools": [GREP]}}).json()
    assert told["results"][0]["primary_tool_slugs"][0] == "LOCAL_GREP"
    assert told["tool_schemas"]["LOCAL_GREP"]["input_schema"] == GREP["input_schema"]


def test_a_list_of_toolkits_narrows_it(calling: Calling) -> None:
    query = {"queries": [{"use_case": "ask a language model"}]}
    assert CHAT in calling.post("search", {**query, "toolkits": ["composio_search"]}).json()["tool_schemas"]
    assert calling.post("search", {**query, "toolkits": ["github"]}).json()["tool_schemas"] == {}


def test_a_toolkit_that_is_switched_off_is_neither_found_nor_run(client: httpx2.Client, made: list[str]) -> None:
    off = configured(client, made, toolkits={"disable": ["composio_search"]})
    assert off.post("search", {"queries": [{"use_case": "search the web"}]}).json()["tool_schemas"] == {}
    told = off.run(ANSWER, {"content": "x"})
    assert "does not enable the toolkit composio_search" in told["error"]
    # Helpers are made of it, so that a list of others does not leave it out.
    listed = configured(client, made, toolkits={"enable": ["github"]})
    assert listed.data(ANSWER, {"content": "rust"})["answer"]


def test_the_users_time_is_told_with_their_zone(client: httpx2.Client, made: list[str]) -> None:
    zoned = configured(client, made, experimental={"assistive_prompt_config": {"user_timezone": "Asia/Tokyo"}})
    told = zoned.post("search", {"queries": [{"use_case": "search"}]}).json()["time_info"]
    assert "Asia/Tokyo" in told["message"]
    assert "+09:00" in told["message"]


def test_the_meta_tool_tells_the_same_and_keeps_the_word_of_a_workflow(calling: Calling) -> None:
    data = calling.data(
        "COMPOSIO_SEARCH_TOOLS",
        {"queries": [{"use_case": "search the web"}, {"use_case": "sum up text"}], "session": {"id": "gate"}},
    )
    assert [one["index"] for one in data["results"]] == [1, 2]
    assert data["session"]["id"] == "gate"
    assert data["session"]["generate_id"] is False


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "queries"),
        ({"queries": []}, "queries"),
        ({"queries": [{"use_case": ""}]}, "use_case"),
        ({"queries": [{"use_case": "x" * 1025}]}, "use_case"),
        ({"queries": [{"use_case": "x"}] * 8}, "queries"),
    ],
)
def test_a_query_that_cannot_be_is_refused_by_name(calling: Calling, body: dict[str, object], word: str) -> None:
    bad_request(calling.post("search", body), word)
    bad_request(calling.post("execute", {"tool_slug": "COMPOSIO_SEARCH_TOOLS", "arguments": body}), word)


def test_schemas_are_told_by_name_and_what_is_not_there_with_the_nearest(calling: Calling) -> None:
    data = calling.data(
        "COMPOSIO_GET_TOOL_SCHEMAS",
        {"tool_slugs": [CHAT, "COMPOSIO_SEARCH_EXA_ANSWERS", "GITHUB_X"], "include": ["input_schema", "output_schema"]},
    )
    assert data["success"] is False
    told = set(data["tool_schemas"][CHAT]) - {"seen_output"}
    assert told == {"toolkit", "tool_slug", "description", "input_schema", "output_schema"}
    assert data["not_found"] == ["COMPOSIO_SEARCH_EXA_ANSWERS", "GITHUB_X"]
    assert data["suggestions"]["COMPOSIO_SEARCH_EXA_ANSWERS"][0] == ANSWER
    assert all(len(names) <= 3 for names in data["suggestions"].values())
    assert CHAT in data["not_found_message"]
    alone = calling.data("COMPOSIO_GET_TOOL_SCHEMAS", {"tool_slugs": [CHAT]})
    assert alone["success"] is True
    assert "not_found" not in alone
    assert "output_schema" not in alone["tool_schemas"][CHAT]
