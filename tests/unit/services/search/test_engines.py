"""How each engine is asked, and what of its answer is read."""

from __future__ import annotations

import importlib
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from workbench.errors import UpstreamBadAnswer, UpstreamError, UpstreamLimited, UpstreamRefused
from workbench.services.asking import Service
from workbench.services.opening import ENGINES
from workbench.services.search.engine import Engine, Page, Wanted

URL = "https://engine.example/below"
SERVICE = Service(name="the engine", url=URL)
QUERY = "käse & brot=1 100%"


def engine_of(name: str) -> Engine:
    engine = getattr(importlib.import_module(f"workbench.services.search.{name}"), name.upper())
    assert isinstance(engine, Engine)
    return engine


def pages_of(name: str, body: object) -> list[Page]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return list(engine_of(name).pages(raw, SERVICE))


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_called_what_it_is_chosen_by(name: str) -> None:
    engine = engine_of(name)
    assert engine.name == name
    assert engine.url.startswith("https://") or name == "searxng"


@pytest.mark.parametrize(
    ("name", "method", "path", "header"),
    [
        ("searxng", "GET", "/below/search", ("Authorization", "Bearer k")),
        ("brave", "GET", "/below/res/v1/web/search", ("X-Subscription-Token", "k")),
        ("tavily", "POST", "/below/search", ("Authorization", "Bearer k")),
        ("exa", "POST", "/below/search", ("x-api-key", "k")),
        ("duckduckgo", "POST", "/below/html/", None),
        ("wikipedia", "GET", "/below/w/api.php", None),
    ],
)
def test_an_engine_is_asked_in_its_way(name: str, method: str, path: str, header: tuple[str, str] | None) -> None:
    ask = engine_of(name).ask(Wanted(query=QUERY, url=URL, key="k"))
    parts = urlsplit(ask.url)
    assert (ask.method, parts.path) == (method, path)
    if header is None:
        assert "k" not in ask.headers.values()
    else:
        assert ask.headers[header[0]] == header[1]
    if ask.headers.get("Content-Type") == "application/json":
        told = json.loads(ask.body)["query"]
    else:
        form = parse_qs(parts.query) | parse_qs(ask.body.decode())
        (told,) = form.get("q", form.get("srsearch", []))
    assert told == QUERY


def test_searxng_without_a_key_is_sent_none() -> None:
    assert engine_of("searxng").ask(Wanted(query="x", url=URL, key="")).headers == {}


@pytest.mark.parametrize("name", ["searxng", "tavily", "exa"])
def test_what_an_engine_does_not_know_may_be_missing(name: str) -> None:
    pages = pages_of(name, {"results": [{"url": "https://x.example", "title": None}, {"title": "no link"}]})
    assert [one.link for one in pages] == ["https://x.example", None]


def test_brave_leaves_the_results_out_if_there_are_none() -> None:
    assert pages_of("brave", {"type": "search", "query": {}}) == []
    more = {"url": "https://x.example", "title": "T", "description": "D", "extra_snippets": ["E", "F"]}
    assert pages_of("brave", {"type": "search", "web": {"results": [more]}})[0].text == "D E F"


def test_wikipedia_refuses_with_a_good_status() -> None:
    with pytest.raises(UpstreamRefused, match="refused the search: Search request is longer"):
        pages_of("wikipedia", {"error": {"code": "toolong", "info": "Search request is longer than the maximum"}})


def test_titles_of_a_wiki_become_links() -> None:
    found = pages_of("wikipedia", {"query": {"search": [{"title": "C++ (a language)?", "snippet": "<b>x</b>"}]}})
    assert found[0].link == "https://engine.example/wiki/C%2B%2B_(a_language)%3F"


@pytest.mark.parametrize("name", [one for one in ENGINES if one != "duckduckgo"])
@pytest.mark.parametrize("body", [b"", b"no", b"[]", b"{}", b'{"results": 1, "query": 1, "type": 1}', b"[" * 100_000])
def test_another_answer_is_an_error(name: str, body: bytes) -> None:
    with pytest.raises(UpstreamError):
        pages_of(name, body)


_RESULT = (
    '<div class="result results_links web-result"><h2 class="result__title">'
    '<a rel="nofollow" class="result__a" href="{href}">A <b>title</b> &amp; more</a></h2>'
    '<a class="result__snippet" href="{href}">Some <b>text</b></a></div>'
)


@pytest.mark.parametrize(
    ("href", "link"),
    [
        ("//duckduckgo.com/l/?uddg=https%3A%2F%2Fx.example%2F%3Fa%3D1%26b%3D2&amp;rut=1", "https://x.example/?a=1&b=2"),
        ("https://direct.example/page?x=1", "https://direct.example/page?x=1"),
        ("//duckduckgo.com/l/?uddg=&amp;rut=1", ""),
        ("/relative", "/relative"),
    ],
)
def test_duckduckgo_counts_clicks_and_we_do_not(href: str, link: str) -> None:
    (found,) = pages_of("duckduckgo", _RESULT.format(href=href).encode())
    assert (found.title, found.link, found.text) == ("A title & more", link, "Some text")


def test_a_result_of_duckduckgo_without_a_text_does_not_take_the_next_ones() -> None:
    first = _RESULT.format(href="https://one.example").partition('<a class="result__snippet"')[0] + "</div>"
    found = pages_of("duckduckgo", (first + _RESULT.format(href="https://two.example")).encode())
    assert [(one.link, one.text) for one in found] == [
        ("https://one.example", ""),
        ("https://two.example", "Some text"),
    ]


def test_an_advertisement_is_no_result() -> None:
    ad = _RESULT.format(href="https://ads.example").replace("web-result", "result--ad")
    found = pages_of("duckduckgo", (ad + _RESULT.format(href="https://one.example")).encode())
    assert [one.link for one in found] == ["https://one.example"]


def test_a_puzzle_is_not_taken_for_an_empty_page() -> None:
    with pytest.raises(UpstreamLimited, match=r"takes us for a robot.*WORKBENCH_SEARCH_ENGINE"):
        pages_of("duckduckgo", b'<div class="results"></div><form id="challenge-form"></form>')
    with pytest.raises(UpstreamBadAnswer, match="a page that we cannot read"):
        pages_of("duckduckgo", b"<html><body>Hello</body></html>")
    assert pages_of("duckduckgo", b'<div class="results"><div class="no-results">None</div></div>') == []
