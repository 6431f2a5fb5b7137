"""`invoke_llm` and `web_search`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.workbench_guest.helpers.answering import answer, in_turn, says
from tests.unit.workbench_guest.helpers.conftest import Serve

from workbench_guest.helpers import invoke_llm, web_search


def test_the_text_is_the_result(serve: Serve) -> None:
    server = serve(says("an answer"))
    assert invoke_llm("why?", "high") == ("an answer", "")
    assert web_search("where?") == ("an answer", "")
    assert server.requests == [
        {"operation": "invoke_llm", "arguments": {"query": "why?", "reasoning_effort": "high"}},
        {"operation": "web_search", "arguments": {"query": "where?"}},
    ]


@pytest.mark.parametrize("helper", [invoke_llm, web_search])
def test_a_failure_is_an_empty_text_and_its_error(serve: Serve, helper: Any) -> None:
    serve(in_turn(answer(None, "no model is configured", "not_configured"), answer({"no": "text"})))
    assert helper("x") == ("", "no model is configured")
    assert helper("x") == ("", "the answer is a dict and not a text")


@pytest.mark.parametrize("helper", [invoke_llm, web_search])
def test_too_often_is_asked_again_with_the_same_words(serve: Serve, helper: Any) -> None:
    refusal = answer(None, "slow down", "rate_limited")
    server = serve(in_turn(refusal, refusal, answer("good")))
    assert helper("x") == ("good", "")
    assert server.requests == [server.requests[0]] * 3


@pytest.mark.parametrize("helper", [invoke_llm, web_search])
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", "query is empty"),
        (" \n", "query is empty"),
        (None, "query has to be a str, not NoneType"),
        (["x"], "query has to be a str, not list"),
        ("x" * 200_001, "query has 200,001 characters, and at most 200,000 can be asked: split it"),
        ("a\udcff", "query holds half of a character pair at 1, which is no text"),
    ],
)
def test_a_wrong_query_is_not_sent(serve: Serve, helper: Any, query: Any, problem: str) -> None:
    server = serve(says("x"))
    assert helper(query) == ("", problem)
    assert server.requests == []


def test_as_much_as_may_be_asked_is_sent_whatever_its_characters(serve: Serve) -> None:
    server = serve(says("x"))
    assert invoke_llm("🦉" * 200_000) == ("x", "")
    assert server.arguments["query"] == "🦉" * 200_000


@pytest.mark.parametrize("effort", ["extreme", "", 3, ["low"]])
def test_a_wrong_effort_is_named(effort: Any) -> None:
    assert invoke_llm("x", effort) == (
        "",
        f"reasoning_effort has to be one of low, medium, high, or None, not {effort!r}",
    )
