"""Tools that do the same by two names: what is said of one holds for the other."""

from __future__ import annotations

import types
from collections.abc import Iterator

from tests.toolkits.service import calling

from workbench.model.toolkit import Tool
from workbench.toolkits.shipped.adapted.alike import ALIKE
from workbench.toolkits.shipped.source import ADAPTATIONS, ShippedTools

# What only leads to what a tool does.
_ON_THE_WAY = {
    ("GMAIL_REPLY_TO_THREAD", "GMAIL_USERS_THREADS_GET"),
    ("GOOGLEDOCS_CREATE_DOCUMENT", "GOOGLEDOCS_UPDATE_EXISTING_DOCUMENT"),
    ("GOOGLESHEETS_LOOKUP_SPREADSHEET_ROW", "GOOGLESHEETS_SPREADSHEETS_GET"),
    ("NOTION_QUERY_DATABASE", "NOTION_RETRIEVE_A_DATABASE"),
}


async def _shipped() -> dict[str, Tool]:
    async with calling() as caller:
        return {one.slug: one for one in await ShippedTools(caller).tools()}


async def test_every_tool_that_stands_on_others_says_which() -> None:
    tools = await _shipped()
    generated = set(tools) - set(ADAPTATIONS)
    for slug, adaptation in ADAPTATIONS.items():
        steps = {one for one in _words(adaptation.run) if one in generated}
        meant = {one for one in steps if (slug, one) not in _ON_THE_WAY}
        assert steps, slug
        assert set(tools[slug].acts_as) == meant, slug
        assert all(slug in tools[one].acts_as for one in meant)
    assert set(ALIKE) <= set(tools)


def _words(function: types.FunctionType | object) -> Iterator[str]:
    """All texts that a function and those that it calls here have in them."""
    seen: set[int] = set()
    left: list[object] = [function]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, str):
            yield one
        elif isinstance(one, types.CodeType):
            left += one.co_consts
        elif isinstance(one, types.FunctionType) and ".adapted." in one.__module__:
            left += [one.__code__, *(cell.cell_contents for cell in one.__closure__ or ())]
            left += [one.__globals__.get(name) for name in _names(one.__code__)]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)
