"""One server, one session for all cases: a kernel each would take minutes."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from tests.corrections.asking import Notebook
from tests.server.conftest import client, server

__all__ = ["client", "server"]


@pytest.fixture(scope="session")
def notebook(server: object) -> Iterator[Notebook]:
    """A session as all switches are by default."""
    with server.client() as asked:  # type: ignore[attr-defined]
        book = Notebook.made(asked)
        yield book
        book.delete()


@pytest.fixture
def own_notebook(client: httpx2.Client) -> Iterator[Notebook]:
    """A session of the test's own."""
    book = Notebook.made(client)
    yield book
    book.delete()
