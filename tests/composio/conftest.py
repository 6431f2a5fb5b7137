"""One server and one host for all tests here, asked by plain HTTP as SDKs of the sessions API ask it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, running

PREFIXES = ("/api/v3.1", "/api/v3")


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """The one that all share."""
    with own_settings(max_body_mib=1, toolkits_shipped="none") as settings, running(settings) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[httpx2.Client]:
    """With the key of everything, in the header that SDKs use."""
    with server.client("") as client:
        client.headers["x-api-key"] = server.key
        yield client


@pytest.fixture(params=PREFIXES)
def prefix(request: pytest.FixtureRequest) -> str:
    """Both addresses of the API."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def made(client: httpx2.Client) -> Iterator[list[str]]:
    """Sessions that go at the end, by name."""
    names: list[str] = []
    yield names
    for name in names:
        assert client.delete(f"/v1/sessions/{name}").status_code in {204, 404}


@pytest.fixture
def session(client: httpx2.Client, made: list[str]) -> str:
    """A session of the test's own, of the API."""
    answer = client.post("/api/v3.1/tool_router/session", json={"user_id": "tester"})
    assert answer.status_code == 201, answer.text
    name: str = answer.json()["session_id"]
    made.append(name)
    return name
