"""Exa, which gives the text of the pages that it finds."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from workbench.contracts.services import MOST_FOUND, MOST_FOUND_CHARACTERS
from workbench.services.answers import read
from workbench.services.asking import Ask, Service
from workbench.services.search.engine import Engine, Page, Wanted


class _Result(msgspec.Struct):
    url: str | None = None
    title: str | None = None
    text: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


def _ask(wanted: Wanted) -> Ask:
    said = {
        "query": wanted.query,
        "type": "auto",
        "numResults": MOST_FOUND,
        "contents": {"text": {"maxCharacters": MOST_FOUND_CHARACTERS}},
    }
    return Ask(
        method="POST",
        url=f"{wanted.url}/search",
        headers={"Content-Type": "application/json", "x-api-key": wanted.key},
        body=msgspec.json.encode(said),
    )


def _pages(body: bytes, service: Service) -> Iterator[Page]:
    for one in read(body, _Answer, service).results:
        yield Page(title=one.title, link=one.url, text=one.text)


EXA = Engine(name="exa", url="https://api.exa.ai", needs_key=True, ask=_ask, pages=_pages)
