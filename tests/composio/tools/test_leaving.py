"""A server that leaves calls nothing off: whoever waits is told, and what runs goes on and is found again."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from tests.composio.tools.calling import WORKBENCH, Calling
from tests.host.support import eventually
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, running

from workbench.settings import Settings

WAITS = """\
import os, time
open('/mnt/files/begun', 'w').close()
until = time.monotonic() + 60
while not os.path.exists('/mnt/files/go') and time.monotonic() < until: time.sleep(0.02)
'to its end' if os.path.exists('/mnt/files/go') else 'too late'
"""


@pytest.fixture
def settings() -> Iterator[Settings]:
    with own_settings() as settings:
        yield settings


@contextmanager
def calling_of(server: Running, session: str = "") -> Iterator[Calling]:
    with server.client("") as client:
        client.headers["x-api-key"] = server.key
        made = session or client.post("/api/v3.1/tool_router/session", json={"user_id": "u"}).json()["session_id"]
        yield Calling(client, made)


@contextmanager
def asked(server: Running, calling: Calling) -> Iterator[http.client.HTTPResponse]:
    """A call that is under way; its headers are there. The connection ends with the context."""
    where = urllib.parse.urlsplit(server.url)
    line = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    body = {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": WAITS}}
    headers = {"x-api-key": server.key, "content-type": "application/json"}
    with closing(line):
        line.request("POST", f"{calling.address}/execute", json.dumps(body), headers)
        with line.getresponse() as answer:
            assert answer.read1(1) == b" "
            eventually(lambda: "begun" in names(calling), "it has begun")
            yield answer


def names(calling: Calling) -> list[str]:
    return [one["mount_relative_path"] for one in calling.get("mounts/files/items")["items"]]


def ended(settings: Settings, session: str) -> dict[str, Any]:
    """What the next server finds, once the cell may end."""
    with running(settings) as server, calling_of(server, session) as calling:
        assert calling.data("COMPOSIO_REMOTE_BASH_TOOL", {"command": "touch /mnt/files/go"}) is not None
        history = calling.client.get(f"/v1/sessions/{session}/history").json()["items"]
        cell = next(one["id"] for one in history if one["kind"] == "cell")
        told = calling.client.get(f"/v1/sessions/{session}/cells/{cell}", params={"wait_s": "30"}).json()
        result: dict[str, Any] = told["result"]
        return result


def test_who_waits_is_told_that_it_goes_on(settings: Settings) -> None:
    with running(settings) as server, calling_of(server) as calling:
        with asked(server, calling) as answer:
            server.process.terminate()
            told = json.loads(answer.read())
        assert told["result_type"] == "failed"
        assert "goes on" in told["error"] or "go on" in told["error"]
        assert not told["error"].startswith("not run")
        assert server.process.wait(30) == 0
    assert ended(settings, calling.session)["results"]["text"] == "'to its end'"


def test_what_somebody_began_who_has_left_is_not_called_off_by_a_stop(settings: Settings) -> None:
    with running(settings) as server, calling_of(server) as calling:
        with asked(server, calling):
            pass
        assert server.stop() == 0
    assert ended(settings, calling.session)["results"]["text"] == "'to its end'"


def test_calls_of_who_hangs_up_count_until_they_have_ended(settings: Settings) -> None:
    # What nobody knows is left aside, but was read.
    large = "#" * 7 * 1024 * 1024
    with running(settings) as server, calling_of(server) as calling:
        with asked(server, calling):
            pass
        statuses = []
        for number in range(11):
            body = {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": str(number)}, "more": large}
            with calling.client.stream("POST", f"{calling.address}/execute", json=body) as answer:
                statuses.append(answer.status_code)
        # 64 MiB of a key's are held at once.
        assert statuses == [200] * 9 + [429] * 2
        # The room is free again when they have ended, as they do with their session.
        assert calling.client.delete(f"/v1/sessions/{calling.session}").status_code == 204
        with calling_of(server) as next_one:
            body = {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": "1"}, "more": large}
            eventually(lambda: next_one.post("execute", body).status_code == 200, "there is room")
