"""The tools that the conformance suite calls by fixed names, made of our own parts."""

from __future__ import annotations

import asyncio
import base64
import re
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from pydantic import Field

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.mcp.answers import Answer, Next
from workbench.mcp.families import Family
from workbench.mcp.resources import FileAddress, read_resource
from workbench.mcp.tool import Arguments, Call, Tool
from workbench.mcp.tools.workbench import BASH
from workbench.mcp.visit import Visit

_BETWEEN_REPORTS_S = 0.05
_HINTS = types.ToolAnnotations(read_only_hint=True)
# What the suite looks for word by word: keywords of JSON Schema that a server may not drop.
_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said(Answer):
    """With content of any kind: ours show text and pictures only."""

    content: tuple[types.ContentBlock, ...] = ()

    def result(self, most_bytes: int) -> types.CallToolResult:
        return types.CallToolResult(content=list(self.content), structured_content=self.structured)


class _RegionArguments(Arguments):
    """With one that is repeated in a header."""

    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})


class _WithSchema(Tool[Arguments]):
    """Lists a schema that is not made of a class."""

    def listed(self) -> types.Tool:
        return types.Tool(name=self.name, description=self.description, input_schema=_SCHEMA)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _png() -> str:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")).decode()


def _wav() -> str:
    """One sample of silence."""
    samples = b"\0\0"
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    whole = b"WAVE" + head + struct.pack("<4sI", b"data", len(samples)) + samples
    return base64.b64encode(struct.pack("<4sI", b"RIFF", len(whole)) + whole).decode()


def _picture() -> types.ImageContent:
    return types.ImageContent(type="image", data=_png(), mime_type="image/png")


def _resource(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    inside = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=inside)


def _says(*content: types.ContentBlock) -> Callable[[Call[Arguments]], Awaitable[Answer]]:
    async def run(_: Call[Arguments]) -> Answer:
        return _Said(structured={}, content=content)

    return run


async def _fails(_: Call[Arguments]) -> Answer:
    raise InvalidRequest("this tool fails on purpose")


async def _reports(call: Call[Arguments]) -> Answer:
    for done in (0, 50, 100):
        if call.visit.on_progress is not None:
            await call.visit.on_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(_BETWEEN_REPORTS_S)
    return _Said(structured={}, content=(_text("done"),))


async def _refused(_: Visit, tool: Tool[Any], given: dict[str, Any], problem: WorkbenchError) -> Answer:
    return Answer(structured={"error": problem.message}, next=Next(tool=tool.name, arguments=given), never_began=True)


def _tool(
    name: str,
    run: Callable[[Call[Arguments]], Awaitable[Answer]],
    kind: type[Tool[Arguments]] = Tool,
    arguments: type[Arguments] = Arguments,
) -> Tool[Arguments]:
    return kind(
        name=name,
        family=Family.WORKBENCH,
        title=name,
        description="Of the conformance suite.",
        arguments=arguments,
        output_schema={"type": "object"},
        annotations=_HINTS,
        run=run,
        refused=_refused,
    )


FIXTURE_TOOLS: tuple[Tool[Any], ...] = (
    _tool("test_simple_text", _says(_text("This is a simple text response for testing."))),
    _tool("test_image_content", _says(_picture())),
    _tool("test_audio_content", _says(types.AudioContent(type="audio", data=_wav(), mime_type="audio/wav"))),
    _tool(
        "test_embedded_resource",
        _says(_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
    ),
    _tool(
        "test_multiple_content_types",
        _says(
            _text("Multiple content types test:"),
            _picture(),
            _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ),
    ),
    _tool("test_error_handling", _fails),
    _tool("test_tool_with_progress", _reports),
    # Writes no log, whether one was asked for or not: that is what is looked for.
    _tool("test_logging_tool", _says(_text("nothing was logged"))),
    # Asks the client for nothing while it runs: that, too, is what is looked for.
    _tool("test_streaming_elicitation", _says(_text("nothing was asked"))),
    _tool("json_schema_2020_12_tool", _says(_text("accepted")), _WithSchema),
    _tool("test_x_mcp_header", _says(_text("accepted")), arguments=_RegionArguments),
)


async def read_fixture(visit: Visit, uri: str, protocol: str) -> types.ReadResourceResult:
    """What the suite reads by a fixed name: a file of the caller's sandbox, by the way that ours are read."""
    file = _file(uri)
    if file is None:
        return await read_resource(visit, uri, protocol)
    path, content = file
    written = await BASH.answer(visit, {"command": f"echo {base64.b64encode(content).decode()} | base64 -d > {path}"})
    assert written.structured["successful"], written.structured
    read = await read_resource(visit, FileAddress(visit.session, path).uri, protocol)
    return read.model_copy(update={"contents": [one.model_copy(update={"uri": uri}) for one in read.contents]})


def _file(uri: str) -> tuple[str, bytes] | None:
    if uri == "test://static-text":
        return "/home/user/static.txt", b"This is the content of the static text resource."
    if uri == "test://static-binary":
        return "/home/user/static.png", base64.b64decode(_png())
    if named := re.fullmatch(r"test://template/(\w+)/data", uri):
        return f"/home/user/{named[1]}.json", f'{{"id":"{named[1]}"}}'.encode()
    return None
