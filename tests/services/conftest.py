"""The two servers, each for all tests of a module; what they saw is forgotten before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services.model_server import model_server
from tests.services.running import Running
from tests.services.search_server import search_server


@pytest.fixture(scope="session")
def _models() -> Iterator[Running]:
    with model_server() as server:
        yield server


@pytest.fixture(scope="session")
def _searches() -> Iterator[Running]:
    with search_server() as server:
        yield server


@pytest.fixture
def models(_models: Running) -> Running:
    """A server of models that has seen nothing yet."""
    _models.forget()
    return _models


@pytest.fixture
def searches(_searches: Running) -> Running:
    """A server of search engines that has seen nothing yet."""
    _searches.forget()
    return _searches
