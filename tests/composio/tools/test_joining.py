"""A call that is sent again while the first is under way is one call; all else is as many as were sent."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from tests.composio.tools.calling import WORKBENCH, Calling
from tests.host.support import eventually
from tests.server.running import Running, make_key

from workbench.model.access import Scope

# A side effect that is counted, and an end that the test decides.
COUNTS = """\
import os, time
with open('/mnt/files/runs', 'a') as runs: runs.write('x')
until = time.monotonic() + 30
while not os.path.exists('/mnt/files/go') and time.monotonic() < until: time.sleep(0.02)
open('/mnt/files/runs').read()
"""


def code(text: str = COUNTS) -> dict[str, Any]:
    return {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": text}}


def runs(calling: Calling) -> int:
    """How often it has begun."""
    items = calling.get("mounts/files/items")["items"]
    return next((int(one["size"]) for one in items if one["mount_relative_path"] == "runs"), 0)


def go(calling: Calling) -> None:
    assert calling.data("COMPOSIO_REMOTE_BASH_TOOL", {"command": "touch /mnt/files/go"}) is not None


def waiting(calling: Calling) -> int:
    """Cells of the session that have no end yet."""
    told = calling.client.get(f"/v1/sessions/{calling.session}").json()
    return len(told["queue"])


@pytest.mark.parametrize("prefixes", [("/api/v3.1", "/api/v3.1"), ("/api/v3.1", "/api/v3")])
def test_two_of_the_same_in_flight_are_carried_out_once(calling: Calling, prefixes: tuple[str, str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        callings = [Calling(calling.client, calling.session, prefix) for prefix in prefixes]
        asked = [pool.submit(one.post, "execute", code()) for one in callings]
        eventually(lambda: runs(calling) == 1, "it has begun")
        go(calling)
        first, second = (one.result().json() for one in asked)
    assert first == second
    assert first["data"]["results"] == "'x'"
    assert runs(calling) == 1
    # Both have ended: the same words are a new call now.
    assert calling.run(WORKBENCH, code()["arguments"])["data"]["results"] == "'xx'"


def test_others_are_not_joined(calling: Calling, server: Running) -> None:
    key = make_key(server.settings, Scope.SESSIONS).presented
    with ThreadPoolExecutor(4) as pool, server.client(key) as other:
        asked = [
            pool.submit(calling.post, "execute", code()),
            pool.submit(calling.post, "execute", code(COUNTS + "# another")),
            pool.submit(Calling(other, calling.session).post, "execute", code()),
            pool.submit(calling.client.post, f"{calling.address}/execute", json=code(), headers={"x-call-id": "mine"}),
        ]
        eventually(lambda: runs(calling) == 1 and waiting(calling) == 4, "all are there")
        go(calling)
        told = [one.result().json()["log_id"] for one in asked]
    assert len(set(told)) == 4
    assert runs(calling) == 4


def test_after_the_first_has_left_the_second_joins_what_it_began(calling: Calling, server: Running) -> None:
    where = urllib.parse.urlsplit(server.url)
    line = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    headers = {"x-api-key": server.key, "content-type": "application/json"}
    line.request("POST", f"{calling.address}/execute", json.dumps(code()), headers)
    assert line.getresponse().read1(1) == b" "
    line.close()
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(calling.post, "execute", code())
        eventually(lambda: runs(calling) == 1, "it has begun")
        assert not again.done()
        go(calling)
        told = again.result().json()
    assert (told["result_type"], told["data"]["results"]) == ("completed", "'x'")
    assert runs(calling) == 1


def test_calls_for_a_user_are_joined_as_well(client: httpx2.Client, made: list[str]) -> None:
    def ask(text: str) -> httpx2.Response:
        body = {"user_id": "joiner", "arguments": {"code_to_execute": text}}
        return client.post(f"/api/v3.1/tools/execute/{WORKBENCH}", json=body)

    ask("1")
    made.append(client.get("/v1/sessions", params={"user_id": "joiner"}).json()["items"][0]["id"])
    calling = Calling(client, made[-1])
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, COUNTS) for _ in range(2)]
        eventually(lambda: runs(calling) == 1, "it has begun")
        go(calling)
        assert {one.result().json()["log_id"] for one in asked} != {""}
        assert len({one.result().json()["log_id"] for one in asked}) == 1
