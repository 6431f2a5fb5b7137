"""The six tools as a client sees them, compared with the table that their users know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import pytest
from jsonschema import Draft202012Validator
from tests.mcp.conftest import Connect

from workbench.mcp.families import Family

EVERY_FAILURE = {"success", "error", "hint", "sessions", "next"}
ROW = {"source", "destination", "success", "size", "error"}


@dataclass(frozen=True)
class Known:
    """One row of the table."""

    required: set[str]
    defaults: dict[str, Any]
    answer: set[str]
    each_file: set[str] = field(default_factory=set)
    each_row: set[str] = field(default_factory=set)


TABLE = {
    "create_session": Known(
        required=set(),
        defaults={"language": "python", "dependencies": {}},
        answer={"success", "session_id", "runtime", "status", "dependencies", "stderr"},
    ),
    "execute_code": Known(
        required={"session_id", "code"},
        defaults={"timeout": 30},
        answer={"success", "stdout", "stderr", "result", "error", "display_outputs"},
    ),
    "execute_terminal": Known(
        required={"session_id", "command"}, defaults={}, answer={"stdout", "stderr", "exit_code"}
    ),
    "import_files": Known(
        required={"session_id", "files"},
        defaults={},
        answer={"files"},
        each_file={"file_name", "file_content", "encoding", "source", "destination"},
        each_row=ROW,
    ),
    "export_files": Known(
        required={"session_id", "files"},
        defaults={},
        answer={"files"},
        each_file={"source", "destination"},
        each_row=ROW | {"uri", "download_url", "expires_at"},
    ),
    "stop_session": Known(required={"session_id"}, defaults={}, answer={"success"}),
}


async def _listed(connect: Connect) -> dict[str, types.Tool]:
    async with connect(Family.SANDBOX) as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}


async def test_there_are_these_six_and_no_others(connect: Connect) -> None:
    assert set(await _listed(connect)) == set(TABLE)


@pytest.mark.parametrize("name", TABLE)
async def test_arguments_are_those_of_the_table(connect: Connect, name: str) -> None:
    schema, known = (await _listed(connect))[name].input_schema, TABLE[name]
    assert set(schema["properties"]) == known.required | set(known.defaults)
    assert set(schema.get("required", [])) == known.required
    told = {key: one["default"] for key, one in schema["properties"].items() if "default" in one}
    assert told == known.defaults


@pytest.mark.parametrize("name", TABLE)
async def test_answers_have_the_fields_of_the_table_and_those_of_a_failure(connect: Connect, name: str) -> None:
    schema = (await _listed(connect))[name].output_schema
    assert schema is not None
    assert set(schema["properties"]) == TABLE[name].answer | EVERY_FAILURE
    assert schema["required"] == ["success"]
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", ["import_files", "export_files"])
async def test_files_have_the_fields_of_the_table(connect: Connect, name: str) -> None:
    tool, known = (await _listed(connect))[name], TABLE[name]
    asked = tool.input_schema["properties"]["files"]["items"]["$ref"].rsplit("/", 1)[-1]
    assert set(tool.input_schema["$defs"][asked]["properties"]) == known.each_file
    assert tool.output_schema is not None
    assert set(tool.output_schema["properties"]["files"]["items"]["properties"]) == known.each_row


async def test_a_timeout_is_at_most_300_seconds_and_languages_and_encodings_are_named(connect: Connect) -> None:
    listed = await _listed(connect)
    assert listed["execute_code"].input_schema["properties"]["timeout"]["maximum"] == 300
    assert listed["create_session"].input_schema["properties"]["language"]["examples"] == ["python", "node", "r"]
    imported = listed["import_files"].input_schema["$defs"]["ImportedFile"]["properties"]
    assert imported["encoding"]["enum"] == ["text", "base64"]


async def test_every_parameter_is_described(connect: Connect) -> None:
    for tool in (await _listed(connect)).values():
        shapes = [tool.input_schema, *tool.input_schema.get("$defs", {}).values()]
        for name, one in [item for shape in shapes for item in shape["properties"].items()]:
            assert one.get("description"), f"{tool.name}: {name}"


async def test_every_tool_says_when_to_use_it_and_when_not(connect: Connect) -> None:
    for tool in (await _listed(connect)).values():
        said = tool.description or ""
        assert "Use it" in said or "Call it" in said, tool.name
        assert "Not " in said or "execute_terminal" in said, tool.name
        assert tool.annotations is not None
