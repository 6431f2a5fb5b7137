"""Toolkits and connections by our own SDK, sync and async, on a real server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.connections.authorisation import CLIENT_ID, CLIENT_SECRET, Authorisation, authorisation_server
from tests.connections.serving import Serving, serving
from tests.mcp.http.talking import own_settings

from workbench import AsyncWorkbench, Workbench
from workbench.errors import InvalidRequest, NotFound, UpstreamError, UpstreamRefused, UpstreamUnavailable
from workbench.model.connection import ConnectionStatus


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Serving, Authorisation]]:
    """One server and one service for all tests here."""
    with (
        authorisation_server() as authorisation,
        own_settings(toolkits_allow="127.0.0.1") as settings,
        serving(settings, authorisation.url) as server,
    ):
        authorisation.world.redirect_uris.add(f"{server.url}/connect/callback")
        yield server, authorisation


@pytest.fixture
def bench(world: tuple[Serving, Authorisation]) -> Iterator[Workbench]:
    with Workbench(world[0].url, world[0].key) as bench:
        yield bench


def _fill_in(url: str, key: str) -> None:
    """As a person does it."""
    parts = urlsplit(url)
    with httpx2.Client(base_url=f"{parts.scheme}://{parts.netloc}", trust_env=False) as browser:
        done = browser.post(parts.path, data={"kind": "API_KEY", "field.api_key": key})
        assert done.status_code == 303, done.text


def test_an_account_is_begun_waited_for_listed_and_removed(bench: Workbench) -> None:
    begun = bench.connections.begin("keyed", "ann", alias="work")
    assert begun.connection.status is ConnectionStatus.INITIATED
    with pytest.raises(UpstreamUnavailable, match="was not connected within 0 s"):
        bench.connections.wait(begun.connection.id, timeout_s=0)
    person = threading.Timer(0.5, _fill_in, (begun.url, "CANARY"))
    person.start()
    try:
        account = bench.connections.wait(begun.connection.id, timeout_s=30)
    finally:
        person.join(30)
    assert (account.status, account.alias, account.user_id) == (ConnectionStatus.ACTIVE, "work", "ann")
    assert [one.id for one in bench.connections.list("ann", toolkit="keyed")] == [account.id]
    with pytest.raises(InvalidRequest, match="not renewed"):
        bench.connections.refresh(account.id)
    assert bench.connections.remove(account.id) is False
    with pytest.raises(NotFound):
        bench.connections.get(account.id)


def test_more_accounts_than_a_page_has_are_listed(bench: Workbench) -> None:
    made = []
    for number in range(6):
        made += [bench.connections.begin("keyed", f"pages-{number}").connection.id for _ in range(18)]
    mine = [one.id for one in bench.connections.list() if one.user_id.startswith("pages-")]
    assert mine == made


def test_an_account_that_came_to_nothing_is_not_waited_for(
    bench: Workbench, world: tuple[Serving, Authorisation]
) -> None:
    begun = bench.connections.begin("keyed", "off")
    _fill_in(begun.url, "CANARY")
    with world[0].client() as client:
        place = f"/api/v3.1/connected_accounts/{begun.connection.id}/status"
        assert client.patch(place, json={"enabled": False}).status_code == 200
    with pytest.raises(UpstreamRefused, match="is inactive: it was switched off"):
        bench.connections.wait(begun.connection.id, timeout_s=30)


def test_clients_of_oauth2_are_set_up(bench: Workbench) -> None:
    config = bench.auth_configs.create("notes", CLIENT_ID, CLIENT_SECRET, scopes=["notes.read"])
    assert (config.toolkit, config.scopes) == ("notes", ["notes.read"])
    assert [one.id for one in bench.auth_configs.list()] == [config.id]
    begun = bench.connections.begin("notes", "ann", auth_config_id=config.id)
    assert begun.connection.auth_config_id == config.id
    bench.auth_configs.remove(config.id)
    assert bench.auth_configs.list() == []
    with pytest.raises(NotFound, match="did you mean notes"):
        bench.auth_configs.create("note", CLIENT_ID)


def test_toolkits_are_added_shown_tried_and_removed(bench: Workbench) -> None:
    with pytest.raises(InvalidRequest, match="did you mean 'url'"):
        bench.toolkits.add("mine", urls="http://127.0.0.1:9/mcp")
    with pytest.raises(UpstreamError):
        bench.toolkits.add("mine", url="http://127.0.0.1:9/mcp")
    added = bench.toolkits.add("mine", url="http://127.0.0.1:9/mcp", test=False)
    assert (added.slug, added.kind, added.tools) == ("mine", "url", [])
    assert [one.slug for one in bench.toolkits.list()] == ["mine"]
    assert bench.toolkits.show("mine").problem
    with pytest.raises(UpstreamError):
        bench.toolkits.test("mine")
    bench.toolkits.remove("mine")
    with pytest.raises(NotFound):
        bench.toolkits.show("mine")


async def test_the_async_client_does_the_same(world: tuple[Serving, Authorisation]) -> None:
    async with AsyncWorkbench(world[0].url, world[0].key) as bench:
        begun = await bench.connections.begin("keyed", "async-ann")
        waiting = asyncio.create_task(bench.connections.wait(begun.connection.id, timeout_s=30))
        await asyncio.to_thread(_fill_in, begun.url, "CANARY")
        account = await waiting
        assert account.status is ConnectionStatus.ACTIVE
        assert [one.id async for one in bench.connections.list("async-ann")] == [account.id]
        with pytest.raises(InvalidRequest):
            await bench.connections.refresh(account.id)
        assert await bench.connections.remove(account.id) is False
        added = await bench.toolkits.add("theirs", url="http://127.0.0.1:9/mcp", test=False)
        assert [one.slug for one in await bench.toolkits.list()] == [added.slug]
        assert (await bench.toolkits.show("theirs")).problem
        with pytest.raises(UpstreamError):
            await bench.toolkits.test("theirs")
        await bench.toolkits.remove("theirs")
        config = await bench.auth_configs.create("notes", CLIENT_ID)
        assert config.id in [one.id for one in await bench.auth_configs.list()]
        await bench.auth_configs.remove(config.id)
