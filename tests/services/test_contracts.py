"""Every model and every engine passes its contract, against servers that answer as the real ones do."""

from __future__ import annotations

import pytest
from tests.services.running import Running

from workbench.services.opening import ENGINES, ModelPlace, SearchPlace, open_language_model, open_web_search
from workbench.testing.services_contract import LanguageModelContract, OpenModel, OpenSearch, WebSearchContract


class TestOpenAi(LanguageModelContract):
    @pytest.fixture
    def open_model(self, models: Running) -> OpenModel:
        place = ModelPlace(provider="openai", url=f"{models.url}/v1", key="sk-1234567", model="openai/gpt-oss-120b")
        return lambda: open_language_model(place)


class TestAnthropic(LanguageModelContract):
    @pytest.fixture
    def open_model(self, models: Running) -> OpenModel:
        place = ModelPlace(provider="anthropic", url=models.url, key="sk-1234567", model="claude")
        return lambda: open_language_model(place)


@pytest.mark.parametrize("engine", ENGINES)
class TestEngines(WebSearchContract):
    @pytest.fixture
    def open_search(self, searches: Running, engine: str) -> OpenSearch:
        place = SearchPlace(engine=engine, url=searches.url, key="sk-1234567")
        return lambda: open_web_search(place)
