"""Notebooks that join a live session: they share it, wait for their turn, and cannot stop or end it."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest
import zmq
from tests.kernel.notebook import connection_info, open_notebook
from tests.kernel.place import PATIENCE_S, Live, Place, pieces, result, text

from workbench.kernels.messages import Signer
from workbench.model.execution import PieceKind

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.isolation]


async def test_a_visitor_shares_the_variables_of_the_session(place: Place) -> None:
    live = await place.live()
    await live.run("shared = 41")
    async with open_notebook(await live.attach()) as visitor:
        assert (await visitor.run("shared += 1; shared")).result == "42"
    assert result(await live.run("shared")) == "42"
    assert live.asked[-1] == "shared += 1; shared"


async def test_what_a_visitor_runs_is_no_output_of_the_session(place: Place) -> None:
    live = await place.live()
    async with open_notebook(await live.attach()) as visitor:
        assert (await visitor.run("print('for the visitor')")).stdout == "for the visitor\n"
    assert text(await live.run("print('for the session')")) == "for the session\n"


async def test_two_visitors_see_what_each_other_and_the_session_do(place: Place) -> None:
    live = await place.live()
    file = await live.attach()
    async with open_notebook(file) as first, open_notebook(file) as second:
        await first.run("print('by the first')")
        await live.run("print('by the session')")
        await first.until(lambda: "by the session" in first.stray_text())
        await second.until(lambda: "by the session" in second.stray_text())
        assert "by the first" in second.stray_text()


async def _stuck(live: Live) -> tuple[zmq.Context[zmq.Socket[bytes]], zmq.Socket[bytes]]:
    """Subscribes to everything and never reads."""
    info = connection_info(await live.attach())
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 1)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(f"ipc://{info['ip']}-{info['iopub_port']}")
    return context, socket


async def test_a_visitor_that_reads_nothing_costs_the_session_nothing(place: Place) -> None:
    live = await place.live()
    context, socket = await _stuck(live)
    try:
        flood = "from IPython.display import display\nfor n in range(5_000): display(n)\nprint('x' * 50_000_000)"
        events = await live.run(flood)
        assert len(pieces(events, PieceKind.DISPLAY)) == 5_000
        assert text(events) == "x" * 50_000_000 + "\n"
    finally:
        socket.close(linger=0)
        context.term()


async def test_a_visitor_interrupts_a_cell_of_the_session(place: Place) -> None:
    live = await place.live()
    async with open_notebook(await live.attach()) as visitor:
        running = asyncio.create_task(live.run("print('begun', flush=True)\nimport time\ntime.sleep(600)"))
        await visitor.until(lambda: "begun" in visitor.stray_text())
        visitor.interrupt()
        events = await running
    error = pieces(events, PieceKind.ERROR)[0].error
    assert error is not None
    assert error.name == "KeyboardInterrupt"


async def test_a_visitor_cannot_end_the_kernel(place: Place) -> None:
    live = await place.live()
    await live.run("kept = 1")
    async with open_notebook(await live.attach()) as visitor:
        for channel in ("control", "shell"):
            request = visitor.send("shutdown_request", {"restart": False}, channel)
            async with asyncio.timeout(PATIENCE_S):
                message = await getattr(visitor.client, f"{channel}_channel").get_msg()
            assert message["parent_header"]["msg_id"] == request
            assert message["content"]["status"] == "error"
            assert "workbench sessions rm" in message["content"]["evalue"]
    assert result(await live.run("kept")) == "1"


async def test_who_does_not_know_the_key_is_not_heard(place: Place) -> None:
    live = await place.live()
    info = connection_info(await live.attach())
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    try:
        socket.connect(f"ipc://{info['ip']}-{info['shell_port']}")
        content = {"code": "intruded = 1", "silent": False, "store_history": True, "allow_stdin": False}
        _, frames = Signer("guessed").request("execute_request", content)
        socket.send_multipart(frames)
        assert not await asyncio.to_thread(socket.poll, 500)
    finally:
        socket.close(linger=0)
        context.term()
    assert result(await live.run("'intruded' in globals()")) == "False"


async def test_the_connection_file_is_for_its_owner_alone(place: Place) -> None:
    live = await place.live()
    file = await live.attach()
    assert os.stat(file).st_mode & 0o077 == 0
    assert os.stat(os.path.dirname(file)).st_mode & 0o077 == 0


async def test_the_door_stays_open_over_the_loss_of_a_memory(place: Place) -> None:
    live = await place.live()
    file = await live.attach()
    async with open_notebook(file) as visitor:
        await visitor.run("gone = 1")
        await live.renew()
        assert (await visitor.run("'gone' in globals()")).result == "False"
    assert await live.attach() == file


async def test_a_visitor_whose_kernel_dies_is_told(place: Place) -> None:
    live = await place.live()
    async with open_notebook(await live.attach()) as visitor:
        with contextlib.suppress(Exception):
            answer = await visitor.run("import os; os._exit(1)")
            assert answer.reply["ename"] == "DeadKernel"
        await live.renew()
        assert (await visitor.run("1 + 1")).result == "2"


async def test_input_is_asked_of_the_visitor_that_runs_the_cell(place: Place) -> None:
    live = await place.live()
    async with open_notebook(await live.attach()) as visitor:
        visitor.inputs.append("typed")
        assert (await visitor.run("input('name? ')", allow_stdin=True)).result == "'typed'"
        assert visitor.prompts[0]["prompt"] == "name? "
