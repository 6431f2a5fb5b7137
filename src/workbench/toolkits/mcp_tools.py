"""What an MCP server says of its tools and answers, in our words. Servers are not believed: what makes no sense is
refused tool by tool, with the reason.
"""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import mcp_types
import referencing
from jsonschema.validators import validator_for

from workbench.errors import UpstreamBadAnswer
from workbench.model.toolkit import Json, ReturnedFile, Tool, ToolResult

MOST_TOOLS = 1000
_MOST_SLUG, _MOST_DESCRIPTION = 60, 4000
_MOST_SCHEMA, _DEEPEST = 256 * 1024, 40
# Objects within one schema, and within those of all tools: to look at one of them takes half a millisecond.
_MOST_OBJECTS, _MOST_OBJECTS_IN_ALL = 3_000, 20_000
# Keywords that are looked at when an answer is held against its schema.
_MOST_STEPS = 5_000
# BARRIER: an expression can be made to take for ever, and nobody can stop it; held by
# tests/toolkits/test_hostile_servers.py. The others look at the same things again and again.
_LEFT_OUT = ("pattern", "patternProperties", "propertyNames", "format", "uniqueItems", "$dynamicRef",
             "unevaluatedProperties", "unevaluatedItems", "contentMediaType", "contentEncoding")  # fmt: skip
_MOST_FILES = 20
_MOST_BROKEN = 300
_NOT_IN_SLUGS = re.compile(r"[^A-Z0-9]+")
_ANY_OBJECT: Json = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Listed:
    """The tools of a server, with the names that it knows them by; and those that are refused, with the reason."""

    tools: tuple[Tool, ...]
    names: dict[str, str]
    refused: dict[str, str]
    promises: dict[str, Json] = field(default_factory=dict)
    """what answers are like, of those that say so"""


def listed(toolkit: str, told: Iterable[mcp_types.Tool]) -> Listed:
    """Those that can be used. It may take some seconds, and is for a thread."""
    tools: dict[str, Tool] = {}
    names: dict[str, str] = {}
    refused: dict[str, str] = {}
    promises: dict[str, Json] = {}
    room = _MOST_OBJECTS_IN_ALL
    for number, one in enumerate(told):
        # BARRIER: schemas without an end would hold up everybody for hours; held by
        # tests/toolkits/test_hostile_servers.py.
        size = _objects(one.input_schema) + _objects(one.output_schema or {})
        is_left = number < MOST_TOOLS and (size <= room or size > 2 * _MOST_OBJECTS)
        why = wrong_with(one) if is_left else "it is one of too many"
        if why:
            refused[one.name[:_MOST_SLUG]] = why
            continue
        room -= size
        slug = _free(slug_of(toolkit, one.name), tools)
        tools[slug] = _tool(slug, toolkit, one)
        names[slug] = one.name
        if one.output_schema is not None:
            promises[slug] = one.output_schema
    return Listed(tuple(tools.values()), names, refused, promises)


def slug_of(toolkit: str, name: str) -> str:
    """`<TOOLKIT>_<TOOL>`; a tool that begins with the name of its toolkit has it once."""
    before = _NOT_IN_SLUGS.sub("_", toolkit.upper())
    words = _NOT_IN_SLUGS.sub("_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()).strip("_")
    whole = words if words.startswith(f"{before}_") else f"{before}_{words}"
    return whole[:_MOST_SLUG].rstrip("_")


def _free(slug: str, taken: dict[str, Tool]) -> str:
    number, free = 1, slug
    while free in taken:
        number += 1
        free = f"{slug[: _MOST_SLUG - 4]}_{number}"
    return free


def wrong_with(tool: mcp_types.Tool) -> str:
    """Why it cannot be used; empty if it can."""
    if not _NOT_IN_SLUGS.sub("", tool.name.upper()):
        return "its name has no letter and no digit"
    if wrong := wrong_with_schema(tool.input_schema):
        return f"its input schema is broken: {wrong}"
    if tool.output_schema is not None and (wrong := wrong_with_schema(tool.output_schema)):
        return f"its output schema is broken: {wrong}"
    return ""


def wrong_with_schema(schema: Json) -> str:
    """Why it is no schema of an object that can be worked with; empty if it is."""
    if schema.get("type") != "object":
        return f"it has the type {schema.get('type')!r}, and arguments are an object"
    if _depth(schema) > _DEEPEST:
        return f"it is more than {_DEEPEST} levels deep"
    if len(json.dumps(schema)) > _MOST_SCHEMA:
        return f"it has more than {_MOST_SCHEMA // 1024} KiB"
    if _objects(schema) > _MOST_OBJECTS:
        return f"it has more than {_MOST_OBJECTS:,} objects within"
    for reference in _references(schema):
        # BARRIER: who checks arguments would fetch it from wherever it lies; held by
        # tests/unit/toolkits/test_mcp_tools.py.
        if not reference.startswith("#"):
            return f"it refers to {reference[:100]!r}, outside of itself"
    try:
        validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as problem:
        where = "/".join(map(str, problem.absolute_path))
        return f"{problem.message[:200]}{f' (at {where})' if where else ''}"
    unknown = [name for name in schema.get("required", ()) if name not in schema.get("properties", {})]
    if unknown and schema.get("additionalProperties") is False:
        return f"it requires {unknown[0]!r}, which it does not take"
    return ""


def _objects(value: Any) -> int:
    found, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            found += 1
            left += one.values()
        elif isinstance(one, list):
            left += one
    return found


def _depth(value: Any) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        one, depth = left.pop()
        deepest = max(deepest, depth)
        if depth > _DEEPEST:
            return depth
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left += [(each, depth + 1) for each in inner]
    return deepest


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield inner
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _tool(slug: str, toolkit: str, told: mcp_types.Tool) -> Tool:
    hints = told.annotations
    title = told.title or (hints.title if hints else None) or told.name
    return Tool(
        slug=slug,
        name=title[:200],
        description=(told.description or title)[:_MOST_DESCRIPTION],
        toolkit=toolkit,
        input_schema={"properties": {}, **told.input_schema},
        output_schema=told.output_schema or _ANY_OBJECT,
        tags=_tags(hints),
        no_auth=True,
    )


def _tags(hints: mcp_types.ToolAnnotations | None) -> tuple[str, ...]:
    """What it does not say is what the protocol takes it for: it writes, destroys, and reaches outside."""
    told = hints or mcp_types.ToolAnnotations()
    if told.read_only_hint:
        found = ["readOnlyHint"]
    else:
        found = [] if told.destructive_hint is False else ["destructiveHint"]
        found += ["idempotentHint"] if told.idempotent_hint else []
    return (*found, *(() if told.open_world_hint is False else ("openWorldHint",)))


class _TooMuch(Exception):
    """More steps than anybody's answer needs."""


def breaks(promise: Json, answer: mcp_types.CallToolResult) -> str:
    """How an answer is not what its tool promises; empty if it is, or if nobody can tell in a bounded time."""
    if answer.is_error:
        return ""
    if answer.structured_content is None:
        return "it has no structured content"
    # Nothing is ever fetched: a registry without anybody who could.
    checker = _bounded_checker()(promise, registry=referencing.Registry())
    try:
        error = next(checker.iter_errors(answer.structured_content), None)
    except (_TooMuch, RecursionError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
        return ""
    except referencing.exceptions.Unresolvable:
        return ""
    return "" if error is None else str(error.message)[:_MOST_BROKEN]


def _bounded_checker() -> Any:
    usual = jsonschema.Draft202012Validator
    left = _MOST_STEPS

    def counted(name: str, check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterator[Any]]:
        def one(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            nonlocal left
            left -= 1
            if left < 0:
                raise _TooMuch
            if name == "additionalProperties" and "patternProperties" in schema:
                return
            yield from check(validator, value, instance, schema) or ()

        return one

    keywords = {name: counted(name, check) for name, check in usual.VALIDATORS.items() if name not in _LEFT_OUT}
    return jsonschema.validators.create(meta_schema={}, validators=keywords, type_checker=usual.TYPE_CHECKER)


def result_of(name: str, answer: mcp_types.CallToolResult, most_bytes: int) -> ToolResult:
    """What a call came to: structured data if there is some, else the text, and pictures as files.

    Raises:
        UpstreamBadAnswer: it is too large, or something in it cannot be read.
    """
    text = "\n".join(_texts(answer.content))
    files = tuple(_files(answer.content))
    data = _data(answer, text)
    links = [_link(one) for one in answer.content if isinstance(one, mcp_types.ResourceLink)]
    if links:
        data = {**data, "links": links}
    size = len(json.dumps(data, ensure_ascii=False)) + sum(len(one.content) for one in files)
    if size > most_bytes:
        raise UpstreamBadAnswer(
            f"the answer of {name} has {size:,} bytes, and {most_bytes:,} are taken; ask it for less at a time"
        )
    error = (text.strip() or f"{name} failed, and did not say why")[:_MOST_DESCRIPTION] if answer.is_error else ""
    return ToolResult(
        data=data, error=error, file=files[0] if files else None, more_files=files[1:] if len(files) > 1 else ()
    )


def _data(answer: mcp_types.CallToolResult, text: str) -> Json:
    structured = answer.structured_content
    if structured is not None:
        return structured if isinstance(structured, dict) else {"result": structured}
    if text.lstrip()[:1] in ("{", "["):
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return {"text": text}
        return read if isinstance(read, dict) else {"result": read}
    return {"text": text} if text else {}


def _texts(content: Iterable[mcp_types.ContentBlock]) -> Iterable[str]:
    for one in content:
        if isinstance(one, mcp_types.TextContent):
            yield one.text
        elif isinstance(one, mcp_types.EmbeddedResource) and isinstance(one.resource, mcp_types.TextResourceContents):
            yield one.resource.text


def _files(content: Iterable[mcp_types.ContentBlock]) -> Iterable[ReturnedFile]:
    number = 0
    name: str
    for one in content:
        if isinstance(one, mcp_types.ImageContent | mcp_types.AudioContent):
            kind, data, name = one.mime_type, one.data, one.type
        elif isinstance(one, mcp_types.EmbeddedResource) and isinstance(one.resource, mcp_types.BlobResourceContents):
            kind, data, name = one.resource.mime_type or "", one.resource.blob, "file"
        else:
            continue
        number += 1
        if number > _MOST_FILES:
            raise UpstreamBadAnswer(f"it has more than {_MOST_FILES} files in one answer")
        yield _file(name, number, kind, data)


def _file(name: str, number: int, kind: str, data: str) -> ReturnedFile:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise UpstreamBadAnswer(f"its {name} {number} is no base64") from None
    ending = mimetypes.guess_extension(kind.partition(";")[0].strip()) or ".bin"
    return ReturnedFile(
        name=f"{name}_{number}{ending}", content_type=kind or "application/octet-stream", content=content
    )


def _link(one: mcp_types.ResourceLink) -> Json:
    told = {"uri": str(one.uri), "name": one.name, "description": one.description, "mimetype": one.mime_type}
    return {name: value for name, value in told.items() if value is not None}
