"""A client does not notice that its server was killed and started anew, and a server that stops interrupts nothing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
import signal
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from tests.host.support import eventually
from tests.mcp.http.talking import TOOL, Raw, client_at, data_of, own_settings, run, structured_in
from tests.restart.server import Server, served
from tests.server.running import make_key

from workbench.model.access import Scope

COUNT = "import time\nfor n in range({}):\n    time.sleep(0.1)\n    done = n\n'whole'"


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server that these tests kill; each finds it running, and leaves it so."""
    with own_settings() as settings, served(settings) as server:
        yield server


def _restarted(server: Server, number: int = signal.SIGKILL) -> None:
    server.end(number)
    server.start()


def _queue(server: Server, name: str) -> list[dict[str, Any]]:
    with server.client() as http:
        answer = http.get(f"/v1/sessions/{name}")
        queue: list[dict[str, Any]] = answer.json()["queue"] if answer.status_code == 200 else []
        return queue


async def test_a_client_goes_on_after_its_server_was_killed_and_started_again(own: Server, mode: str) -> None:
    async with client_at(f"{own.url}/mcp", own.key, mode) as client:
        before = data_of(await run(client, f"kept = '{mode}'"))["session"]["id"]
        for _ in range(2):
            await asyncio.to_thread(_restarted, own)
            data = data_of(await run(client, "kept"))
            assert (data["results"], data["session"]["id"]) == (f"'{mode}'", before)
        seen: list[float] = []

        async def on_progress(progress: float, _: float | None, __: str | None) -> None:
            seen.append(progress)

        assert data_of(await run(client, COUNT.format(15), progress_callback=on_progress))["results"] == "'whole'"
        assert seen
        assert len((await client.list_tools()).tools) == 2


async def test_a_cell_that_runs_when_the_server_is_killed_goes_on(own: Server, mode: str) -> None:
    name = f"k-{secrets.token_hex(4)}"

    async def nobody(_: float, __: float | None, ___: str | None) -> None:
        told.set()

    told = asyncio.Event()
    async with client_at(f"{own.url}/mcp?session={name}", own.key, mode) as client:
        await run(client, "done = 0")
        call = asyncio.create_task(run(client, COUNT.format(60), progress_callback=nobody))
        await told.wait()
        await asyncio.to_thread(_restarted, own)
        with pytest.raises(MCPError):
            await call
        # It waits until the first one has ended.
        assert data_of(await run(client, "done"))["results"] == "59"


def test_a_connection_from_before_has_no_stream_and_can_be_ended(own: Server) -> None:
    with own.client() as http:
        raw = Raw(http).connect()
        raw.call("1")
        _restarted(own)
        listening = http.get("/mcp", headers=raw.headers())
        assert (listening.status_code, listening.headers["allow"]) == (405, "POST, DELETE")
        assert structured_in(raw.call("1"))["successful"] is True
        assert http.delete("/mcp", headers=raw.headers()).status_code == 200
        assert raw.call("1").status_code == 404
        assert http.get("/mcp", headers=raw.headers()).status_code == 404


def test_a_connection_from_before_leads_to_the_session_of_its_key_only(own: Server) -> None:
    other = make_key(own.settings, Scope.SESSIONS).presented
    with own.client() as http, httpx2.Client(base_url=own.url, trust_env=False, timeout=60.0) as stranger:
        raw = Raw(http).connect()
        mine = structured_in(raw.call("secret = 1"))["data"]["session"]["id"]
        _restarted(own)
        stranger.headers["x-api-key"] = other
        theirs = structured_in(Raw(stranger, connection=raw.connection).call("'secret' in globals()"))["data"]
        assert (theirs["results"], theirs["session"]["id"] != mine) == ("False", True)
        # Nor can they end it for who has it.
        assert stranger.delete("/mcp", headers=raw.headers()).status_code == 200
        assert structured_in(raw.call("secret"))["data"]["results"] == "1"


def test_a_call_on_a_connection_from_before_can_be_called_off_and_is_not_by_a_broken_line(own: Server) -> None:
    name = f"q-{secrets.token_hex(4)}"
    with own.client() as http, concurrent.futures.ThreadPoolExecutor() as pool:
        raw = Raw(http, f"/mcp?session={name}").connect()
        raw.call("done = 0")
        _restarted(own)
        call = pool.submit(_posted, raw, 77, COUNT.format(600))
        eventually(lambda: _queue(own, name), "it runs")
        off = {"method": "notifications/cancelled", "params": {"requestId": 77}}
        assert raw.post({**off, "params": {"requestId": 78}}).status_code == 202
        assert raw.post(off).status_code == 202
        call.result(30)
        eventually(lambda: not _queue(own, name), "it was interrupted")
        params = {"name": TOOL, "arguments": {"code_to_execute": COUNT.format(30)}}
        body = {"jsonrpc": "2.0", "id": 79, "method": "tools/call", "params": params}
        with http.stream("POST", raw.path, json=body, headers=raw.headers()) as answer:
            assert answer.status_code == 200
            eventually(lambda: _queue(own, name), "it runs")
        assert structured_in(raw.call("done"))["data"]["results"] == "29"
        history = http.get(f"/v1/sessions/{name}/history").json()["items"]
        assert [one["result"]["outcome"] for one in history] == ["ok", "interrupted", "ok", "ok"]


def _posted(raw: Raw, number: int, code: str) -> httpx2.Response:
    params = {"name": TOOL, "arguments": {"code_to_execute": code}}
    return raw.post({"id": number, "method": "tools/call", "params": params})


def test_a_stop_ends_streams_lets_what_is_short_end_and_interrupts_nothing(own: Server) -> None:
    short, long = f"s-{secrets.token_hex(4)}", f"l-{secrets.token_hex(4)}"
    with own.client() as http, concurrent.futures.ThreadPoolExecutor() as pool:
        raws = {name: Raw(http, f"/mcp?session={name}").connect() for name in (short, long)}
        for raw in raws.values():
            raw.call("done = 0")
        listening = pool.submit(_listened, http, raws[short])
        calls = {name: pool.submit(raws[name].call, COUNT.format(n)) for name, n in ((short, 50), (long, 200))}
        eventually(lambda: _queue(own, short) and _queue(own, long), "both run")
        began = time.monotonic()
        ending = pool.submit(own.end, signal.SIGTERM)
        assert listening.result(30) - began < 5
        assert structured_in(calls[short].result(30))["data"]["results"] == "'whole'"
        told = structured_in(calls[long].result(30))
        assert 9 < time.monotonic() - began < 14
        assert told["error"].startswith("the server stops")
        assert "Nothing ran" not in str(told)
        assert told["next"]
        assert ending.result(30) == 0
        assert time.monotonic() - began < 16
    own.start()
    with own.client() as http:
        again = Raw(http, f"/mcp?session={long}", connection=raws[long].connection)
        assert structured_in(again.call("done"))["data"]["results"] == "199"


def test_a_stop_does_not_interrupt_what_runs_for_a_client_that_is_gone(own: Server) -> None:
    name = f"g-{secrets.token_hex(4)}"
    with own.client() as http:
        raw = Raw(http, f"/mcp?session={name}").connect()
        raw.call("done = 0")
        params = {"name": TOOL, "arguments": {"code_to_execute": COUNT.format(80)}}
        body = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params}
        with http.stream("POST", raw.path, json=body, headers=raw.headers()):
            eventually(lambda: _queue(own, name), "it runs")
    began = time.monotonic()
    assert own.end(signal.SIGTERM) == 0
    # Nobody waits for it, so nobody is waited for.
    assert time.monotonic() - began < 6
    own.start()
    with own.client() as http:
        again = Raw(http, raw.path, connection=raw.connection)
        assert structured_in(again.call("done"))["data"]["results"] == "79"


def _listened(http: httpx2.Client, raw: Raw) -> float:
    """When it came to its end."""
    with http.stream("GET", raw.path, headers=raw.headers()) as stream:
        assert stream.status_code == 200
        # The end is a whole one: a stream that breaks off would raise.
        for _ in stream.iter_bytes():
            pass
        return time.monotonic()
