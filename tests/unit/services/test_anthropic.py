"""Answers of those who speak Anthropic's messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.contracts.services import Completion
from workbench.errors import UpstreamBadAnswer
from workbench.services.answers import read
from workbench.services.anthropic import AnthropicModel, _Answer
from workbench.services.asking import Bounds, Service

SERVICE = Service(name="the model", url="https://models.example", url_setting="WORKBENCH_LLM_URL")


def completion(answer: Any) -> Completion:
    model = AnthropicModel(SERVICE, Bounds(whole_s=1, attempt_s=1), model="asked", key="k", max_tokens=7)
    return model._completion(read(json.dumps(answer).encode(), _Answer, SERVICE))


def test_only_what_is_said_is_the_answer() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s", "text": "not this"},
        {"type": "text", "text": "```\nhel"},
        {"type": "tool_use", "id": "1", "name": "x", "input": {}},
        {"type": "text", "text": "lo\n```"},
        {"type": "text", "text": None},
    ]
    assert completion({"content": blocks}).text == "hello"


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input_tokens": 3, "output_tokens": 4}, (3, 4)),
        (
            {
                "input_tokens": 3,
                "output_tokens": 4,
                "cache_read_input_tokens": 10,
                "cache_creation_input_tokens": 100,
            },
            (113, 4),
        ),
        ({"input_tokens": 3, "output_tokens": None, "cache_read_input_tokens": None}, (3, 0)),
        (None, (0, 0)),
    ],
)
def test_tokens_are_counted_with_what_was_read_before(usage: Any, counts: tuple[int, int]) -> None:
    answer = completion({"content": [{"type": "text", "text": "x"}], "usage": usage})
    assert (answer.prompt_tokens, answer.completion_tokens) == counts


def test_a_model_that_thought_too_long_to_answer_is_told_with_the_setting() -> None:
    with pytest.raises(UpstreamBadAnswer, match="used up 7 tokens before it came to an answer; raise WORKBENCH_LLM"):
        completion({"content": [], "stop_reason": "max_tokens"})
