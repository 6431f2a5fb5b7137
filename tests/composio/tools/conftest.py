"""One server for all tests here, with a model and a search engine on this machine, and a session for each."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import httpx2
import pytest
from tests.composio.tools.calling import Calling
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, running
from tests.services.conftest import _models, _searches, models, searches
from tests.services.running import Running as Faulty

__all__ = ["_models", "_searches", "models", "searches"]


@pytest.fixture(scope="session")
def server(_models: Faulty, _searches: Faulty) -> Iterator[Running]:
    """The one that all share."""
    options = {
        # What a search finds and what is missing can be told by name.
        "toolkits_shipped": "none",
        "llm_provider": "openai",
        "llm_url": f"{_models.url}/v1",
        "llm_key": f"sk-{secrets.token_hex(16)}",
        "llm_model": "small",
        "search_engine": "brave",
        "search_url": _searches.url,
        "search_key": f"BSA{secrets.token_hex(16)}",
    }
    with own_settings(max_body_mib=1, **options) as settings, running(settings) as server:
        yield server


@pytest.fixture
def calling(client: httpx2.Client, session: str) -> Calling:
    """In a session of the test's own."""
    return Calling(client, session)
