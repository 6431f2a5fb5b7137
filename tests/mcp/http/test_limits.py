"""What one key, or the token of one session, can take of a real server: never so much that others are not served."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import secrets
import socket
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.host.support import eventually
from tests.mcp.http.talking import ACCEPT, NEWER, OLDER_VERSION, TOOL, Raw, own_settings, structured_in
from tests.server.running import Running, make_key, running

from workbench.model.access import Scope
from workbench.server.in_flight import FOR_A_KEY

MIB = 1024 * 1024
MANY = b"{}," * (2 * MIB) + b"{}"


@pytest.fixture(scope="module")
def own() -> Iterator[Running]:
    """With bodies of the usual size."""
    with own_settings() as settings, running(settings) as server:
        yield server


@pytest.fixture
def key(own: Running) -> Iterator[httpx2.Client]:
    """One that does too much."""
    with own.client(make_key(own.settings, Scope.SESSIONS).presented) as client:
        yield client


def _memory(server: Running) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _code(number: int, code: str) -> dict[str, Any]:
    params = {"name": TOOL, "arguments": {"code_to_execute": code}}
    return {"id": number, "method": "tools/call", "params": params}


@pytest.mark.parametrize("version", [OLDER_VERSION, NEWER])
def test_a_small_body_of_many_values_is_refused_in_words_and_costs_no_memory(
    own: Running, key: httpx2.Client, version: str
) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":[' + MANY + b"]}}}"
    headers = {**ACCEPT, "content-type": "application/json", "mcp-protocol-version": version}
    raw = Raw(key).connect()
    before = _memory(own)
    for extra in ({}, {"mcp-session-id": raw.connection}, {"mcp-session-id": "6f1c2a3b4d5e4f60a1b2c3d4e5f60718"}):
        answer = key.post("/mcp", content=body, headers={**headers, **extra})
        assert answer.status_code == 413, answer.text
        assert "100,000 values" in answer.json()["error"]["message"]
    rest = key.post("/v1/sessions/x/cells", content=b'{"code":[' + MANY + b"]}", headers=headers)
    assert (rest.status_code, rest.json()["error"]["code"]) == (413, "too_large")
    # A parsed one would take 400 MB.
    assert _memory(own) - before < 100 * MIB


def test_a_cell_of_many_brackets_and_commas_is_run(key: httpx2.Client) -> None:
    code = "len(" + json.dumps(",[{" * MIB) + ")"
    assert structured_in(Raw(key).connect().call(code))["data"]["results"] == str(3 * MIB)


@contextlib.contextmanager
def _held(server: Running, key: httpx2.Client, count: int, sent: int) -> Iterator[list[socket.socket]]:
    """Requests whose bodies do not come to an end."""
    address = urllib.parse.urlsplit(server.url)
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: {key.headers['authorization']}\r\n"
        f"content-type: application/json\r\ncontent-length: {sent + 1}\r\n\r\n"
    ).encode()
    with contextlib.ExitStack() as kept:
        lines = []
        for _ in range(count):
            line = socket.create_connection((address.hostname or "", address.port or 0), timeout=30)
            lines.append(kept.enter_context(line))
            line.sendall(head + b" " * sent)
        yield lines


def test_requests_without_an_answer_are_bounded_by_key_and_others_are_served(own: Running, key: httpx2.Client) -> None:
    with _held(own, key, FOR_A_KEY.requests, 1):
        eventually(lambda: key.get("/v1/sessions").status_code == 429, "it has as many as it may")
        refused = key.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=ACCEPT)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert f"this key has {FOR_A_KEY.requests:,} requests" in refused.json()["error"]["message"]
        with own.client() as other:
            assert other.get("/v1/sessions").status_code == 200
    eventually(lambda: key.get("/v1/sessions").status_code == 200, "it has room again")


def test_bytes_without_an_answer_are_bounded_by_key_and_others_are_served(own: Running, key: httpx2.Client) -> None:
    large = {"code": "#" * (7 * MIB)}
    with _held(own, key, 9, 7 * MIB):
        refused = key.post("/v1/sessions/x/cells", json=large)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "hold 64 MiB" in refused.json()["error"]["message"]
        # What is small still has room.
        assert key.get("/v1/sessions").status_code == 200
        with own.client() as other:
            assert other.post("/v1/sessions/x/cells", json=large).status_code != 429
    eventually(lambda: key.post("/v1/sessions/x/cells", json=large).status_code != 429, "it has room again")


def test_the_token_of_a_session_takes_no_connections_of_others_and_goes_on_with_all_of_its_own(own: Running) -> None:
    name = f"t-{secrets.token_hex(4)}"
    with own.client() as http:
        http.post("/v1/sessions", json={"id": name}).raise_for_status()
        token = http.post(f"/v1/sessions/{name}/tokens", json={}).json()["token"]
        with own.client(token) as few:
            raws = [Raw(few).connect() for _ in range(12)]
            began = time.monotonic()
            for number, raw in enumerate((raws[0], raws[-1])):
                assert structured_in(raw.call(str(number)))["data"]["results"] == str(number)
            assert time.monotonic() - began < 60


def test_the_id_of_a_message_without_an_answer_is_not_taken_twice(key: httpx2.Client) -> None:
    raw = Raw(key, f"/mcp?session=i-{secrets.token_hex(4)}").connect()
    raw.call("1")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(raw.post, _code(77, "import time; time.sleep(3); 'first'"))
        time.sleep(1)
        for number in (77, "77"):
            refused = raw.post(_code(number, "'second'"))  # type: ignore[arg-type]
            assert refused.status_code == 400, refused.text
            assert "an id of its own" in refused.json()["error"]["message"]
        assert raw.post({"id": 78, "method": "ping"}).status_code == 200
        assert structured_in(first.result(30))["data"]["results"] == "'first'"
    assert structured_in(raw.post(_code(77, "'third'")))["data"]["results"] == "'third'"
