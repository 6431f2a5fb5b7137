"""Tavily, which reads the pages that it finds."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from workbench.contracts.services import MOST_FOUND
from workbench.services.answers import read
from workbench.services.asking import Ask, Service
from workbench.services.search.engine import Engine, Page, Wanted


class _Result(msgspec.Struct):
    url: str | None = None
    title: str | None = None
    content: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


def _ask(wanted: Wanted) -> Ask:
    return Ask(
        method="POST",
        url=f"{wanted.url}/search",
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {wanted.key}"},
        body=msgspec.json.encode({"query": wanted.query, "max_results": MOST_FOUND}),
    )


def _pages(body: bytes, service: Service) -> Iterator[Page]:
    for one in read(body, _Answer, service).results:
        yield Page(title=one.title, link=one.url, text=one.content)


TAVILY = Engine(name="tavily", url="https://api.tavily.com", needs_key=True, ask=_ask, pages=_pages)
