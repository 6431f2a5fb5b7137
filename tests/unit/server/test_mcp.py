"""MCP's addresses on a service that says what a test wants: what needs no sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Message
from tests.unit.server.stand_in import Asked, StandInService, asked

from workbench.errors import Denied
from workbench.model.access import Caller
from workbench.model.ids import KeyId, ProjectId, SessionId
from workbench.server.mcp_arrival import check_names, could_be_ours
from workbench.server.mcp_connections import Connections, NumberTaken
from workbench.server.mcp_wires import Held, Inward, Outward
from workbench.server.serve import own_names
from workbench.settings import Settings

SETTINGS = Settings(data_dir=Path("/x"), images_dir=Path("/x/images"))


@pytest.mark.parametrize(
    ("host", "public", "good", "bad"),
    [
        ("127.0.0.1", "", ["localhost", "127.0.0.1:8787", "[::1]:8787", "LOCALHOST:1"], ["a.example", "", "127.1.x"]),
        ("127.0.0.1", "https://a.example:444/x", ["a.example", "A.example:9", "localhost"], ["b.a.example", "example"]),
        ("0.0.0.0", "https://a.example", ["a.example", "127.0.0.1"], ["b.example", "192.0.2.1"]),
        ("192.0.2.1", "https://a.example", ["a.example", "192.0.2.1:8787"], ["192.0.2.2"]),
        ("0.0.0.0", "", ["anything.example", ""], []),
    ],
)  # fmt: skip
def test_it_answers_to_its_own_names_only(host: str, public: str, good: list[str], bad: list[str]) -> None:
    names = own_names(replace(SETTINGS, listen_host=host, public_url=public))
    for name in good:
        check_names(Headers({"host": name}), names)
    for name in bad:
        with pytest.raises(Denied, match="WORKBENCH_PUBLIC_URL"):
            check_names(Headers({"host": name}), names)


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [("6f1c2a3b4d5e4f60a1b2c3d4e5f60718", True), ("6F1C2A3B4D5E4F60A1B2C3D4E5F60718", False), ("", False),
     ("0" * 32, False), ("6f1c2a3b-4d5e-4f60-a1b2-c3d4e5f60718", False),
     ("6f1c2a3b4d5e1f60a1b2c3d4e5f60718", False), ("x" * 32, False)],
)  # fmt: skip
def test_only_an_id_that_could_have_been_given_out_is_taken_up_again(text: str, is_ours: bool) -> None:
    assert could_be_ours(text) is is_ours


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


async def test_one_connection_too_many_is_told_so_and_fits_when_another_ends() -> None:
    async with asked(mcp_connections=2) as here:
        headers = {"accept": "application/json, text/event-stream"}
        known = [await here.client.post("/mcp", json=INITIALIZE, headers=headers) for _ in range(2)]
        assert [answer.status_code for answer in known] == [200, 200]
        refused = await here.client.post("/mcp", json=INITIALIZE, headers=headers)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
        assert "the server has 2 connections" in refused.json()["error"]["message"]
        ended = await here.client.delete("/mcp", headers={"mcp-session-id": known[0].headers["mcp-session-id"]})
        assert ended.status_code == 200
        assert (await here.client.post("/mcp", json=INITIALIZE, headers=headers)).status_code == 200
        assert [one["outcome"] for one in here.events() if one.get("status") == 503] == ["too_many_connections"]


ACCEPT = {"accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
TOKEN = Caller(project=ProjectId("p"), key=KeyId("token"), session=SessionId("mine"))


async def test_one_key_has_so_many_connections_and_its_longest_unused_end_without_being_missed() -> None:
    async with asked(mcp_connections=9, mcp_connections_of_key=2) as here:
        known = [await here.client.post("/mcp", json=INITIALIZE, headers=ACCEPT) for _ in range(20)]
        assert {answer.status_code for answer in known} == {200}
        assert await _kept(here) == 2
        for answer in (known[0], known[-1]):
            headers = {**ACCEPT, "mcp-session-id": answer.headers["mcp-session-id"]}
            assert (await here.client.post("/mcp", json=PING, headers=headers)).status_code == 200
        together = await asyncio.gather(*(here.client.post("/mcp", json=INITIALIZE, headers=ACCEPT) for _ in range(5)))
        assert {answer.status_code for answer in together} == {200}
        assert await _kept(here) == 2


async def test_the_token_of_a_session_has_fewer() -> None:
    async with asked(StandInService(TOKEN), mcp_connections_of_token=3) as here:
        for _ in range(5):
            assert (await here.client.post("/mcp", json=INITIALIZE, headers=ACCEPT)).status_code == 200
        assert await _kept(here) == 3


async def _kept(here: Asked) -> int:
    """How many the library has."""
    rooms: Any = await here.app.state.mcp._rooms()
    return len(rooms._kept._server_instances)


def test_a_key_whose_connections_are_all_in_use_gets_no_more_and_none_of_them_ends() -> None:
    known = Connections(idle_s=10)
    for connection in "ab":
        known.opened(("k", connection))
    with known.use(("k", "a"), listens=False, number=1), known.use(("k", "b"), listens=True, number=None):
        assert not known.is_full("k", 2)
        assert known.is_full("k", 1)
        # Who only listens can do without.
        assert known.surplus("k", 1) == ["b"]
        assert known.surplus("k", 0) == ["b"]
    assert known.surplus("k", 2) == []
    assert not known.is_full("other", 1)


def test_what_runs_for_a_client_that_is_gone_ends_last() -> None:
    known = Connections(idle_s=10)
    for connection in "ab":
        known.opened(("k", connection))
    with known.use(("k", "a"), listens=False, number=1) as use:
        use.answered = False
    with known.use(("k", "b"), listens=False, number=1):
        pass
    assert known.surplus("k", 1) == ["b"]


def test_what_the_library_has_ended_for_being_unused_is_not_counted() -> None:
    moment = 0.0
    known = Connections(idle_s=10, now=lambda: moment)
    for connection in "abc":
        known.opened(("k", connection))
    with known.use(("k", "b"), listens=True, number=None):
        moment = 11.0
        known.opened(("other", "d"))
        assert known.surplus("k", 0) == ["b"]
        known.closed(("k", "b"))
    assert known.surplus("k", 0) == []


@pytest.mark.parametrize("second", [7, "7"])
def test_a_number_is_one_message_s_until_it_has_its_answer(second: str | int) -> None:
    known = Connections(idle_s=10)
    known.opened(("k", "a"))
    known.opened(("k", "b"))
    with known.use(("k", "a"), listens=False, number=7) as use:
        with pytest.raises(NumberTaken), known.use(("k", "a"), listens=False, number=second):
            pass
        with known.use(("k", "a"), listens=False, number=8), known.use(("k", "b"), listens=False, number=7):
            pass
        use.answered = False
    with pytest.raises(NumberTaken), known.use(("k", "a"), listens=False, number=second):
        pass
    with known.use(("k", "b"), listens=False, number=second):
        pass


def test_numbers_without_answers_are_kept_within_bounds() -> None:
    known = Connections(idle_s=10)
    known.opened(("k", "a"))
    for number in range(3000):
        with known.use(("k", "a"), listens=False, number=number) as use:
            use.answered = False
    assert len(known._kept["k"]["a"].numbers) == 1000


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"method": "x", "id": 1}', (1, None)),
        (b'{"method": "x", "id": true}', (None, None)),
        (b'{"result": {}, "id": 1}', (None, None)),
        (b'{"method": "notifications/cancelled", "params": {"requestId": 1}}', (None, 1)),
        (b'{"method": "notifications/cancelled", "params": {"requestId": true}}', (None, None)),
        (b'{"method": "notifications/cancelled", "params": []}', (None, None)),
        (b"[" * 100_000, (None, None)),
        (b"", (None, None)),
    ],
)
def test_of_a_message_only_its_number_is_kept_and_the_one_that_it_calls_off(body: bytes, said: object) -> None:
    from workbench.server.mcp_rooms import _said

    assert _said(body) == said


@pytest.mark.parametrize(
    ("origin", "good"),
    [("http://localhost", True), ("http://127.0.0.1:3000", True), ("http://evil.example@localhost", False),
     ("http://localhost@evil.example", False), ("http://@localhost", False), ("http://evil.example", False)],
)  # fmt: skip
def test_a_page_is_not_taken_for_ours_by_what_follows_a_name(origin: str, good: bool) -> None:
    headers = Headers({"host": "localhost", "origin": origin})
    with contextlib.nullcontext() if good else pytest.raises(Denied, match="pages from"):
        check_names(headers, frozenset({"localhost"}))


async def test_an_app_that_no_client_of_mcp_asks_does_without_the_library() -> None:
    code = (
        "import asyncio, sys\nfrom tests.unit.server.stand_in import asked\n"
        "async def main():\n    async with asked() as here:\n        await here.client.get('/healthz')\n"
        "asyncio.run(main())\nprint([name for name in ('mcp', 'mcp_types', 'sse_starlette') if name in sys.modules])"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    said, _ = await child.communicate()
    assert said.decode().strip() == "[]"


async def _left() -> Message:
    return {"type": "http.disconnect"}


async def _never() -> Message:
    raise AssertionError(await asyncio.get_running_loop().create_future())


async def test_a_client_that_leaves_is_told_unless_that_is_kept_back() -> None:
    inward = Inward(b"body", _left)
    assert (await inward())["body"] == b"body"
    assert await inward() == {"type": "http.disconnect"}
    for deaf in (Inward(b"", _left, over=asyncio.Event(), deaf=True), Inward(b"", _left)):
        deaf.shut = True
        await deaf()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await deaf()


async def test_a_client_can_be_told_as_gone_before_it_is() -> None:
    over = asyncio.Event()
    inward = Inward(b"", _never, over=over)
    await inward()
    waiting = asyncio.create_task(inward())
    await asyncio.sleep(0)
    over.set()
    assert await waiting == {"type": "http.disconnect"}


async def test_a_stream_that_is_finished_is_ended_once_and_nothing_follows() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    outward = Outward(send)
    await outward.finish()
    assert not sent
    outward = Outward(send)
    await outward({"type": "http.response.start", "status": 200, "headers": []})
    await outward({"type": "http.response.body", "body": b"1", "more_body": True})
    await outward.finish()
    await outward.finish()
    await outward({"type": "http.response.body", "body": b"2"})
    assert [message.get("body") for message in sent] == [None, b"1", b""]


async def test_only_one_status_is_held_back() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    for status, kept_back in ((404, 404), (200, 0), (503, 503)):
        held = Held(send, 404, 503)
        await held({"type": "http.response.start", "status": status, "headers": []})
        await held({"type": "http.response.body", "body": b"words"})
        assert held.status == kept_back
    assert [message.get("status") for message in sent] == [200, None]
