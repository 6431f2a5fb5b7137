"""The door for notebooks: visitors share the session, and none of them can harm it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import zmq
from tests.kernel.notebook import cell, connection_info, open_notebook
from tests.kernel.place import PATIENCE_S, Live, Place, pieces, result, text

from workbench.kernels.messages import Signer
from workbench.model.execution import PieceKind

pytestmark = pytest.mark.asyncio(loop_scope="module")

_DISPLAYS = "from IPython.display import display\nfor i in range({}):\n    display(i)"


@contextlib.contextmanager
def raw_visitor(connection_file: str, channel: str, kind: int) -> Iterator[zmq.Socket[bytes]]:
    """A socket of a visitor that keeps to nothing."""
    info = connection_info(connection_file)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(kind)
    try:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 1)
        socket.connect(f"ipc://{info['ip']}-{info[f'{channel}_port']}")
        yield socket
    finally:
        socket.close()
        context.term()


@contextlib.asynccontextmanager
async def stuck_visitor(connection_file: str) -> AsyncIterator[None]:
    """It subscribes, and never reads."""
    with raw_visitor(connection_file, "iopub", zmq.SUB) as socket:
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        assert await _heard(socket), "the door greets who subscribes"
        yield


async def _heard(socket: zmq.Socket[bytes], milliseconds: int = 10_000) -> bool:
    """The relay runs in this loop, which must not wait for it."""
    return bool(await asyncio.to_thread(socket.poll, milliseconds))


async def test_only_the_owner_can_read_the_connection_file(live: Live) -> None:
    path = Path(await live.attach())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_uid == os.geteuid()


async def test_a_second_attach_gives_the_same_door(live: Live) -> None:
    assert await live.attach() == await live.attach()


async def test_a_visitor_and_the_session_share_their_variables(live: Live) -> None:
    await live.run("shared = [1]")
    async with open_notebook(await live.attach()) as notebook:
        assert (await notebook.run("shared.append(2)\nshared")).result == "[1, 2]"
    assert result(await live.run("shared")) == "[1, 2]"


async def test_two_visitors_see_the_output_of_each_other_and_of_the_session(live: Live) -> None:
    connection = await live.attach()
    async with open_notebook(connection) as first, open_notebook(connection) as second:
        assert (await first.run("print('of the first')")).stdout == "of the first\n"
        await second.until(lambda: "of the first" in second.stray_text())
        assert (await second.run("print('of the second')")).stdout == "of the second\n"
        await first.until(lambda: "of the second" in first.stray_text())
        assert text(await live.run("print('of the session')")) == "of the session\n"
        await first.until(lambda: "of the session" in first.stray_text())
        await second.until(lambda: "of the session" in second.stray_text())


async def test_a_cell_of_a_visitor_is_no_output_of_the_session(live: Live) -> None:
    async with open_notebook(await live.attach()) as notebook:
        await notebook.run("print('for the visitor')\n1 / 0")
        events = await live.run("print('mine')")
    assert text(events) == "mine\n"
    assert not pieces(events, PieceKind.ERROR)


async def test_cells_of_visitors_wait_for_their_turn(live: Live) -> None:
    async with open_notebook(await live.attach()) as notebook:
        async with live.turns:
            request = notebook.send("execute_request", cell("'had its turn'"))
            told = asyncio.create_task(notebook.answer_of(request))
            others = (await asyncio.wait([told], timeout=0.2))[0]
            assert not others
        async with asyncio.timeout(PATIENCE_S):
            assert (await told).result == "'had its turn'"
    assert "'had its turn'" in live.asked


async def test_what_a_visitor_asks_after_a_cell_is_answered_after_it(live: Live) -> None:
    async with open_notebook(await live.attach()) as notebook:
        first = notebook.send("execute_request", cell("import time\ntime.sleep(0.1)\nnamed_late = 1"))
        second = notebook.send("complete_request", {"code": "named_l", "cursor_pos": 7})
        async with asyncio.timeout(PATIENCE_S):
            await notebook.answer_of(first)
            assert (await notebook.answer_of(second)).reply["matches"] == ["named_late"]


async def test_an_error_of_one_visitor_stops_its_own_cells_only(live: Live) -> None:
    connection = await live.attach()
    async with open_notebook(connection) as first, open_notebook(connection) as second:
        async with live.turns:
            failing = first.send("execute_request", cell("1 / 0"))
            behind = first.send("execute_request", cell("print('never')"))
            other = second.send("execute_request", cell("'of another'"))
            # The last of them is the last that the relay hears.
            await first.ask("kernel_info_request", channel="control")
        async with asyncio.timeout(PATIENCE_S):
            assert (await first.answer_of(failing)).reply["status"] == "error"
            assert (await first.answer_of(behind)).reply["status"] == "aborted"
            assert (await second.answer_of(other)).result == "'of another'"


async def test_a_stuck_visitor_slows_and_loses_nothing_for_the_session(place: Place) -> None:
    live = await place.live()
    async with stuck_visitor(await live.attach()):
        events = await live.run(_DISPLAYS.format(20_000))
        assert [piece.display.data["text/plain"] for piece in pieces(events, PieceKind.DISPLAY) if piece.display] == [
            str(number) for number in range(20_000)
        ]
        assert len(text(await live.run("print('x' * 50_000_000)"))) == 50_000_001
        assert result(await live.run("1 + 1")) == "2"


async def test_a_stuck_visitor_takes_nothing_from_one_that_reads(place: Place) -> None:
    live = await place.live()
    connection = await live.attach()
    async with stuck_visitor(connection), open_notebook(connection) as notebook:
        for _ in range(3):
            answer = await notebook.run(_DISPLAYS.format(500))
            assert len(answer.shown("text/plain")) == 500


async def test_a_visitor_that_reads_gets_all_of_a_flood(live: Live) -> None:
    async with open_notebook(await live.attach()) as notebook:
        answer = await notebook.run(_DISPLAYS.format(3000))
        assert [int(one) for one in answer.shown("text/plain")] == list(range(3000))


async def test_a_visitor_without_the_key_is_ignored(live: Live) -> None:
    connection = await live.attach()
    await live.run("harmed = False")
    stranger = Signer("not the key")
    for channel in ("shell", "control", "stdin"):
        with raw_visitor(connection, channel, zmq.DEALER) as socket:
            socket.send_multipart(stranger.request("execute_request", cell("harmed = True"))[1])
            socket.send_multipart(stranger.request("interrupt_request", {})[1])
            socket.send_multipart([b"no", b"message", b"at all"])
            socket.send_multipart([b"<IDS|MSG>", b"", b"{", b"\xff", b"", b""])
            assert not await _heard(socket, 200)
    async with open_notebook(connection) as notebook:
        assert (await notebook.run("harmed")).result == "False"
    assert "harmed = True" not in live.asked


async def test_a_visitor_interrupts_what_the_session_runs(live: Live) -> None:
    async with open_notebook(await live.attach()) as notebook:
        running = asyncio.create_task(live.run("print('begun', flush=True)\nwhile True: pass"))
        await notebook.until(lambda: "begun" in notebook.stray_text())
        notebook.interrupt()
        events = await running
    (error,) = [piece.error for piece in pieces(events, PieceKind.ERROR)]
    assert error is not None
    assert error.name == "KeyboardInterrupt"


@pytest.mark.parametrize("channel", ["control", "shell"])
async def test_a_visitor_cannot_end_the_kernel_and_is_told_why(live: Live, channel: str) -> None:
    await live.run("kept = 1")
    async with open_notebook(await live.attach()) as notebook:
        request = notebook.send("shutdown_request", {"restart": False}, channel)
        async with asyncio.timeout(PATIENCE_S):
            message = await getattr(notebook.client, f"{channel}_channel").get_msg()
        assert message["parent_header"]["msg_id"] == request
        assert message["content"]["status"] == "error"
        assert "workbench sessions rm" in message["content"]["evalue"]
    assert result(await live.run("kept")) == "1"


async def test_a_new_memory_keeps_the_door(place: Place) -> None:
    live = await place.live()
    connection = await live.attach()
    async with open_notebook(connection) as notebook:
        await notebook.run("old = 1")
        before = Path(connection).read_text(encoding="utf-8")
        await live.renew()
        await notebook.until(lambda: ("status", {"execution_state": "restarting"}) in notebook.stray)
        assert (await notebook.run("old")).error["ename"] == "NameError"
        assert (await notebook.run("new = 2\nnew")).result == "2"
    assert Path(connection).read_text(encoding="utf-8") == before
    async with open_notebook(connection) as notebook:
        assert (await notebook.run("new")).result == "2"


async def test_a_visitor_hears_that_the_kernel_died_under_its_cell(place: Place) -> None:
    live = await place.live()
    async with open_notebook(await live.attach()) as notebook:
        answer = await notebook.run("print('last')\nimport os\nos._exit(1)")
        assert answer.reply["status"] == "error"
        assert answer.reply["ename"] == "DeadKernel"
        await live.renew()
        assert (await notebook.run("1")).result == "1"


async def test_input_is_asked_of_the_visitor_that_runs_the_cell(live: Live) -> None:
    connection = await live.attach()
    async with open_notebook(connection) as typing, open_notebook(connection) as watching:
        typing.inputs.append("typed")
        assert (await typing.run("input('name? ')", allow_stdin=True)).result == "'typed'"
        assert typing.prompts[0]["prompt"] == "name? "
        assert not await watching.client.stdin_channel.msg_ready()


async def test_the_heart_beats_while_a_memory_lives(live: Live) -> None:
    with raw_visitor(await live.attach(), "hb", zmq.REQ) as socket:
        socket.send(b"ping")
        assert await _heard(socket)
        assert socket.recv() == b"ping"


async def test_the_file_says_what_jupyter_needs(live: Live) -> None:
    info = json.loads(Path(await live.attach()).read_text(encoding="utf-8"))
    assert info["transport"] == "ipc"
    assert info["signature_scheme"] == "hmac-sha256"
    assert len(info["key"]) >= 32
    assert all(f"{channel}_port" in info for channel in ("shell", "iopub", "stdin", "control", "hb"))


async def test_a_cell_for_a_subshell_is_refused_and_stops_nobody(place: Place) -> None:
    live = await place.live()
    async with open_notebook(await live.attach()) as visitor:
        message = visitor.client.session.msg("execute_request", cell("1"))
        message["header"]["subshell_id"] = "beside"
        visitor.client.shell_channel.send(message)
        async with asyncio.timeout(PATIENCE_S):
            answer = await visitor.answer_of(message["header"]["msg_id"])
        assert answer.reply["status"] == "error"
        assert "one after the other" in answer.reply["evalue"]
        assert (await visitor.run("1 + 1")).result == "2"
    assert result(await live.run("2 + 2")) == "4"
