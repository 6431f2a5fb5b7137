"""Answers of those who speak OpenAI's chat completions, each in its own way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.contracts.services import Completion
from workbench.errors import UpstreamBadAnswer
from workbench.services.answers import read
from workbench.services.asking import Bounds, Service
from workbench.services.openai import OpenAiModel, _Answer

SERVICE = Service(name="the model", url="https://models.example/v1", url_setting="WORKBENCH_LLM_URL")


def completion(answer: Any) -> Completion:
    model = OpenAiModel(SERVICE, Bounds(whole_s=1, attempt_s=1), model="asked", key="", max_tokens=7)
    return model._completion(read(json.dumps(answer).encode(), _Answer, SERVICE))


def choice(content: Any, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **more}, "finish_reason": more.get("end", "stop")}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (choice("hello"), "hello"),
        (choice([{"type": "text", "text": "hel"}, {"type": "x"}, {"type": "text", "text": "lo"}]), "hello"),
        (choice(None, refusal="I cannot"), "I cannot"),
        (choice(None, reasoning_content="hm"), ""),
        (choice("```json\n[1]\n```"), "[1]"),
    ],
)
def test_the_text_is_found_in_every_form(said: dict[str, Any], text: str) -> None:
    assert completion({"choices": [said]}).text == text


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}])
def test_counts_that_are_not_told_are_none(usage: Any) -> None:
    answer = completion({"choices": [choice("x")], "usage": usage, "model": None})
    assert (answer.prompt_tokens, answer.completion_tokens, answer.model) == (0, 0, "asked")


def test_a_model_that_thought_too_long_to_answer_is_told_with_the_setting() -> None:
    with pytest.raises(UpstreamBadAnswer, match="used up 7 tokens before it came to an answer; raise WORKBENCH_LLM"):
        completion({"choices": [choice("", end="length")]})


def test_an_answer_without_a_choice_is_none() -> None:
    with pytest.raises(UpstreamBadAnswer, match="without a choice"):
        completion({"choices": []})


def test_a_refusal_with_a_good_status_is_quoted() -> None:
    with pytest.raises(UpstreamBadAnswer, match=r"another shape .*: Provider returned error; check WORKBENCH_LLM_URL"):
        completion({"error": {"message": "Provider returned error", "code": 502}})


def test_an_answer_of_deep_nesting_is_refused() -> None:
    with pytest.raises(UpstreamBadAnswer):
        read(b'{"x":' * 200_000 + b"1" + b"}" * 200_000, _Answer, SERVICE)
