"""Sessions that clients get which name none: they go with their clients, or after a week, and no others ever do."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.host.support import eventually
from tests.mcp.http.talking import BASH, NEWER, OLDER, Raw, client_at, data_of, own_settings, run, structured_in
from tests.server.running import Running, problem_of, running

from workbench.data_folder import DataFolder
from workbench.settings import Settings


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    """A data folder of these tests."""
    with own_settings() as settings:
        yield settings


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[Running]:
    """Its server."""
    with running(settings) as server:
        yield server


def _state(http: httpx2.Client, name: str) -> str:
    answer = http.get(f"/v1/sessions/{name}")
    state: str = answer.json()["state"] if answer.status_code == 200 else str(answer.status_code)
    return state


def _ran(raw: Raw, command: str) -> str:
    """The session that a command ran in."""
    said: dict[str, Any] = structured_in(raw.call(command, BASH))
    assert said["successful"], said
    name: str = said["data"]["session"]["id"]
    return name


def _left(raw: Raw) -> None:
    assert raw.http.delete(raw.path, headers=raw.headers()).status_code == 200


def test_without_files_it_goes_with_its_client_and_that_is_in_the_audit(server: Running, http: httpx2.Client) -> None:
    raw = Raw(http).connect()
    name = _ran(raw, "echo scratch > ~/a")
    assert name.startswith("mcp-")
    _left(raw)
    eventually(lambda: _state(http, name) == "404", "it is deleted")
    deleted = [one for one in http.get("/v1/audit").json()["items"] if one["action"] == "session.delete"]
    assert [one["detail"] for one in deleted if one["session"] == name] == ["its client has left"]


def test_with_files_it_stays(server: Running, http: httpx2.Client) -> None:
    kept, empty = Raw(http).connect(), Raw(http).connect()
    name, other = _ran(kept, "echo work > /mnt/files/a"), _ran(empty, "true")
    _left(kept)
    _left(empty)
    eventually(lambda: _state(http, other) == "404", "the other one is deleted")
    assert _state(http, name) == "idle"
    assert http.delete(f"/v1/sessions/{name}").status_code == 204


def test_one_in_which_something_runs_or_that_has_branches_stays(server: Running, http: httpx2.Client) -> None:
    busy, parent, empty = Raw(http).connect(), Raw(http, "/mcp?tools=all").connect(), Raw(http).connect()
    works = _ran(busy, "sleep 1000 > /dev/null 2>&1 &")
    root = _ran(parent, "true")
    branched = parent.ask("tools/call", {"name": "branch_session", "arguments": {}})
    branch = structured_in(branched)["session_id"]
    other = _ran(empty, "true")
    for one in (busy, parent, empty):
        _left(one)
    eventually(lambda: _state(http, other) == "404", "the other one is deleted")
    for name in (works, root, branch):
        assert _state(http, name) == "idle"
        assert http.delete(f"/v1/sessions/{name}").status_code == 204


def test_what_a_caller_named_stays_whoever_leaves(server: Running, http: httpx2.Client) -> None:
    mine = f"t-{secrets.token_hex(4)}"
    named, empty = Raw(http, f"/mcp?session={mine}").connect(), Raw(http).connect()
    assert _ran(named, "true") == mine
    other = _ran(empty, "true")
    own = Raw(http, f"/tool_router/{mine}/mcp").connect()
    assert _ran(own, "true") == mine
    going_on = Raw(http, f"/mcp?session={other}").connect()
    assert _ran(going_on, "true") == other
    for one in (named, own, going_on):
        _left(one)
    _left(Raw(http).connect())
    again = Raw(http).connect()
    goes = _ran(again, "true")
    _left(again)
    eventually(lambda: _state(http, goes) == "404", "the last one is deleted")
    assert [_state(http, name) for name in (mine, other)] == ["idle", "idle"]
    for name in (mine, other):
        assert http.delete(f"/v1/sessions/{name}").status_code == 204


def test_nobody_gives_a_session_of_their_own_such_a_name(server: Running, http: httpx2.Client) -> None:
    name = f"mcp-{secrets.token_hex(6)}"
    answer = http.post("/v1/sessions", json={"id": name})
    assert answer.status_code == 422
    assert "choose another" in problem_of(answer)["message"]
    answer = Raw(http, f"/mcp?session={name}").ask("tools/list")
    assert answer.status_code == 422
    assert "choose another" in answer.text
    assert _state(http, name) == "404"


async def test_what_nobody_used_for_a_week_is_swept_and_nothing_else(settings: Settings) -> None:
    named = f"t-{secrets.token_hex(4)}"
    with running(settings) as server, server.client() as http:
        old, fresh = Raw(http).connect(), Raw(http).connect()
        unused, used = (_ran(one, "echo work > /mnt/files/a") for one in (old, fresh))
        busy = _ran(Raw(http).connect(), "sleep 1000 > /dev/null 2>&1 &")
        assert _ran(Raw(http, f"/mcp?session={named}").connect(), "true") == named
        async with client_at(f"{server.url}/mcp", server.key, NEWER) as client:
            shared = data_of(await run(client, "1"))["session"]["id"]
    with sqlite3.connect(DataFolder(settings.data_dir).records) as records:
        for name in (unused, busy, named, shared):
            records.execute("UPDATE sessions SET used_at = '2020-01-01T00:00:00.000000Z' WHERE id = ?", (name,))
    records.close()
    with running(settings) as server, server.client() as http:
        eventually(lambda: [_state(http, name) for name in (unused, shared)] == ["404", "404"], "they are swept")
        assert [_state(http, name) for name in (used, busy, named)] == ["idle"] * 3
        assert not (DataFolder(settings.data_dir).files / unused).exists()
        for name in (used, busy, named):
            assert http.delete(f"/v1/sessions/{name}").status_code == 204
        async with client_at(f"{server.url}/mcp", server.key, OLDER) as client:
            assert data_of(await run(client, "1"))["results"] == "1"
