"""Brave's search, by its own index."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import msgspec

from workbench.contracts.services import MOST_FOUND
from workbench.services.answers import read
from workbench.services.asking import Ask, Service
from workbench.services.search.engine import Engine, Page, Wanted


class _Result(msgspec.Struct):
    url: str | None = None
    title: str | None = None
    description: str | None = None
    extra_snippets: list[str] | None = None


class _Web(msgspec.Struct):
    results: list[_Result] = []


class _Answer(msgspec.Struct):
    # Left out if there is nothing; `type` is what tells that it is an answer of theirs.
    type: str
    web: _Web | None = None


def _ask(wanted: Wanted) -> Ask:
    query = urlencode({"q": wanted.query, "count": MOST_FOUND, "text_decorations": "false"})
    return Ask(url=f"{wanted.url}/res/v1/web/search?{query}", headers={"X-Subscription-Token": wanted.key})


def _pages(body: bytes, service: Service) -> Iterator[Page]:
    web = read(body, _Answer, service).web
    for one in web.results if web is not None else ():
        text = " ".join((one.description or "", *(one.extra_snippets or ())))
        yield Page(title=one.title, link=one.url, text=text, is_markup=True)


BRAVE = Engine(name="brave", url="https://api.search.brave.com", needs_key=True, ask=_ask, pages=_pages)
