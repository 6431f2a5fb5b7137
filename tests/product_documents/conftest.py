"""One server with a host, a model and a search engine for the programs here; each runs in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.helpers.serving import helped
from tests.restart.server import Server
from tests.services.conftest import _models, _searches
from tests.services.running import Running

from workbench import Composio, ComposioSession

__all__ = ["_models", "_searches"]

_PROGRAM_S = 120.0
Program = Callable[[str], str]


@pytest.fixture(scope="session")
def server(_models: Running, _searches: Running) -> Iterator[Server]:
    """The one that all share."""
    with helped(_models, _searches) as server:
        yield server


@pytest.fixture
def composio(server: Server) -> Iterator[Composio]:
    """Its client."""
    with Composio(server.key, server.url) as composio:
        yield composio


@pytest.fixture
def session(composio: Composio) -> Iterator[ComposioSession]:
    """Deleted afterwards."""
    made = composio.create("user_123")
    yield made
    made.delete()


@pytest.fixture
def program(server: Server, tmp_path: Path) -> Program:
    """Runs one as a user would: by itself, told of the server by two variables; what it printed."""

    def run(text: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPEN_WORKBENCH_")}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-"],
            input=text,
            cwd=tmp_path,
            env={**kept, "COMPOSIO_BASE_URL": server.url, "COMPOSIO_API_KEY": server.key},
            capture_output=True,
            text=True,
            timeout=_PROGRAM_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run
