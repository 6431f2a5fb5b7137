"""The archive of compiled toolkits: what goes in comes out, and the same goes in as the same bytes."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from workbench.model.toolkit import AuthField, AuthKind, AuthScheme, OAuthEndpoints, Tool, Toolkit
from workbench.toolkits.operations import (
    Body,
    BodyField,
    BodyKind,
    CompiledTool,
    CompiledToolkit,
    Media,
    Operation,
    Parameter,
)
from workbench.toolkits.shipped.packing import Packed, pack

LONG = {"type": "object", "properties": {"street": {"type": "string", "description": "where " * 30}}}
ODD = {"type": "object", "properties": {"$": {"type": "integer"}, "line": {"enum": ["a\nb", "\u2028", "ü"]}}}


def tool(slug: str, schema: dict[str, Any]) -> CompiledTool:
    return CompiledTool(
        tool=Tool(
            slug=slug,
            name=slug.title(),
            description=f"Does {slug}.",
            toolkit="shop",
            input_schema=schema,
            output_schema={"type": "object", "properties": {"home": LONG}},
            tags=("openWorldHint", "readOnlyHint"),
            scopes=("b", "a"),
            version="20260101_00",
        ),
        operation=Operation(
            method="POST",
            base_url="https://{subdomain}.example.com",
            path="/a/{id}",
            parameters=(
                Parameter(name="id", place="path", required=True),
                Parameter(name="v", place="header", fixed="1"),
            ),
            body=Body(
                kind=BodyKind.MULTIPART, fields=(BodyField(name="f", is_file=True, argument="file"),), required=True
            ),
            media=Media(path="/upload/{id}", argument="file"),
            idempotency_header="Idempotency-Key",
        ),
    )


def shop() -> CompiledToolkit:
    oauth = OAuthEndpoints(authorize_url="https://a", token_url="https://t", scopes=("x",), extra={"k": "v"})
    auth = (
        AuthScheme(kind=AuthKind.OAUTH2, prefix="Bearer ", oauth=oauth),
        AuthScheme(kind=AuthKind.BASIC, fields=(AuthField(name="username", label="U", is_secret=False),)),
    )
    toolkit = Toolkit(slug="shop", name="Shop", hosts=("*.example.com",), auth=auth, base_url="https://x.example.com")
    schemas = [{"type": "object", "properties": {"from": LONG, "to": LONG}}, LONG, LONG, ODD]
    return CompiledToolkit(
        toolkit=toolkit, tools=tuple(tool(f"SHOP_T{number}", one) for number, one in enumerate(schemas))
    )


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    (tmp_path / "c.zip").write_bytes(pack([shop()]))
    return Packed(tmp_path / "c.zip")


def test_what_went_in_comes_out(packed: Packed) -> None:
    given = shop()
    assert packed.toolkits == (given.toolkit,)
    for one, found in zip(given.tools, packed.tools, strict=True):
        assert dataclasses.asdict(found) == dataclasses.asdict(one.tool)
        assert packed.operation(found.slug) == one.operation


def test_the_same_tools_are_the_same_bytes() -> None:
    assert pack([shop()]) == pack([shop()])


def test_a_changed_copy_of_a_tool_keeps_the_rest(packed: Packed) -> None:
    tool = packed.tools[0]
    copy = dataclasses.replace(tool, description="Other.")
    assert (copy.description, copy.slug, copy.input_schema) == ("Other.", tool.slug, tool.input_schema)
    assert packed.tools == packed.tools
    assert "input_schema" not in repr(tool)


def test_several_threads_may_ask_at_once(packed: Packed) -> None:
    found: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: found.append(packed.tools[0].input_schema)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(10)
    assert found == [shop().tools[0].tool.input_schema] * 8


def test_there_is_no_operation_of_an_unknown_tool(packed: Packed) -> None:
    with pytest.raises(KeyError):
        packed.operation("SHOP_NO")
