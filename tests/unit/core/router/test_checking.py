"""Arguments against schemas of others: what is wrong is named, and a schema that is made to do harm does none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.core.router.sources import tool

from workbench.core.router.checking import fitting
from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "description": "Whom to."},
        "count": {"type": "integer", "minimum": 1},
        "labels": {"type": "array", "items": {"$ref": "#/$defs/label"}},
        "mode": {"enum": ["fast", "slow"]},
        "body": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["to"],
    "additionalProperties": False,
    "$defs": {"label": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
}


def fit(schema: Json, **arguments: Any) -> Json:
    return fitting(replace(tool("APP_DO", "app"), input_schema=schema), arguments)


@pytest.mark.parametrize(
    ("arguments", "place", "words"),
    [
        ({}, "to", "`to` is missing; it should be: "),
        ({"to": 1}, "to", "`to` has to be a text, not a whole number (1)"),
        ({"to": "x", "count": True}, "count", "`count` has to be a whole number, not true or false"),
        ({"to": "x", "count": 0}, "count", "`count` breaks `minimum` of 1; it is 0"),
        ({"to": "x", "labels": [{"name": "a"}, {}]}, "labels[1].name", "`labels[1].name` is missing"),
        ({"to": "x", "labels": "a"}, "labels", "`labels` has to be a list, not a text"),
        ({"to": "x", "mode": "medium"}, "mode", '`mode` has to be one of "fast", "slow", not "medium"'),
        ({"to": "x", "cc": 1}, "cc", "there is no `cc` here; there are: to, count, labels, mode, body"),
        ({"to": "x", "body": 5}, "body", "`body` is none of the kinds that it may be"),
    ],
)
def test_the_first_that_is_wrong_is_named_with_what_it_should_be(arguments: Json, place: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        fit(SCHEMA, **arguments)
    assert words in caught.value.message
    assert caught.value.context == {"tool": "APP_DO", "argument": place}
    assert "It takes: to (required), count" in caught.value.message
    assert len(caught.value.message) < 1500


def test_what_nobody_filled_in_is_left_out_and_a_null_that_means_something_stays() -> None:
    assert fit(SCHEMA, to="x", count=None, body=None) == {"to": "x", "body": None}
    assert fit({"type": "object"}, anything=None) == {"anything": None}
    with pytest.raises(InvalidRequest, match="`to` is missing"):
        fit(SCHEMA, to=None)


def test_an_argument_that_there_is_not_is_refused_and_not_left_out_on_the_way() -> None:
    schema: Json = {"type": "object", "properties": {"to": {"type": "string"}, "subject": {"type": "string"}}}
    with pytest.raises(InvalidRequest, match="there is no `subjct` here; did you mean `subject`") as caught:
        fit(schema, to="x", subjct="y")
    assert caught.value.context == {"tool": "APP_DO", "argument": "subjct"}
    with pytest.raises(InvalidRequest, match=r"`to` is missing.*\(and there is no `recipient`\)"):
        fit({**schema, "required": ["to"]}, recipient="x")
    # Nobody filled it in.
    assert fit(schema, to="x", other=None) == {"to": "x"}
    wider: tuple[Json, ...] = ({"additionalProperties": {}}, {"allOf": [{"properties": {"b": {}}}]})
    for more in wider:
        assert fit({**schema, **more}, b=1) == {"b": 1}


def test_what_older_descriptions_say_is_understood() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "maximum": 5, "exclusiveMaximum": True},
                                               "a": {"type": "string", "nullable": True}}}  # fmt: skip
    assert fit(schema, n=4.9, a=None) == {"n": 4.9, "a": None}
    with pytest.raises(InvalidRequest, match="maximum"):
        fit(schema, n=5)


def _doubled() -> Json:
    parts: Json = {f"n{n}": {"allOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 4} for n in range(30)}
    return {"$defs": {**parts, "n30": {"type": "object"}}, "$ref": "#/$defs/n0"}


def _deep() -> Json:
    schema: Json = {"type": "string"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"type": "object", "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"type": "object", "propertyNames": {"pattern": "^(a+)+$"}},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/nowhere"},
        {"$ref": 5},
        _doubled(),
        {"type": 5, "properties": [1], "required": 7, "enum": 3, "minimum": "x"},
        {"type": ["object"], "properties": {"a": {"minLength": "x", "maxLength": []}}},
    ],
)
def test_a_schema_that_is_broken_or_hostile_costs_a_moment_and_checks_nothing(schema: Json) -> None:
    properties = schema.get("properties")
    names = properties if isinstance(properties, dict) else ["a", "a" * 40 + "b"]
    arguments = dict.fromkeys(names, "a" * 40 + "b")
    began = time.monotonic()
    assert fit(schema, **arguments) == arguments
    assert time.monotonic() - began < 3


def test_a_schema_that_is_deeper_than_anybody_goes_is_followed_as_far_as_the_arguments_go() -> None:
    assert fit(_deep(), a={"a": {}}) == {"a": {"a": {}}}
    with pytest.raises(InvalidRequest, match="`a` has to be an object, not a text"):
        fit(_deep(), a="x")


def test_a_message_does_not_grow_with_what_was_sent_or_described() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "x" * 5000} for n in range(500)},
    }
    with pytest.raises(InvalidRequest) as caught:
        fit(schema, p1=["y" * 100_000])
    assert len(caught.value.message) < 1500
