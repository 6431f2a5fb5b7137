"""The suite that every source of tools passes. For the author of the next one:

class TestMySource(ToolSourceContract):
    @pytest.fixture
    def source(self):              # -> one that can be used
        return MySource(...)

    @pytest.fixture
    def session(self):             # -> the record of a session whose user may use it
        return ...

    @pytest.fixture
    def works(self):               # -> slug and arguments of a call that succeeds
        return "MY_TOOL", {"a": 1}
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re

import pytest

from workbench.contracts.tools import ToolSource
from workbench.errors import WorkbenchError
from workbench.model.session import Session
from workbench.model.toolkit import Json, ToolCall, ToolResult

Works = tuple[str, Json]
PATIENCE_S = 60.0
AT_ONCE = 10
_TOOL = re.compile(r"[A-Z0-9][A-Z0-9_]*")
_TOOLKIT = re.compile(r"[a-z0-9][a-z0-9_]*")


class ToolSourceContract:
    """Subclass it, with the fixtures `source`, `session` and `works`."""

    async def test_names_are_of_one_form_and_each_is_there_once(self, source: ToolSource) -> None:
        """They are compared letter by letter."""
        tools = [one.slug for one in await source.tools()]
        toolkits = [one.slug for one in await source.toolkits()]
        assert all(_TOOL.fullmatch(slug) for slug in tools)
        assert all(_TOOLKIT.fullmatch(slug) for slug in toolkits)
        assert (len(set(tools)), len(set(toolkits))) == (len(tools), len(toolkits))

    async def test_every_tool_is_of_one_of_its_toolkits(self, source: ToolSource) -> None:
        """Whoever looks up a tool looks up its toolkit next."""
        assert {one.toolkit for one in await source.tools()} <= {one.slug for one in await source.toolkits()}

    async def test_every_tool_says_what_it_takes_and_gives(self, source: ToolSource) -> None:
        """As a schema of an object, which goes into JSON."""
        for tool in await source.tools():
            assert tool.name
            assert tool.description
            for schema in (tool.input_schema, tool.output_schema):
                assert schema["type"] == "object"
                assert json.loads(json.dumps(schema)) == schema

    async def test_asked_twice_it_tells_the_same(self, source: ToolSource) -> None:
        """Others remember slugs."""
        assert await source.tools() == await source.tools()
        assert await source.toolkits() == await source.toolkits()

    async def test_a_call_is_carried_out(self, source: ToolSource, session: Session, works: Works) -> None:
        """Its data goes into JSON."""
        async with asyncio.timeout(PATIENCE_S):
            result = await source.run(_call(works, session))
        assert isinstance(result, ToolResult)
        assert result.error == ""
        assert json.loads(json.dumps(result.data)) == result.data

    async def test_calls_run_side_by_side(self, source: ToolSource, session: Session, works: Works) -> None:
        """None gets the answer of another, or waits for ever."""
        async with asyncio.timeout(PATIENCE_S):
            results = await asyncio.gather(*(source.run(_call(works, session)) for _ in range(AT_ONCE)))
        assert [one.error for one in results] == [""] * AT_ONCE

    @pytest.mark.parametrize("arguments", [{}, {"no_such_argument": None}, {"messages": 3, "content": 3}])
    async def test_what_cannot_be_carried_out_is_an_error_of_the_tree_or_a_result(
        self, source: ToolSource, session: Session, works: Works, arguments: Json
    ) -> None:
        """Never an error of another kind: whoever asks is not trusted."""
        with contextlib.suppress(WorkbenchError):
            async with asyncio.timeout(PATIENCE_S):
                assert isinstance(await source.run(_call((works[0], arguments), session)), ToolResult)

    async def test_a_tool_that_it_does_not_have_is_an_error(
        self, source: ToolSource, session: Session, works: Works
    ) -> None:
        """And nothing else is done instead."""
        with pytest.raises(WorkbenchError):
            await source.run(_call(("NO_SUCH_TOOL", works[1]), session))


def _call(works: Works, session: Session) -> ToolCall:
    slug, arguments = works
    return ToolCall(slug=slug, arguments=arguments, session=session)
