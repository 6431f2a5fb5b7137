"""One server and one host for most tests here; those that end theirs have their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from tests.mcp.http.talking import NEWER, OLDER, client_at, own_settings
from tests.server.running import Running, running

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """The one that most tests share."""
    with own_settings(max_body_mib=1) as settings, running(settings) as server:
        yield server


@pytest.fixture
def http(server: Running) -> Iterator[httpx2.Client]:
    """With the key of everything."""
    with server.client() as client:
        yield client


@pytest.fixture(params=[OLDER, NEWER])
def mode(request: pytest.FixtureRequest) -> str:
    """Both eras of the protocol: with a connection that clients keep, and without."""
    era: str = request.param
    return era


@pytest.fixture
def connect(server: Running, mode: str) -> Connect:
    """Opens a client."""

    def connected(path: str = "/mcp", key: str = "", **more: Any) -> AbstractAsyncContextManager[Client]:
        return client_at(server.url + path, key or server.key, more.pop("mode", mode), **more)

    return connected
