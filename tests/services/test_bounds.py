"""What comes is bounded in size and in time, whatever a service does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.services.running import Running

from workbench.contracts.services import MOST_QUERY_CHARACTERS, Question
from workbench.errors import InvalidRequest, UpstreamBadAnswer, UpstreamRefused, UpstreamUnavailable
from workbench.services.asking import MOST_ANSWER_BYTES, Ask, Asking, Bounds, Service
from workbench.services.opening import ModelPlace, SearchPlace, open_language_model, open_web_search
from workbench.services.retries import Policy

_ROOT = Path(__file__).resolve().parents[2]
# In a process of its own, which has held nothing else before; its peak is what counts.
_ASK_FOR_MUCH = """
import asyncio, pathlib, sys
from workbench.contracts.services import Question
from workbench.errors import WorkbenchError
from workbench.services.opening import ModelPlace, open_language_model

def peak_kib():
    # Not what getrusage says: that begins with the peak of who started us.
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

async def main(url, fault):
    model = open_language_model(ModelPlace(provider="openai", url=f"{url}/v1", model="m", timeout_s=30))
    await model.complete(Question("say:hello"))
    before = peak_kib()
    try:
        if fault == "hold":
            held = b"x" * 50 * 2**20
        else:
            await model.complete(Question(f"fault:{fault}"))
        code = "none"
    except WorkbenchError as problem:
        code = problem.code
    await model.aclose()
    sys.stdout.write(f"{code} {peak_kib() - before}")

asyncio.run(main(*sys.argv[1:]))
"""
# What may come, and as much again for the allocator.
_MOST_GROWTH_KIB = 2 * MOST_ANSWER_BYTES // 1024


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("large", "upstream_bad_answer"),
        ("large-undeclared", "upstream_bad_answer"),
        ("large-refusal", "upstream_refused"),
        ("packed", "upstream_bad_answer"),
    ],
)
def test_an_answer_of_fifty_megabytes_is_never_held(models: Running, fault: str, code: str) -> None:
    told, growth_kib = _growth(models, fault)
    assert told == code
    assert growth_kib < _MOST_GROWTH_KIB


def test_what_is_held_would_be_seen(models: Running) -> None:
    assert _growth(models, "hold")[1] > 2 * _MOST_GROWTH_KIB


def _growth(server: Running, fault: str) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", _ASK_FOR_MUCH, server.url, fault],
        env={"PYTHONPATH": str(_ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    code, growth = done.stdout.split()
    return code, int(growth)


async def test_an_answer_of_exactly_what_may_come_is_taken(models: Running) -> None:
    ask = Ask(url=f"{models.url}/nowhere")
    size = len(b'{"error": {"message": "unknown url: /nowhere"}}')
    with pytest.raises(UpstreamRefused, match="unknown url: /nowhere"):
        await _asked(models, ask, most_bytes=size)
    body = b'{"model": "m", "messages": [{"role": "user", "content": "say:x"}]}'
    good = Ask(method="POST", url=f"{models.url}/v1/chat/completions", body=body)
    whole = await _asked(models, good, most_bytes=10_000)
    assert await _asked(models, good, most_bytes=len(whole)) == whole
    with pytest.raises(UpstreamBadAnswer, match=f"more than {len(whole) - 1} bytes"):
        await _asked(models, good, most_bytes=len(whole) - 1)


async def _asked(server: Running, ask: Ask, most_bytes: int) -> bytes:
    bounds = Bounds(whole_s=10, attempt_s=10, most_bytes=most_bytes)
    asking = Asking(Service(name="the model", url=server.url), bounds)
    try:
        return await asking.ask(ask)
    finally:
        await asking.aclose()


@pytest.mark.parametrize("fault", ["hang", "drip"])
async def test_a_model_that_does_not_come_to_an_end_is_left_in_time(models: Running, fault: str) -> None:
    place = ModelPlace(provider="openai", url=f"{models.url}/v1", model="m", timeout_s=1)
    model = open_language_model(place)
    began = time.monotonic()
    with pytest.raises(UpstreamUnavailable, match="no whole answer within 1 s") as caught:
        await model.complete(Question(f"fault:{fault}"))
    assert 1.0 <= time.monotonic() - began < 3.0
    assert caught.value.retryable
    await model.aclose()
    assert len(models.seen()) == 1


async def test_all_attempts_together_have_one_limit(models: Running) -> None:
    bounds = Bounds(whole_s=1.0, attempt_s=0.4, policy=Policy(first_s=0.01, attempts=100))
    asking = Asking(Service(name="the model", url=models.url), bounds)
    began = time.monotonic()
    with pytest.raises(UpstreamUnavailable, match="attempts"):
        await asking.ask(Ask(url=f"{models.url}/fault:hang"))
    assert time.monotonic() - began < 2.5
    await asking.aclose()
    assert 2 <= len(models.seen()) <= 4


async def test_one_that_is_cancelled_leaves_no_connection(models: Running) -> None:
    model = open_language_model(ModelPlace(provider="openai", url=f"{models.url}/v1", model="m"))
    asked = asyncio.ensure_future(model.complete(Question("fault:hang")))
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(models.seen):
            await asyncio.sleep(0.01)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await model.complete(Question("say:well"))).text == "well"
    await model.aclose()


async def test_a_question_that_is_too_long_is_not_sent(models: Running) -> None:
    with pytest.raises(InvalidRequest, match="has 200,001 characters, and 200,000 may be asked at once"):
        Question("x" * (MOST_QUERY_CHARACTERS + 1))
    model = open_language_model(ModelPlace(provider="openai", url=f"{models.url}/v1", model="m"))
    answer = await model.complete(Question("say:" + "ß" * (MOST_QUERY_CHARACTERS - 4)))
    await model.aclose()
    assert len(answer.text) == MOST_QUERY_CHARACTERS - 4


async def test_many_at_once_all_come_to_their_answer(models: Running) -> None:
    model = open_language_model(ModelPlace(provider="openai", url=f"{models.url}/v1", model="m", timeout_s=30))
    answers = await asyncio.gather(*(model.complete(Question(f"say:{n}")) for n in range(100)))
    await model.aclose()
    assert [one.text for one in answers] == [str(n) for n in range(100)]


async def test_a_page_that_is_too_large_to_search_is_refused(searches: Running) -> None:
    search = open_web_search(SearchPlace(engine="duckduckgo", url=searches.url))
    with pytest.raises(UpstreamBadAnswer, match="more than 4,194,304 bytes"):
        await search.search("fault:large-undeclared")
    await search.aclose()
