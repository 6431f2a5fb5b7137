"""DuckDuckGo's page for browsers without scripts. Needs no key, promises nothing, and shows robots a puzzle instead."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlencode, urlsplit

from workbench.errors import UpstreamBadAnswer, UpstreamLimited
from workbench.services.asking import Ask, Service
from workbench.services.search.engine import Engine, Page, Wanted

# It answers longer ones with its start page.
_MOST_CHARACTERS = 499
_RESULT, _AD, _TITLE, _TEXT = "web-result", "result--ad", "result__a", "result__snippet"
_PUZZLE = "challenge-form"
# Of a page with results, and of one that says that there are none.
_KNOWN = frozenset(("results", "no-results", "result--no-result"))


class _Reader(HTMLParser):
    """Titles, links and texts of results, with the markup inside of them left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pages: list[Page] = []
        self.is_puzzle = False
        self.is_known = False
        self._in: tuple[str, str] | None = None
        self._said: list[str] = []
        self._is_ad = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        classes = set(told.get("class", "").split())
        self.is_puzzle |= told.get("id") == _PUZZLE
        self.is_known |= bool(classes & _KNOWN)
        if "result" in classes:
            self._is_ad = _AD in classes
        if self._in is None and not self._is_ad:
            if _TITLE in classes:
                self.is_known = True
                self._in, self._said = (tag, _TITLE), []
                self.pages.append(Page(title="", link=_target(told.get("href", "")), text=""))
            elif _TEXT in classes and self.pages:
                self._in, self._said = (tag, _TEXT), []

    def handle_data(self, data: str) -> None:
        if self._in is not None:
            self._said.append(data)

    def handle_endtag(self, tag: str) -> None:
        if self._in is None or tag != self._in[0]:
            return
        page, said = self.pages[-1], "".join(self._said)
        is_title = self._in[1] == _TITLE
        self.pages[-1] = Page(
            title=said if is_title else page.title, link=page.link, text=page.text if is_title else said
        )
        self._in = None


def _target(href: str) -> str:
    """Where a link leads behind the counter of clicks."""
    parts = urlsplit(f"https:{href}" if href.startswith("//") else href)
    behind = parse_qs(parts.query).get("uddg", [""])[0]
    return behind if parts.path.startswith("/l/") else parts.geturl()


def _ask(wanted: Wanted) -> Ask:
    return Ask(
        method="POST",
        url=f"{wanted.url}/html/",
        headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"},
        body=urlencode({"q": wanted.query, "b": ""}).encode("ascii"),
    )


def _pages(body: bytes, service: Service) -> Iterator[Page]:
    reader = _Reader()
    reader.feed(body.decode("utf-8", "replace"))
    reader.close()
    context = {"service": service.name}
    if reader.is_puzzle:
        raise UpstreamLimited(
            f"{service} takes us for a robot and shows a puzzle; wait some hours, or choose another "
            "WORKBENCH_SEARCH_ENGINE",
            context,
        )
    if not reader.is_known:
        raise UpstreamBadAnswer(
            f"{service} answered with a page that we cannot read; choose another WORKBENCH_SEARCH_ENGINE", context
        )
    yield from reader.pages


DUCKDUCKGO = Engine(
    name="duckduckgo",
    url="https://html.duckduckgo.com",
    needs_key=False,
    ask=_ask,
    pages=_pages,
    most_characters=_MOST_CHARACTERS,
)
