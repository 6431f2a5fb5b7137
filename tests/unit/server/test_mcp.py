"""MCP's addresses on a service that says what a test wants: what needs no sandbox."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from starlette.types import Message
from tests.unit.server.stand_in import asked

from workbench.errors import Denied
from workbench.server.mcp_arrival import check_names, could_be_ours
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
