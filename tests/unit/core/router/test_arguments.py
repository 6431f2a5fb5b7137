"""Arguments are held against a schema, and the first thing that is wrong is named."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.core.router import meta, offered
from workbench.core.router.arguments import checked
from workbench.errors import InvalidRequest
from workbench.model.toolkit import Tool

TOOL = Tool(
    slug="T",
    name="t",
    description="",
    toolkit="t",
    input_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 3},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "on": {"type": "boolean"},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "rows": {
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "items": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            },
            "free": {},
        },
        "required": ["text"],
    },
)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "`text` is missing"),
        ({"text": None}, "`text` is missing"),
        ({"text": 3}, "`text` has to be a text, not a whole number"),
        ({"text": ""}, "`text` has 0 characters, and 1 to 3 are taken"),
        ({"text": "long"}, "`text` has 4 characters"),
        ({"text": "x", "count": True}, "`count` has to be a whole number, not true or false"),
        ({"text": "x", "count": 1.5}, "`count` has to be a whole number, not a number"),
        ({"text": "x", "on": 1}, "`on` has to be true or false"),
        ({"text": "x", "kind": "c"}, "`kind` has to be one of a, b"),
        ({"text": "x", "rows": []}, "`rows` has 0 entries"),
        ({"text": "x", "rows": [{"id": "1"}] * 3}, "`rows` has 3 entries"),
        ({"text": "x", "rows": [{"id": "1"}, {}]}, "`rows[1].id` is missing"),
        ({"text": "x", "rows": [{"id": None}]}, "`rows[0].id` is missing"),
        ({"text": "x", "rows": [{"id": 2}]}, "`rows[0].id` has to be a text"),
        ({"text": "x", "rows": ["a"]}, "`rows[0]` has to be an object"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        checked(TOOL, given)
    assert words in caught.value.message
    assert "It takes: text, count" in caught.value.message


def test_what_is_right_passes_without_nulls_and_with_what_nobody_knows() -> None:
    given = {
        "text": "x",
        "count": 1,
        "share": 1,
        "on": False,
        "kind": None,
        "rows": [{"id": "1"}],
        "free": [1],
        "new": 1,
    }
    assert checked(TOOL, given) == {name: one for name, one in given.items() if name != "kind"}


@pytest.mark.parametrize("slug", sorted(meta.DESCRIBED))
def test_schemas_of_our_own_tools_use_only_what_is_checked(slug: str) -> None:
    def kinds(schema: Any) -> set[str]:
        if not isinstance(schema, dict):
            return set()
        below = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
        return {schema.get("type", "")} | {kind for one in below for kind in kinds(one)}

    assert kinds(meta.DESCRIBED[slug].input_schema) <= {"", "object", "array", "string", "boolean", "integer", "number"}


def test_every_meta_tool_that_can_be_offered_is_described_or_of_the_sandbox() -> None:
    assert meta.DESCRIBED.keys() | meta.SANDBOX_TOOLS == meta.META_SLUGS
    assert offered.SEARCH_TOOLS in meta.META_SLUGS
