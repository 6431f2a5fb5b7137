"""What is sent to a model, and what is read out of its answer."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.services.running import Running

from workbench.contracts.services import Completion, LanguageModel, Question
from workbench.errors import UpstreamRefused
from workbench.services.opening import ModelPlace, open_language_model

KEY = "sk-hunter2-hunter2"
PROVIDERS = ("openai", "anthropic")


@contextlib.asynccontextmanager
async def opened(server: Running, provider: str, **more: Any) -> AsyncIterator[LanguageModel]:
    url = f"{server.url}/v1" if provider == "openai" else server.url
    told: dict[str, Any] = {"model": "openai/gpt-oss-120b", "key": KEY, "timeout_s": 20.0, **more}
    model = open_language_model(ModelPlace(provider=provider, url=url, **told))
    try:
        yield model
    finally:
        await model.aclose()


async def ask(server: Running, provider: str, query: str, effort: str = "", **more: Any) -> Completion:
    async with opened(server, provider, **more) as model:
        return await model.complete(Question(query, effort))


async def test_openai_is_asked_in_its_words(models: Running) -> None:
    answer = await ask(models, "openai", "Grüße an \0 & 日本", max_tokens=321)
    assert answer == Completion(
        text="You asked: Grüße an \0 & 日本", model="openai/gpt-oss-120b", prompt_tokens=5, completion_tokens=7
    )
    (asked,) = models.seen()
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["user-agent"].startswith("open-workbench/")
    assert asked.json() == {
        "model": "openai/gpt-oss-120b",
        "messages": [{"role": "user", "content": "Grüße an \0 & 日本"}],
        "max_tokens": 321,
    }


async def test_anthropic_is_asked_in_its_words(models: Running) -> None:
    answer = await ask(models, "anthropic", "hello there", max_tokens=321, model="claude")
    assert answer == Completion(text="You asked: hello there", model="claude", prompt_tokens=2, completion_tokens=4)
    (asked,) = models.seen()
    assert (asked.method, asked.path) == ("POST", "/v1/messages")
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in asked.headers
    assert asked.json() == {
        "model": "claude",
        "messages": [{"role": "user", "content": "hello there"}],
        "max_tokens": 321,
    }


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_is_said_beforehand_goes_where_the_service_has_it(models: Running, provider: str) -> None:
    async with opened(models, provider) as model:
        await model.complete(Question("one"))
        await model.complete(Question("one", "", "Be brief."))
    without, with_system = (one.json() for one in models.seen())
    if provider == "openai":
        messages = [{"role": "system", "content": "Be brief."}, *without["messages"]]
        assert with_system == {**without, "messages": messages}
    else:
        assert with_system == {**without, "system": "Be brief."}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_effort_is_passed_on_only_if_it_is_given(models: Running, provider: str) -> None:
    async with opened(models, provider) as model:
        await model.complete(Question("one"))
        await model.complete(Question("two", "high"))
    without, with_effort = (one.json() for one in models.seen())
    more = {"reasoning_effort": "high"} if provider == "openai" else {"output_config": {"effort": "high"}}
    assert with_effort == {**without, "messages": [{"role": "user", "content": "two"}], **more}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_that_knows_no_effort_is_told_of(models: Running, provider: str) -> None:
    with pytest.raises(UpstreamRefused, match=r"reasoning_effort=low was passed on.*ask without it") as caught:
        await ask(models, provider, "hello", "low", model="plain-model")
    assert caught.value.context["status"] == "400"
    assert len(models.seen()) == 1
    assert (await ask(models, provider, "hello", model="plain-model")).text == "You asked: hello"


async def test_a_model_that_wants_the_newer_name_of_the_limit_gets_it(models: Running) -> None:
    async with opened(models, "openai", model="newer-model", max_tokens=55) as model:
        assert (await model.complete(Question("one"))).text == "You asked: one"
        assert (await model.complete(Question("two"))).text == "You asked: two"
    first, second, third = (one.json() for one in models.seen())
    assert first["max_tokens"] == 55
    for later in (second, third):
        assert later["max_completion_tokens"] == 55
        assert "max_tokens" not in later


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_answer_that_reached_the_limit_says_so(models: Running, provider: str) -> None:
    assert (await ask(models, provider, "hello", max_tokens=1)).cut_short
    assert not (await ask(models, provider, "hello", max_tokens=2)).cut_short


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_fence_around_an_answer_is_taken_off(models: Running, provider: str) -> None:
    answer = await ask(models, provider, 'say:```json\n{"a": 1}\n```\n')
    assert answer.text == '{"a": 1}'


async def test_an_endpoint_that_needs_no_key_gets_none(models: Running) -> None:
    await ask(models, "openai", "hello", key="")
    assert "authorization" not in models.seen()[0].headers
