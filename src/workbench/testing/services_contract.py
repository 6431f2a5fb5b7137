"""The suites that every language model and every web search passes. For the author of the next one:

class TestMyModel(LanguageModelContract):
    @pytest.fixture
    def open_model(self):          # -> a callable that opens one which has something to ask; each test closes its own
        return lambda: MyModel(...)

class TestMySearch(WebSearchContract):
    @pytest.fixture
    def open_search(self):         # -> the same for a search that finds something for SEARCHED
        return lambda: MySearch(...)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from workbench.contracts.services import (
    MOST_FOUND,
    MOST_FOUND_CHARACTERS,
    MOST_SEARCH_CHARACTERS,
    Completion,
    LanguageModel,
    Question,
    WebSearch,
)
from workbench.errors import InvalidRequest

OpenModel = Callable[[], LanguageModel]
OpenSearch = Callable[[], WebSearch]
SEARCHED = "python"
AT_ONCE = 6
# A model on a machine with other things to do thinks for long; none of these questions is hard.
PATIENCE_S = 300.0


class LanguageModelContract:
    """Subclass it, with the fixture `open_model`."""

    @pytest_asyncio.fixture
    async def model(self, open_model: OpenModel) -> AsyncIterator[LanguageModel]:
        """One that is closed afterwards."""
        opened = open_model()
        try:
            yield opened
        finally:
            await opened.aclose()

    async def test_a_question_is_answered(self, model: LanguageModel) -> None:
        """With text, and with what it cost."""
        async with asyncio.timeout(PATIENCE_S):
            answer = await model.complete(Question("Say one word of greeting, and nothing else."))
        assert isinstance(answer, Completion)
        assert answer.text
        assert answer.text == answer.text.strip()
        assert answer.model
        assert answer.prompt_tokens > 0
        assert answer.completion_tokens > 0

    async def test_questions_run_side_by_side(self, model: LanguageModel) -> None:
        """As many sandboxes ask at once."""
        async with asyncio.timeout(PATIENCE_S):
            answers = await asyncio.gather(*(model.complete(Question(f"Say {n}.")) for n in range(AT_ONCE)))
        assert all(one.text for one in answers)

    async def test_one_that_nobody_waits_for_does_not_spoil_the_next(self, model: LanguageModel) -> None:
        """However far it was."""
        async with asyncio.timeout(PATIENCE_S):
            for pause_s in (0.0, 0.02):
                asked = asyncio.ensure_future(model.complete(Question("Count to one hundred.")))
                await asyncio.sleep(pause_s)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            assert (await model.complete(Question("Say one word."))).text

    async def test_it_may_be_closed_twice(self, model: LanguageModel, open_model: OpenModel) -> None:
        """With nothing asked, too."""
        async with asyncio.timeout(PATIENCE_S):
            await model.complete(Question("Say one word."))
        await model.aclose()
        await model.aclose()
        unused = open_model()
        await unused.aclose()
        await unused.aclose()


class WebSearchContract:
    """Subclass it, with the fixture `open_search`."""

    @pytest_asyncio.fixture
    async def search(self, open_search: OpenSearch) -> AsyncIterator[WebSearch]:
        """One that is closed afterwards."""
        opened = open_search()
        try:
            yield opened
        finally:
            await opened.aclose()

    async def test_what_is_found_is_plain_and_bounded(self, search: WebSearch) -> None:
        """And each page is there once."""
        async with asyncio.timeout(PATIENCE_S):
            found = await search.search(SEARCHED)
        assert isinstance(found, tuple)
        assert 0 < len(found) <= MOST_FOUND
        assert len({one.link for one in found}) == len(found)
        for one in found:
            assert one.link.startswith(("http://", "https://"))
            assert one.title
            assert len(one.text) <= MOST_FOUND_CHARACTERS
            for text in (one.title, one.text):
                assert not any(tag in text.lower() for tag in ("<b>", "<strong>", "</", "&amp;", "&#"))
                assert text == " ".join(text.split())
        assert any(one.text for one in found)

    @pytest.mark.parametrize("query", ["", " \n\t", "x" * (MOST_SEARCH_CHARACTERS + 1), "half \ud800"])
    async def test_what_cannot_be_searched_for_is_refused(self, search: WebSearch, query: str) -> None:
        """By us, in words of ours."""
        with pytest.raises(InvalidRequest, match="query"):
            await search.search(query)

    async def test_signs_of_every_kind_are_searched_for(self, search: WebSearch) -> None:
        """Not read as something else on the way."""
        async with asyncio.timeout(PATIENCE_S):
            assert await search.search(f"{SEARCHED} & käse=1 + 100% #x?y \"z\" '\\' 日本 🦆")

    async def test_searches_run_side_by_side(self, search: WebSearch) -> None:
        """As many sandboxes ask at once."""
        async with asyncio.timeout(PATIENCE_S):
            assert all(await asyncio.gather(*(search.search(f"{SEARCHED} {n}") for n in range(AT_ONCE))))

    async def test_one_that_nobody_waits_for_does_not_spoil_the_next(self, search: WebSearch) -> None:
        """However far it was."""
        async with asyncio.timeout(PATIENCE_S):
            for pause_s in (0.0, 0.02):
                asked = asyncio.ensure_future(search.search(SEARCHED))
                await asyncio.sleep(pause_s)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            assert await search.search(SEARCHED)

    async def test_it_may_be_closed_twice(self, search: WebSearch, open_search: OpenSearch) -> None:
        """With nothing searched for, too."""
        async with asyncio.timeout(PATIENCE_S):
            await search.search(SEARCHED)
        await search.aclose()
        await search.aclose()
        unused = open_search()
        await unused.aclose()
        await unused.aclose()
