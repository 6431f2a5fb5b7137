"""Faults of services: what is tried again, what is told, and what never is."""

from __future__ import annotations

import json
import logging
import random
import time
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.services.faulty_http import Asked
from tests.services.running import Running

from workbench.contracts.services import Question
from workbench.errors import (
    UpstreamBadAnswer,
    UpstreamError,
    UpstreamLimited,
    UpstreamRefused,
    UpstreamUnavailable,
)
from workbench.services.asking import Ask, Asking, Bounds, Service
from workbench.services.opening import ENGINES, ModelPlace, SearchPlace, open_language_model, open_web_search
from workbench.services.retries import Policy

KEY = "sk-hunter2-hunter2"
# As long as it must be for a fault that waits for it, and no longer.
QUICK = Policy(first_s=0.01, longest_s=0.02)
BOUNDS = Bounds(whole_s=10, attempt_s=10, policy=QUICK)


def service_of(server: Running) -> Service:
    return Service(name="the model", url=server.url, secrets=(KEY,), url_setting="WORKBENCH_LLM_URL")


@pytest_asyncio.fixture
async def asking(models: Running) -> AsyncIterator[Asking]:
    made = Asking(service_of(models), BOUNDS)
    try:
        yield made
    finally:
        await made.aclose()


def question(server: Running, fault: str) -> Ask:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"fault:{fault}"}]})
    return Ask(
        method="POST",
        url=f"{server.url}/v1/chat/completions",
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        body=body.encode(),
    )


@pytest.mark.parametrize("fault", ["failed-once", "cut-once", "drop-once"])
async def test_what_passes_is_tried_again_with_the_same_request(models: Running, asking: Asking, fault: str) -> None:
    assert b'"choices"' in await asking.ask(question(models, fault))
    first, second = models.seen()
    assert (first.path, first.headers, first.body) == (second.path, second.headers, second.body)


@pytest.mark.parametrize(("fault", "least_s"), [("limited-once", 1.0), ("limited-date", 0.4)])
async def test_the_wait_that_a_service_asks_for_is_kept(
    models: Running, asking: Asking, fault: str, least_s: float
) -> None:
    began = time.monotonic()
    assert await asking.ask(question(models, fault))
    assert time.monotonic() - began >= least_s
    assert len(models.seen()) == 2


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("limited", UpstreamLimited, r"status 429: slow down \(4 attempts\)"),
        ("failed", UpstreamUnavailable, r"status 503: overloaded \(4 attempts\)"),
        ("cut", UpstreamUnavailable, r"broke off.*\(4 attempts\)"),
        ("drop", UpstreamUnavailable, r"broke off.*\(4 attempts\)"),
    ],
)
async def test_what_does_not_pass_is_tried_four_times(
    models: Running, asking: Asking, fault: str, error: type[UpstreamError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        await asking.ask(question(models, fault))
    assert caught.value.retryable
    assert caught.value.context["service"] == "the model"
    assert len(models.seen()) == 4


async def test_a_service_that_wants_hours_is_not_waited_for(models: Running, asking: Asking) -> None:
    with pytest.raises(UpstreamLimited, match="it asks to wait 7,200 s") as caught:
        await asking.ask(question(models, "limited-for-hours"))
    assert caught.value.context["retry_after_s"] == "7200"
    assert len(models.seen()) == 1


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("refused", UpstreamRefused, "status 400: no such thing as this"),
        ("gone", UpstreamRefused, "status 404: no such model"),
        ("echo-key", UpstreamRefused, "status 401: Incorrect API key provided"),
        ("redirect", UpstreamRefused, "status 307; redirects are not followed: set WORKBENCH_LLM_URL"),
        ("large", UpstreamBadAnswer, "more than 8,388,608 bytes"),
        ("packed", UpstreamBadAnswer, "packed"),
    ],
)
async def test_what_will_not_pass_is_told_at_once(
    models: Running, asking: Asking, fault: str, error: type[UpstreamError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        await asking.ask(question(models, fault))
    assert not caught.value.retryable
    assert len(models.seen()) == 1


async def test_nobody_listening_is_told_with_the_setting() -> None:
    asking = Asking(Service(name="the model", url="http://127.0.0.1:9", url_setting="WORKBENCH_LLM_URL"), BOUNDS)
    with pytest.raises(UpstreamUnavailable, match=r"the model at 127\.0\.0\.1:9 cannot be reached.*WORKBENCH_LLM_URL"):
        await asking.ask(Ask(url="http://127.0.0.1:9/"))
    await asking.aclose()


async def test_what_is_no_tls_is_not_tried_again(models: Running) -> None:
    asking = Asking(service_of(models), BOUNDS)
    with pytest.raises(UpstreamRefused, match="no TLS with the model"):
        await asking.ask(Ask(url=f"{models.url.replace('http', 'https')}/"))
    await asking.aclose()


def told(problem: BaseException) -> str:
    """All that a log could have of it."""
    return "".join(traceback.format_exception(problem)) + repr(problem) + repr(vars(problem))


def sent_key(asked: Asked) -> bool:
    return KEY in str(asked.headers)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_the_key_of_a_model_is_in_no_error_no_repr_and_no_log(
    models: Running, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place = ModelPlace(
        provider=provider, url=f"{models.url}/v1" if provider == "openai" else models.url, key=KEY, model="m"
    )
    model = open_language_model(place)
    with pytest.raises(UpstreamRefused, match=r"\[hidden\].*check WORKBENCH_LLM_KEY") as caught:
        await model.complete(Question("fault:echo-key"))
    await model.aclose()
    assert sent_key(models.seen()[0])
    for text in (told(caught.value), repr(place), repr(model), caplog.text):
        assert "hunter2" not in text
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("engine", ["searxng", "brave", "tavily", "exa"])
async def test_the_key_of_an_engine_and_what_is_searched_for_are_in_no_log(
    searches: Running, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place = SearchPlace(engine=engine, url=searches.url, key=KEY)
    search = open_web_search(place)
    await search.search("private matters")
    with pytest.raises(UpstreamRefused, match=r"\[hidden\].*check WORKBENCH_SEARCH_KEY") as caught:
        await search.search("fault:echo-key")
    await search.aclose()
    assert all(sent_key(one) for one in searches.seen())
    for text in (told(caught.value), repr(place), repr(search), caplog.text):
        assert "hunter2" not in text
    assert "private" not in caplog.text


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("not-json", "is no JSON .*: Welcome to the proxy; check WORKBENCH_LLM_URL"),
        ("wrong-shape", "has another shape .*; check WORKBENCH_LLM_URL"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_quoted(models: Running, provider: str, fault: str, words: str) -> None:
    url = f"{models.url}/v1" if provider == "openai" else models.url
    model = open_language_model(ModelPlace(provider=provider, url=url, key=KEY, model="m"))
    with pytest.raises(UpstreamBadAnswer, match=words):
        await model.complete(Question(f"fault:{fault}"))
    await model.aclose()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fault", ["not-json", "wrong-shape"])
async def test_an_answer_of_no_engine_is_told(searches: Running, engine: str, fault: str) -> None:
    search = open_web_search(SearchPlace(engine=engine, url=searches.url, key=KEY))
    with pytest.raises(UpstreamBadAnswer, match="the search engine"):
        await search.search(f"fault:{fault}")
    await search.aclose()


async def test_pauses_of_two_who_failed_together_differ(models: Running) -> None:
    chance: Any = random.Random(1)
    asked = [Policy().pause_s(1, None, chance.random(), 100.0) for _ in range(20)]
    assert len(set(asked)) == 20
