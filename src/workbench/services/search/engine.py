"""Engine: how one search engine is asked and read. SearchByEngine does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workbench.contracts.services import (
    MOST_FOUND,
    MOST_FOUND_CHARACTERS,
    MOST_SEARCH_CHARACTERS,
    Found,
    check_query,
)
from workbench.services.asking import Ask, Asking, Bounds, Service
from workbench.services.plain_text import plain_text, shortened, without_tags

_MOST_TITLE_CHARACTERS = 300
# A page's own markup comes along in some texts, and what is not shown need not be read.
_MOST_MARKUP_CHARACTERS = 10 * MOST_FOUND_CHARACTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A search, and where it goes."""

    query: str
    url: str
    """where the addresses of the engine begin"""
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What an engine found, as it says it."""

    title: str | None
    link: str | None
    text: str | None
    is_markup: bool = False
    """title and text are HTML; else they are text, in which `vector<int>` is no tag"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One that can be chosen."""

    name: str
    url: str
    """where it is unless it is told; empty if that has to be told"""
    needs_key: bool
    ask: Callable[[Wanted], Ask]
    pages: Callable[[bytes, Service], Iterable[Page]]
    """raises UpstreamError"""
    most_characters: int = MOST_SEARCH_CHARACTERS
    """of what is searched for"""


class SearchByEngine:
    """`contracts.services.WebSearch`. `aclose` it."""

    def __init__(self, engine: Engine, service: Service, bounds: Bounds, *, key: str) -> None:
        self._engine = engine
        self._service = service
        self._asking = Asking(service, bounds)
        self._key = key

    async def search(self, query: str) -> tuple[Found, ...]:
        """As `WebSearch` has it."""
        check_query(query, "query", self._engine.most_characters)
        wanted = Wanted(query=query.strip(), url=self._service.url, key=self._key)
        body = await self._asking.ask(self._engine.ask(wanted))
        return _found(self._engine.pages(body, self._service))

    async def aclose(self) -> None:
        """As `WebSearch` has it."""
        await self._asking.aclose()


def _found(pages: Iterable[Page]) -> tuple[Found, ...]:
    """Plain, each link once, and no more than may be."""
    found: dict[str, Found] = {}
    for page in pages:
        link = (page.link or "").strip()
        # BARRIER: a link of another kind would be opened by whoever is shown it; held by
        # tests/unit/services/search/test_engine.py.
        if not link.lower().startswith(("http://", "https://")) or link in found:
            continue
        found[link] = Found(
            title=_plain(page, page.title, _MOST_TITLE_CHARACTERS) or link,
            link=link,
            text=_plain(page, page.text, MOST_FOUND_CHARACTERS),
        )
        if len(found) == MOST_FOUND:
            break
    return tuple(found.values())


def _plain(page: Page, said: str | None, most: int) -> str:
    said = (said or "")[:_MOST_MARKUP_CHARACTERS]
    return shortened(plain_text(said) if page.is_markup else without_tags(said), most)
