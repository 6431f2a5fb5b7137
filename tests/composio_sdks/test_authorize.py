"""`session.authorize` to its end: the link is the server's own page, and who waits is told once it was filled in."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.composio_sdks.conftest import LINES
from tests.composio_sdks.own_network import own_network
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import World
from tests.restart.server import own_settings
from tests.server.running import running

pytestmark = [pytest.mark.long, pytest.mark.timeout(200)]


@dataclass(frozen=True)
class Authorized:
    """What one line of SDKs was told, and the token that a person typed in."""

    told: Told
    token: str
    log: str


@pytest.fixture(scope="module")
def place() -> Iterator[World]:
    """A server that has GitHub's tools, and no client of OAuth2 there: its accounts are connected by a form."""
    if os.geteuid() != 0:
        pytest.skip("a network of its own, with servers that have sandboxes, is root's")
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(own_network())
        settings = stack.enter_context(own_settings(toolkits_shipped="github"))
        server = stack.enter_context(running(settings, inside=tuple(network.within())))
        yield World(network, server, server, "")


@pytest.fixture(scope="module", params=LINES)
def authorized(request: pytest.FixtureRequest, place: World) -> Authorized:
    language, _, line = request.param.partition(" ")
    token = f"ghp_{secrets.token_hex(18)}"
    more = {"TOKEN": token, "USER_ID": request.param}
    if language == "python":
        done = place.python(line, place.plain, "-m", "tests.composio_sdks.python.authorize", **more)
    else:
        done = place.node(line, place.plain, "authorize.mjs", **more)
    assert done.code == 0, done.stderr
    return Authorized(Told(request.param, place.plain, done.facts), token, place.plain.log.read_text(encoding="utf-8"))


def test_the_link_is_a_page_of_the_server(authorized: Authorized) -> None:
    asked = authorized.told.gave("authorize")
    assert asked["status"] == "INITIATED"
    assert re.fullmatch(rf"{re.escape(authorized.told.server.url)}/connect/[A-Za-z0-9_-]{{43}}", asked["redirect_url"])


def test_who_waits_is_told_once_the_form_was_filled_in(authorized: Authorized) -> None:
    account = authorized.told.gave("wait")
    assert (account["id"], account["status"]) == (authorized.told.gave("authorize")["id"], "ACTIVE")
    assert authorized.told.gave("get")["status"] == "ACTIVE"


def test_a_session_sees_the_account_from_then_on(authorized: Authorized) -> None:
    (before,) = authorized.told.gave("toolkits before")["items"]
    (after,) = authorized.told.gave("toolkits after")["items"]
    assert not before["connection"]["is_active"]
    assert after["connection"]["is_active"]
    assert after["connection"]["connected_account"]["id"] == authorized.told.gave("authorize")["id"]


def test_who_waits_for_what_nobody_does_gives_up(authorized: Authorized) -> None:
    refused = authorized.told.raised("wait in vain")
    assert "time" in f"{refused.kind} {refused.message}".lower()


def test_what_was_typed_in_is_told_to_nobody(authorized: Authorized) -> None:
    told = json.dumps([authorized.told._facts[name] for name in authorized.told.names])
    assert authorized.token not in told
    assert authorized.token not in authorized.log
    assert authorized.told.gave("authorize")["redirect_url"].rpartition("/")[2] not in authorized.log
