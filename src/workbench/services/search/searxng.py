"""SearXNG, which everybody can run: it asks many engines. Its settings must allow the format `json`."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import msgspec

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
    # For one behind a proxy that wants a token.
    headers = {"Authorization": f"Bearer {wanted.key}"} if wanted.key else {}
    return Ask(url=f"{wanted.url}/search?{urlencode({'q': wanted.query, 'format': 'json'})}", headers=headers)


def _pages(body: bytes, service: Service) -> Iterator[Page]:
    for one in read(body, _Answer, service).results:
        yield Page(title=one.title, link=one.url, text=one.content)


SEARXNG = Engine(name="searxng", url="", needs_key=False, ask=_ask, pages=_pages)
