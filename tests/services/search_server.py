"""A server that answers as each of the search engines does, whatever is searched for.

    with search_server() as server:
        WORKBENCH_SEARCH_ENGINE=searxng, or another, WORKBENCH_SEARCH_URL=server.url

A search for `nothing` finds nothing, one for `puzzle` is a robot's to DuckDuckGo. Faults are named in the query:
`faulty_http` has them.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from tests.services.faulty_http import Answer, Asked, FaultyHandler, said, serve
from tests.services.running import Running, running

RESULTS = 14
"""more than may be found"""


class SearchHandler(FaultyHandler):
    def words(self, asked: Asked) -> str:
        return _query(asked)

    def answer(self, asked: Asked) -> Answer:
        engine = _engine(asked)
        if engine is None:
            return said({"error": f"unknown url: {asked.path}"}, 404)
        query = _query(asked)
        return _ANSWERS[engine](query, 0 if query == "nothing" else RESULTS)


def _engine(asked: Asked) -> str | None:
    parts = urlsplit(asked.path)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    match asked.method, parts.path:
        case "GET", "/search" if options.get("format") == "json":
            return "searxng"
        case "GET", "/res/v1/web/search" if "x-subscription-token" in asked.headers:
            return "brave"
        case "POST", "/search" if asked.headers.get("authorization", "").startswith("Bearer "):
            return "tavily"
        case "POST", "/search" if "x-api-key" in asked.headers:
            return "exa"
        case "POST", "/html/":
            return "duckduckgo"
        case "GET", "/w/api.php" if (options.get("action"), options.get("list")) == ("query", "search"):
            return "wikipedia"
    return None


def _query(asked: Asked) -> str:
    if asked.headers.get("content-type") == "application/json":
        return str(asked.json().get("query", ""))
    told = parse_qs(urlsplit(asked.path).query) | parse_qs(asked.body)
    return told.get("q", told.get("srsearch", [""]))[0]


def link(number: int) -> str:
    return f"https://example.org/page?number={number}&of=many"


def title(query: str, number: int) -> str:
    return f"Page {number} & more of {query}"


def text(query: str, number: int) -> str:
    return f"Text {number} on {query}: 1 < 2, vector<int>"


def _searxng(query: str, count: int) -> Answer:
    results = [
        {
            "url": link(n),
            "title": title(query, n),
            "content": text(query, n),
            "engine": "some",
            "engines": ["some"],
            "score": 1.0,
            "publishedDate": None,
        }
        for n in range(count)
    ]
    return said({"query": query, "number_of_results": 0, "results": results, "answers": [], "unresponsive_engines": []})


def _brave(query: str, count: int) -> Answer:
    results = [
        {
            "type": "search_result",
            "title": html.escape(title(query, n)),
            "url": link(n),
            "description": f"<strong>Text</strong>{html.escape(text(query, n).removeprefix('Text'))}",
            "meta_url": {"hostname": "example.org"},
        }
        for n in range(count)
    ]
    answer: dict[str, Any] = {"type": "search", "query": {"original": query}}
    if results:
        answer["web"] = {"type": "search", "results": results}
    return said(answer)


def _tavily(query: str, count: int) -> Answer:
    results = [
        {"title": title(query, n), "url": link(n), "content": text(query, n), "score": 0.9, "raw_content": None}
        for n in range(count)
    ]
    return said({"query": query, "answer": None, "images": [], "results": results, "response_time": 0.1})


def _exa(query: str, count: int) -> Answer:
    results = [
        {"id": link(n), "title": title(query, n), "url": link(n), "author": None, "text": text(query, n)}
        for n in range(count)
    ]
    return said({"requestId": "1", "resolvedSearchType": "neural", "results": results})


def _wikipedia(query: str, count: int) -> Answer:
    results = [
        {
            "ns": 0,
            "title": f"Page {n} (number)",
            "pageid": n,
            "snippet": f'<span class="searchmatch">Text</span>{html.escape(text(query, n).removeprefix("Text"))}',
        }
        for n in range(count)
    ]
    return said({"batchcomplete": True, "query": {"searchinfo": {"totalhits": count}, "search": results}})


def _duckduckgo(query: str, count: int) -> Answer:
    if query == "puzzle":
        page = '<form id="challenge-form" action="/anomaly.js"><div class="anomaly-modal">Select all ducks</div></form>'
    else:
        ad = '<div class="result results_links result--ad"><h2><a class="result__a" href="https://ads.example">Buy</a></h2></div>'
        page = f'<div id="links" class="results">{ad}{"".join(_block(query, n) for n in range(count))}</div>'
        if not count:
            page = '<div id="links" class="results"><div class="no-results">No results.</div></div>'
    whole = f"<!DOCTYPE html><html><head><title>{query}</title></head><body>{page}</body></html>"
    return Answer(whole.encode(), headers={"Content-Type": "text/html; charset=UTF-8"})


def _block(query: str, number: int) -> str:
    href = f"//duckduckgo.com/l/?uddg={quote(link(number), safe='')}&amp;rut=abc"
    snippet = f"<b>Text</b>{html.escape(text(query, number).removeprefix('Text'))}"
    return (
        '<div class="result results_links results_links_deep web-result ">'
        '<div class="links_main links_deep result__body"><h2 class="result__title">'
        f'<a rel="nofollow" class="result__a" href="{href}">{html.escape(title(query, number))}</a></h2>'
        f'<div class="result__extras"><a class="result__url" href="{href}">example.org/page</a></div>'
        f'<a class="result__snippet" href="{href}">{snippet}</a>'
        '<div class="clear"></div></div></div>'
    )


_ANSWERS = {
    "searxng": _searxng,
    "brave": _brave,
    "tavily": _tavily,
    "exa": _exa,
    "duckduckgo": _duckduckgo,
    "wikipedia": _wikipedia,
}


@contextlib.contextmanager
def search_server() -> Iterator[Running]:
    """In a process of its own; gone afterwards."""
    with running("tests.services.search_server") as server:
        yield server


if __name__ == "__main__":
    serve(SearchHandler)
