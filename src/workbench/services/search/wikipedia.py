"""Wikipedia's own search, and that of every other wiki of the same making. Needs no key."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from workbench.contracts.services import MOST_FOUND
from workbench.errors import UpstreamRefused
from workbench.services.answers import read
from workbench.services.asking import Ask, Service
from workbench.services.excerpts import excerpt
from workbench.services.search.engine import Engine, Page, Wanted


class _Result(msgspec.Struct):
    title: str
    snippet: str = ""


class _Query(msgspec.Struct):
    search: list[_Result] = []


class _Error(msgspec.Struct):
    info: str = ""


class _Answer(msgspec.Struct):
    # One of the two: it refuses with the status of a good answer.
    query: _Query | None = None
    error: _Error | None = None


def _ask(wanted: Wanted) -> Ask:
    query = {
        "action": "query",
        "list": "search",
        "format": "json",
        "formatversion": "2",
        "srsearch": wanted.query,
        "srlimit": MOST_FOUND,
        "srprop": "snippet",
    }
    return Ask(url=f"{wanted.url}/w/api.php?{urlencode(query)}")


def _pages(body: bytes, service: Service) -> Iterator[Page]:
    answer = read(body, _Answer, service)
    if answer.query is None:
        said = excerpt(answer.error.info.encode() if answer.error else body, service.secrets)
        raise UpstreamRefused(f"{service} refused the search: {said}", {"service": service.name})
    parts = urlsplit(service.url)
    for one in answer.query.search:
        name = quote(one.title.replace(" ", "_"), safe="/:(),'!*;@")
        link = f"{parts.scheme}://{parts.netloc}/wiki/{name}"
        # Titles of a wiki have no signs of markup in them.
        yield Page(title=one.title, link=link, text=one.snippet, is_markup=True)


WIKIPEDIA = Engine(name="wikipedia", url="https://en.wikipedia.org", needs_key=False, ask=_ask, pages=_pages)
