"""Rankings are made once for what a source has, shared by projects, and say how they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.core.router.sources import Source, tool

from workbench.core.router.catalogue import Catalogue
from workbench.core.router.kept_rankings import KeptRankings
from workbench.core.router.ranking import Found, Task
from workbench.errors import NotConfigured
from workbench.model.toolkit import Tool, Toolkit

APP, MORE = Toolkit(slug="app", name="App"), Toolkit(slug="more", name="More")
READ = replace(tool("APP_READ_LETTER", "app"), name="Read letter", description="Read a letter.")
SEND = replace(tool("MORE_SEND_LETTER", "more"), name="Send letter", description="Send a letter.")
OWN = replace(tool("LOCAL_BURN_LETTER", "local"), name="Burn letter", description="Burn a letter.")


class Counting:
    """Compares nothing, and counts what it is given to learn."""

    def __init__(self, why_not: str = "", *, breaks: bool = False) -> None:
        self.learned: list[int] = []
        self.reason = why_not
        self.breaks = breaks

    def why_not(self) -> str:
        return self.reason

    async def of(self, texts: Sequence[str]) -> Counting:
        if self.breaks:
            self.reason = "the model cannot be read"
            raise NotConfigured(self.reason)
        self.learned.append(len(texts))
        self.length = len(texts)
        return self

    async def alike(self, questions: Sequence[str]) -> list[list[float]]:
        return [[0.1] * self.length for _ in questions]


def slugs(found: Sequence[Sequence[Found]]) -> list[list[str]]:
    return [[hit.tool.slug for hit in one] for one in found]


async def test_what_a_source_has_is_ranked_once_for_all_catalogues_that_have_it() -> None:
    meaning = Counting()
    kept = KeptRankings(meaning)
    shared, more = Source((APP,), (READ,)), Source((MORE,), (SEND,))
    tasks = [Task(words="a letter")]
    for _ in range(2):
        entries = await Catalogue([shared]).entries()
        assert slugs(await kept.best(tasks, entries, {READ.slug: READ})) == [["APP_READ_LETTER"]]
    assert meaning.learned == [1]
    entries = await Catalogue([shared, more]).entries()
    both = {READ.slug: READ, SEND.slug: SEND}
    assert slugs(await kept.best(tasks, entries, both)) == [["APP_READ_LETTER", "MORE_SEND_LETTER"]]
    assert meaning.learned == [1, 1]


async def test_tools_of_the_request_are_found_among_the_others_and_not_kept() -> None:
    kept = KeptRankings(None)
    entries = await Catalogue([Source((APP,), (READ,))]).entries()
    allowed: dict[str, Tool] = {READ.slug: READ, OWN.slug: OWN}
    assert slugs(await kept.best([Task(words="burn a letter")], entries, allowed))[0][0] == "LOCAL_BURN_LETTER"
    assert slugs(await kept.best([Task(words="burn a letter")], entries, {READ.slug: READ})) == [[]]


async def test_what_a_session_may_not_use_is_not_found() -> None:
    entries = await Catalogue([Source((APP, MORE), (READ, SEND))]).entries()
    found = await KeptRankings(None).best([Task(words="a letter")], entries, {SEND.slug: SEND})
    assert slugs(found) == [["MORE_SEND_LETTER"]]


@pytest.mark.parametrize(
    ("meaning", "words"),
    [(None, "By the words"), (Counting(), "By meaning"), (Counting("it is not installed"), "alone")],
)
async def test_it_is_said_how_tools_are_found(meaning: Counting | None, words: str) -> None:
    assert words in KeptRankings(meaning).words()


async def test_what_is_missing_is_told_to_who_runs_the_workbench_once(caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptRankings(Counting("it is not installed"))
    assert "installed" not in kept.words() + kept.words()
    assert [one.getMessage() for one in caplog.records] == ["it is not installed"]


async def test_a_model_that_breaks_leaves_the_words(caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptRankings(Counting(breaks=True))
    entries = await Catalogue([Source((APP,), (READ,))]).entries()
    assert slugs(await kept.best([Task(words="a letter")], entries, {READ.slug: READ})) == [["APP_READ_LETTER"]]
    assert kept.words().endswith("alone.")
    assert "cannot be read" in caplog.text


async def test_what_was_made_for_the_session_comes_before_an_equal_of_thousands() -> None:
    entries = await Catalogue([Source((APP,), (READ,))]).entries()
    own = replace(READ, slug="LOCAL_READ_LETTER", toolkit="local")
    found = await KeptRankings(None).best([Task(words="read a letter")], entries, {READ.slug: READ, own.slug: own})
    assert slugs(found) == [["LOCAL_READ_LETTER", "APP_READ_LETTER"]]
