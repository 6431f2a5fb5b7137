"""The async client against the real server: what the sync one does, side by side."""

from __future__ import annotations

import asyncio

import pytest

from workbench import AsyncWorkbench, Outcome
from workbench.errors import NotFound


async def test_a_session_lives_from_create_to_delete(awb: AsyncWorkbench) -> None:
    session = await awb.create("user_aio", sandbox={"sandbox_size": "medium"})
    assert (await session.run("x = 20 + 1; x * 2")).results == "42"
    assert (await session.bash("echo hi")).stdout == "hi\n"
    assert [variable.name for variable in await session.variables()] == ["x"]
    assert [record.code async for record in session.history()] == ["x = 20 + 1; x * 2", "echo hi"]
    assert [found.id async for found in awb.sessions("user_aio")] == [session.id]
    branch = await session.branch()
    assert (await branch.run("x")).results == "21"
    await branch.delete()
    await session.undo()
    await session.restart()
    await session.change(snapshots=False)
    await session.keep_alive()
    assert await awb.delete_user("user_aio") == 1
    with pytest.raises(NotFound):
        await awb.use(session.id)


async def test_cells_of_many_sessions_run_side_by_side(awb: AsyncWorkbench) -> None:
    sessions = await asyncio.gather(*(awb.create("user_many") for _ in range(4)))
    results = await asyncio.gather(*(one.run(f"{n} + 1") for n, one in enumerate(sessions)))
    assert [result.results for result in results] == ["1", "2", "3", "4"]
    await awb.delete_user("user_many")


async def test_a_stream_a_handle_and_an_interrupt(awb: AsyncWorkbench) -> None:
    session = await awb.create("user_aio")
    stream = await session.stream("for n in range(3): print(n)")
    assert "".join([piece.text async for piece in stream]) == "0\n1\n2\n"
    assert stream.result.ok
    cell = await session.start("print('begun', flush=True)\nwhile True: pass")
    async with cell.follow() as following:
        assert (await anext(following)).text.startswith("begun")
    assert await session.interrupt() is True
    assert (await cell.wait(timeout_s=60)).outcome is Outcome.INTERRUPTED
    assert (await cell.refresh()).done
    await session.delete()


async def test_leaving_a_run_does_not_stop_the_cell(awb: AsyncWorkbench) -> None:
    session = await awb.create("user_aio")
    await session.run("0")
    code = "import os, time\nwhile not os.path.exists('/mnt/files/go'): time.sleep(0.01)\n'finished'"
    running = asyncio.create_task(session.run(code, idempotency_key="left"))
    async with asyncio.timeout(60):
        while not (await session.describe()).queue:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await session.bash("touch /mnt/files/go")
    assert (await session.run(code, idempotency_key="left")).results == "'finished'"
    await session.delete()
