"""What is left of an answer."""

from __future__ import annotations

import time

import pytest

from workbench.services.fences import unfenced


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain", "plain"),
        ("  around \n", "around"),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('\n ```json\r\n{"a": 1}\r\n``` \n', '{"a": 1}'),
        ("```\ncode\n  more\n```", "code\n  more"),
        ("```c++\nint x;\n```", "int x;"),
        ('```json {"a": 1}```', '{"a": 1}'),
        ("```hello```", "hello"),
        ("```two words\nmore```", "two words\nmore"),
        ('json\n{"a": 1}', '{"a": 1}'),
        ("JSON [1]", "[1]"),
        ("json is a format", "json is a format"),
        ("jsonify({})", "jsonify({})"),
        ("Here:\n```py\nx\n```", "Here:\n```py\nx\n```"),
        ("```py\na\n```\nand\n```py\nb\n```", "```py\na\n```\nand\n```py\nb\n```"),
        ("```", "```"),
        ("``````", ""),
        ("", ""),
    ],
)
def test_one_fence_and_a_leading_json_are_taken_off(text: str, left: str) -> None:
    assert unfenced(text) == left


@pytest.mark.parametrize(
    "text", ["```" + " " * 400_000 + "x", "`" * 400_000, "json" + " " * 400_000, "```json" * 60_000]
)
def test_no_answer_takes_long(text: str) -> None:
    began = time.process_time()
    unfenced(text)
    assert time.process_time() - began < 1.0
