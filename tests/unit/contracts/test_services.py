"""A question that cannot be asked cannot be made."""

from __future__ import annotations

import pytest

from workbench.contracts.services import MOST_QUERY_CHARACTERS, Completion, Question
from workbench.errors import InvalidRequest


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "query is empty"),
        (" \n\t\u3000", "query is empty"),
        ("x" * (MOST_QUERY_CHARACTERS + 1), "query has 200,001 characters, and 200,000 may be asked at once"),
        ("ok \udc80", "half of a character at 3"),
    ],
)
def test_a_query_that_cannot_be_asked_is_refused_with_the_reason(query: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        Question(query)


def test_the_longest_query_is_a_question() -> None:
    assert Question("x" * MOST_QUERY_CHARACTERS, "high").reasoning_effort == "high"


@pytest.mark.parametrize("effort", ["none", "HIGH", "x" * 1000])
def test_an_effort_that_nobody_knows_is_refused(effort: str) -> None:
    with pytest.raises(InvalidRequest, match="one of low, medium, high, or be left out") as caught:
        Question("hello", effort)
    assert len(caught.value.message) < 200


def test_what_is_asked_and_answered_is_in_no_repr() -> None:
    assert "secret" not in repr(Question("secret"))
    assert "secret" not in repr(Completion(text="secret", model="m", prompt_tokens=1, completion_tokens=1))


def test_both_parts_of_a_question_fit_together_or_not_at_all() -> None:
    assert Question("x", system="y" * (MOST_QUERY_CHARACTERS - 1)).system
    with pytest.raises(InvalidRequest, match="system"):
        Question("x", system="y" * MOST_QUERY_CHARACTERS)
    assert "secret" not in repr(Question("x", system="secret"))
