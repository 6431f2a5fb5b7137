"""What a server says of its tools and answers, in our words; what makes no sense is refused."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest

from workbench.errors import UpstreamBadAnswer
from workbench.toolkits.mcp_tools import MOST_TOOLS, listed, result_of, slug_of, wrong_with_schema

_OBJECT = {"type": "object", "properties": {}}


def _tool(name: str, **more: Any) -> mcp_types.Tool:
    return mcp_types.Tool(name=name, **{"input_schema": _OBJECT, **more})


def _answer(*content: Any, **more: Any) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=list(content), **more)


def _text(text: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=text)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("get-tiny-image", "MY_KIT_GET_TINY_IMAGE"),
        ("getTinyImage", "MY_KIT_GET_TINY_IMAGE"),
        ("my_kit_search", "MY_KIT_SEARCH"),
        ("files/read.all", "MY_KIT_FILES_READ_ALL"),
        ("ünï", "MY_KIT_N"),
        ("x" * 100, "MY_KIT_" + "X" * 53),
    ],
)
def test_names_are_in_capitals_behind_the_name_of_the_toolkit(name: str, slug: str) -> None:
    assert slug_of("my_kit", name) == slug


def test_hints_become_tags_and_what_is_not_said_is_the_worst() -> None:
    hint = mcp_types.ToolAnnotations
    tools = listed(
        "k",
        [
            _tool("a"),
            _tool("b", annotations=hint(read_only_hint=True, destructive_hint=True, open_world_hint=False)),
            _tool("c", annotations=hint(destructive_hint=False, idempotent_hint=True)),
        ],
    ).tools
    assert [one.tags for one in tools] == [
        ("destructiveHint", "openWorldHint"),
        ("readOnlyHint",),
        ("idempotentHint", "openWorldHint"),
    ]


def test_more_tools_than_anybody_needs_are_refused() -> None:
    told = listed("k", [_tool(f"t{number}") for number in range(MOST_TOOLS + 1)])
    assert (len(told.tools), told.refused) == (MOST_TOOLS, {f"t{MOST_TOOLS}": "it is one of too many"})


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "it has the type 'string'"),
        ({}, "it has the type None"),
        ({"type": "object", "properties": {"a": {"type": "strnig"}}}, "'strnig' is not valid"),
        ({"type": "object", "properties": {"a": {"$ref": "http://10.0.0.1/a"}}}, "outside of itself"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json#/a"}}}, "outside of itself"),
        ({"type": "object", "$defs": {"a": [{"$dynamicRef": "file:///etc/passwd"}]}}, "outside of itself"),
        ({"type": "object", "required": ["b"], "additionalProperties": False}, "requires 'b', which it does not take"),
        ({"type": "object", "description": "x" * 300_000}, "more than 256 KiB"),
        (_deep(60), "levels deep"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}, ""),
        (_deep(5), ""),
    ],
)
def test_a_schema_that_cannot_be_worked_with_is_refused(schema: dict[str, Any], words: str) -> None:
    found = wrong_with_schema(schema)
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("answer", "data"),
    [
        (_answer(_text("hello"), _text("world")), {"text": "hello\nworld"}),
        (_answer(_text('{"a": 1}')), {"a": 1}),
        (_answer(_text("[1, 2]")), {"result": [1, 2]}),
        (_answer(_text("[not json")), {"text": "[not json"}),
        (_answer(_text("x"), structured_content={"a": 1}), {"a": 1}),
        (_answer(structured_content=[1]), {"result": [1]}),
        (_answer(), {}),
    ],
)
def test_structured_answers_and_texts_become_data(answer: mcp_types.CallToolResult, data: dict[str, Any]) -> None:
    assert result_of("T", answer, 1000).data == data


def test_an_error_is_its_text() -> None:
    assert result_of("T", _answer(_text("no such file"), is_error=True), 1000).error == "no such file"
    assert result_of("T", _answer(is_error=True), 1000).error == "T failed, and did not say why"


def test_pictures_sounds_and_blobs_become_files() -> None:
    blob = mcp_types.BlobResourceContents(uri="file:///a", blob="YWJj", mime_type="application/pdf")
    result = result_of(
        "T",
        _answer(
            mcp_types.ImageContent(type="image", data="YWJj", mime_type="image/png"),
            mcp_types.AudioContent(type="audio", data="YWJj", mime_type="audio/wav"),
            mcp_types.EmbeddedResource(type="resource", resource=blob),
        ),
        1000,
    )
    assert result.file is not None
    files = (result.file, *result.more_files)
    assert [(one.content_type, one.content) for one in files] == [
        ("image/png", b"abc"),
        ("audio/wav", b"abc"),
        ("application/pdf", b"abc"),
    ]
    assert [one.name.partition(".")[0] for one in files] == ["image_1", "audio_2", "file_3"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_answer(_text("x" * 2000)), "has 2,012 bytes, and 1,000 are taken"),
        (_answer(mcp_types.ImageContent(type="image", data="?!", mime_type="image/png")), "image 1 is no base64"),
        (
            _answer(*[mcp_types.ImageContent(type="image", data="YWJj", mime_type="image/png")] * 21),
            "more than 20 files",
        ),
    ],
)
def test_an_answer_that_cannot_be_used_says_why(answer: mcp_types.CallToolResult, words: str) -> None:
    with pytest.raises(UpstreamBadAnswer) as caught:
        result_of("T", answer, 1000)
    assert words in caught.value.message
