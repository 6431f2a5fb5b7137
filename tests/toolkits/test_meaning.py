"""The model with its real weights: meanings as its authors publish them, and tools that nobody has seen before."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from bench.search import ranking_of, shipped

from workbench.contracts.search import Meaning
from workbench.core.router.ranking import Found, Task
from workbench.toolkits.meaning.kept import KeptVectors
from workbench.toolkits.meaning.sentences import SHIPPED, Sentences

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def slugs(found: Sequence[Found]) -> list[str]:
    return [one.tool.slug for one in found]


@pytest.fixture
async def sentences() -> AsyncIterator[Sentences]:
    made = Sentences()
    assert made.why_not() == "", made.why_not()
    yield made
    await made.aclose()


async def test_sentences_are_as_alike_as_the_authors_of_the_model_say(sentences: Meaning) -> None:
    known = await sentences.of(["That is a happy dog", "That is a very happy person", "Today is a sunny day"])
    seen = (await known.alike(["That is a happy person"]))[0]
    assert seen == pytest.approx([0.6945, 0.9429, 0.2569], abs=0.01)


async def test_questions_of_any_kind_have_an_answer(sentences: Meaning) -> None:
    known = await sentences.of(["send an email"])
    seen = await known.alike(["", "\0", "ü" * 100_000, "送信 🎉"])
    assert [len(row) for row in seen] == [1] * 4
    assert all(math.isfinite(row[0]) for row in seen)


async def test_a_question_that_comes_again_is_answered_as_before_and_few_are_kept(sentences: Sentences) -> None:
    known = await sentences.of(["send an email", "delete a file"])
    first = await known.alike(["write to a friend"])
    many = await known.alike([f"question {number}" for number in range(100)] * 2)
    assert len(many) == 200
    assert many[:100] == many[100:]
    assert await known.alike(["write to a friend"]) == first
    assert len(sentences._questions) <= 64


async def test_every_shipped_tool_has_its_vector() -> None:
    async with shipped() as entries:
        texts = ranking_of(entries).sentences()
    lacking = [text for text, place in zip(texts, KeptVectors.read(SHIPPED).places(texts), strict=True) if place < 0]
    assert not lacking, f"run scripts/embed-toolkits: {len(lacking)} tools have other words now, as {lacking[0]!r}"


async def test_vectors_that_were_kept_are_those_that_the_model_makes(sentences: Sentences) -> None:
    async with shipped() as entries:
        texts = ranking_of(entries).sentences()[::500]
    apart = Sentences(shipped=Path("/nonexistent"))
    kept, made = await sentences.of(texts), await apart.of(texts)
    one, other = await kept.alike(["write to a friend"]), await made.alike(["write to a friend"])
    await apart.aclose()
    assert one[0] == pytest.approx(other[0], abs=0.02)


async def test_tools_that_are_new_are_learned_while_others_are_found_already() -> None:
    apart = Sentences(shipped=Path("/nonexistent"))
    known = await apart.of([f"tool that does {number} things with letters" for number in range(1000)])
    first = (await known.alike(["letters"]))[0]
    assert any(math.isnan(value) for value in first)
    # The end does not wait for the thousand.
    async with asyncio.timeout(10):
        await apart.aclose()


async def test_what_was_learned_once_is_known_the_next_time(sentences: Sentences) -> None:
    texts = [f"brew coffee of kind {number}" for number in range(40)]
    async with asyncio.timeout(120):
        while any(math.isnan(value) for value in (await (await sentences.of(texts)).alike(["coffee"]))[0]):
            pass
    again = await sentences.of(texts[::-1])
    assert not [value for value in (await again.alike(["coffee"]))[0] if math.isnan(value)]


async def test_searches_side_by_side_are_those_one_after_the_other(sentences: Sentences) -> None:
    async with shipped() as entries:
        ranking = ranking_of(entries)
        await ranking.learn(sentences)
        tasks = [Task(words=words) for words in ("send an email", "open an issue on github", "refund a payment")]
        alone = [slugs((await ranking.best([task], 5))[0]) for task in tasks]
        beside = await asyncio.gather(*(ranking.best([task], 5) for task in tasks * 5))
        together = await ranking.best(tasks, 5)
    assert [slugs(one[0]) for one in beside] == alone * 5
    assert [slugs(one) for one in together] == alone
