"""Shapes of answers: what they look like, and nothing of what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.core.router.shapes import added, merged, read, shape_of


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"a": 1, "b": "x", "c": None, "d": 1.5, "e": True}, {"a": "integer", "b": "string", "c": "null", "d": "number",
                                                              "e": "boolean"}),
        ([], []),
        ([{"id": "1"}, {"id": "2", "to": None}], [{"id": "string", "to": "null"}]),
        ({"a": [1, "x"]}, {"a": ["integer|string"]}),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}, {"a": {"b": {"c": {"d": {"e": {"f": "object"}}}}}}),
    ],
)  # fmt: skip
def test_a_value_is_told_by_its_keys_and_kinds(value: Any, shape: Any) -> None:
    assert shape_of(value) == shape


@pytest.mark.parametrize(
    "key",
    [
        "ann@example.com",
        "18c2f5d0a9b1",
        "2026-11-17",
        "user 5",
        "x" * 60,
        "Ünal",
        "",
        "a1b2c3d4",
        "+4912345",
        "key-4711",
    ],
)
def test_a_key_that_could_be_data_is_not_kept(key: str) -> None:
    assert shape_of({"name": "x", key: {"n": 1}}) == {"name": "string", "*": {"n": "integer"}}
    assert key == "" or key not in added("", {"list": [{key: 1}]})


def test_keys_that_are_too_many_to_be_names_are_told_as_one() -> None:
    assert shape_of({f"{chr(97 + n // 26)}{chr(97 + n % 26)}": n for n in range(60)}) == {"*": "integer"}


def test_one_after_the_other_they_become_one() -> None:
    text = ""
    for value in ({"a": 1}, {"a": None, "b": [{"c": 1}]}, {"a": "x", "b": [{"d": 2}]}, {"b": None}):
        text = added(text, value)
    assert json.loads(text) == {"a": "integer|null|string", "b": [{"c": "integer", "d": "integer"}]}


def test_what_is_kept_has_a_bound_whatever_is_answered() -> None:
    def tree(depth: int) -> Any:
        return {f"k{chr(97 + n)}": tree(depth - 1) for n in range(12)} if depth else 1

    text = added("", tree(5))
    assert len(text) <= 8000
    assert len(added(text, tree(5))) <= 8000
    assert read("no JSON") == "object"
    assert merged("object", {"a": "string"}) == {"a": "string"}
