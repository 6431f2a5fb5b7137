"""What is found in the catalogue, in a time that others do not notice."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.core.router.sources import Source, session, tool
from tests.unit.core.standins import FakeClock, WorldRecords

from workbench.core.router.accounts import NoAccounts, Standing
from workbench.core.router.catalogue import Catalogue
from workbench.core.router.searching import Finding, Query
from workbench.model.session import Session
from workbench.model.toolkit import Json, Reach, Tool, Toolkit

APP = Toolkit(slug="app", name="App", no_auth=True)


async def test_many_unknown_names_among_many_tools_of_the_clients_are_few_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    really = difflib.get_close_matches

    def counted(word: str, possibilities: Sequence[str], **more: Any) -> list[str]:
        nonlocal compared
        compared += len(possibilities)
        return really(word, possibilities, **more)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    catalogue = Catalogue([Source((APP,), (tool("APP_DO", "app"),))])
    finding = Finding(catalogue, FakeClock(), NoAccounts(), WorldRecords().tools)
    own = tuple(tool(f"LOCAL_{number}", "custom") for number in range(10_000))
    told = await finding.schemas(session(), [f"APP_D{number}" for number in range(50)], ["input_schema"], own)
    assert compared <= 1000
    assert len(told["not_found"]) == 50
    # Tools of the server come first.
    assert told["suggestions"]["APP_D0"][0] == "APP_DO"


class _Connected(NoAccounts):
    """The user has accounts of these."""

    def __init__(self, *slugs: str) -> None:
        self._slugs = slugs

    async def standing(self, session: Session, toolkit: Toolkit) -> Standing:
        return Standing(reach=Reach(toolkit=toolkit.slug, is_active=toolkit.slug in self._slugs, words=""))


def _described(slug: str, words: str, schema: Json | None = None) -> Tool:
    toolkit = slug.split("_")[0].lower()
    takes = schema or {"type": "object", "properties": {"to": {"type": "string"}}}
    return replace(tool(slug, toolkit), description=words, input_schema=takes, output_schema={"type": "object"})


async def _found(tools: Sequence[Tool], *use_cases: str, connected: Sequence[str] = ()) -> Json:
    slugs = sorted({one.toolkit for one in tools})
    toolkits = tuple(Toolkit(slug=slug, name=slug.title()) for slug in slugs)
    finding = Finding(
        Catalogue([Source(toolkits, tuple(tools))]), FakeClock(), _Connected(*connected), WorldRecords().tools
    )
    return await finding.search(session(), [Query(use_case=one) for one in use_cases])


async def test_of_tools_that_fit_alike_those_that_can_be_used_come_first_and_nobody_connects_the_others() -> None:
    tools = [_described(f"{name}_SEND_LETTER", "Send a letter to somebody.") for name in ("ALPHA", "BETA", "GAMMA")]
    told = await _found(tools, "send a letter", connected=["gamma"])
    assert told["results"][0]["primary_tool_slugs"][0] == "GAMMA_SEND_LETTER"
    assert not any("MANAGE_CONNECTIONS" in step for step in told["next_steps_guidance"])
    alone = await _found(tools, "send a letter")
    first = alone["results"][0]["primary_tool_slugs"][0].split("_")[0].lower()
    assert f"toolkits=['{first}']" in alone["next_steps_guidance"][0]


async def test_schemas_of_the_best_are_told_and_those_of_the_others_on_request() -> None:
    wide: Json = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "x" * 90} for n in range(80)},
    }
    tools = [_described(f"APP_SEND_LETTER_{n}", "Send a letter. " + "y" * 800, wide) for n in range(12)]
    told = await _found(tools, "send a letter", "send a letter in April")
    schemas = told["tool_schemas"]
    assert len(json.dumps(schemas)) < 40_000
    assert schemas[told["results"][0]["primary_tool_slugs"][0]]["input_schema"] == wide
    related = told["results"][0]["related_tool_slugs"]
    assert related
    for slug in related:
        if not schemas[slug]["hasFullSchema"]:
            assert schemas[slug]["schemaRef"]["args"] == {"tool_slugs": [slug]}
            assert len(schemas[slug]["description"]) <= 240
    assert any("schemaRef" in step for step in told["next_steps_guidance"])
