"""What is found in the catalogue, in a time that others do not notice."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.core.router.sources import Source, session, tool
from tests.unit.core.standins import FakeClock

from workbench.core.router.catalogue import Catalogue
from workbench.core.router.searching import Finding
from workbench.model.toolkit import Toolkit

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
    finding = Finding(Catalogue([Source((APP,), (tool("APP_DO", "app"),))]), FakeClock())
    own = tuple(tool(f"LOCAL_{number}", "custom") for number in range(10_000))
    told = await finding.schemas(session(), [f"APP_D{number}" for number in range(50)], ["input_schema"], own)
    assert compared <= 1000
    assert len(told["not_found"]) == 50
    # Tools of the server come first.
    assert told["suggestions"]["APP_D0"][0] == "APP_DO"
