"""One server for all; one session a language for what leaves it as it was, and one of the test's own for the rest."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from tests.runtimes.asking import Session
from tests.runtimes.languages import LANGUAGES, Language
from tests.server.conftest import client, server
from tests.server.running import Running

__all__ = ["client", "server"]


@pytest.fixture(scope="session", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> Language:
    """Each of them."""
    return LANGUAGES[request.param]


@pytest.fixture(scope="session")
def session(server: Running, language: Language) -> Iterator[Session]:
    """The one that tests of a language share."""
    with server.client() as asked:
        made = Session.made(asked, language.runtime)
        yield made
        made.delete()


@pytest.fixture
def own_session(client: httpx2.Client, language: Language) -> Iterator[Session]:
    """One that may be ended."""
    made = Session.made(client, language.runtime)
    yield made
    made.delete()


@pytest.fixture(scope="session")
def session_of(server: Running) -> Iterator[dict[str, Session]]:
    """One of each language, for cases that are named by it."""
    with server.client() as asked:
        made = {runtime: Session.made(asked, runtime) for runtime in LANGUAGES}
        yield made
        for session in made.values():
            session.delete()
