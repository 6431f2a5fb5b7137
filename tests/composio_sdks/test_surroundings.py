"""Where the SDKs run, and what else is at the addresses that they hand out."""

from __future__ import annotations

import subprocess

import pytest
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import Asked, World

pytestmark = pytest.mark.long


def test_nothing_that_an_sdk_sends_can_leave_its_network(world: World) -> None:
    read = ("cat", "/proc/net/route", "/proc/net/dev")
    told = subprocess.run(world.network.within(*read), capture_output=True, text=True, timeout=10, check=True).stdout
    routes, _, interfaces = told.partition("Inter-|")
    assert len(routes.splitlines()) == 1, "the heading alone: there is no way out"
    assert [line.split(":")[0].strip() for line in interfaces.splitlines() if ":" in line] == ["lo"]


def test_the_mcp_address_of_a_session_takes_the_headers_that_the_sdk_gives_with_it(told: Told, world: World) -> None:
    mcp = told.gave("create")["mcp"]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "anybody", "version": "1"},
        },
    }
    headers = {**mcp["headers"], "accept": "application/json, text/event-stream"}
    path = mcp["url"].removeprefix(told.server.url)
    (answer,) = world.ask(Asked("POST", path, headers, hello))
    assert answer.status == 200, answer
    assert answer.json["result"]["serverInfo"]["name"]
