"""What a waiting client hears and may do: progress while a cell runs, and an interrupt when it calls the cell off."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from typing import Any

from mcp.client import Client
from tests.mcp.conftest import Connect
from tests.mcp.test_sandbox_tools import answer, made

from workbench.cli.asking import OWNER
from workbench.core import requests
from workbench.mcp.alone import Alone
from workbench.mcp.families import Family
from workbench.mcp.running import performed
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId
from workbench.settings import Settings
from workbench.wiring import open_service

_BEGAN_S = 20.0
_TALKS = "import time\nfor n in range(25):\n    print('line', n)\n    time.sleep(0.1)"
_SLEEPS = "open('began', 'w').close()\nimport time\ntime.sleep(300)"


async def _until_it_runs(client: Client, session: str) -> None:
    async with asyncio.timeout(_BEGAN_S):
        while not (await answer(client, "execute_terminal", {"session_id": session, "command": "cat began"}))[
            "success"
        ]:
            await asyncio.sleep(0.05)


async def test_progress_arrives_while_a_cell_prints(connect: Connect) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with connect(Family.SANDBOX, mode="legacy") as client:
        session = await made(client)
        asked: dict[str, Any] = {"session_id": session, "code": _TALKS}
        await client.call_tool("execute_code", asked, progress_callback=hear)
    times, totals, messages = zip(*heard, strict=True)
    assert list(times) == sorted(set(times))
    assert set(totals) == {30.0}
    assert all(str(one).startswith("line ") for one in messages)


async def test_a_call_that_is_called_off_interrupts_its_cell_and_no_other(connect: Connect) -> None:
    for mode in ("legacy", "auto"):
        async with connect(Family.SANDBOX, mode=mode) as client, connect(Family.SANDBOX, mode=mode) as other:
            session, theirs = await made(client), await made(other)
            calls = []
            for who, where in ((client, session), (other, theirs)):
                asked = {"session_id": where, "code": _SLEEPS, "timeout": 200}
                calls.append(asyncio.create_task(who.call_tool("execute_code", asked)))
                await _until_it_runs(who, where)
            calls[0].cancel()
            await asyncio.wait((calls[0],))
            said = await answer(client, "execute_code", {"session_id": session, "code": "'free'", "timeout": 60})
            assert said["result"] == "'free'"
            assert not calls[1].done()
            calls[1].cancel()
            await asyncio.wait((calls[1],))


async def test_a_cell_that_waits_for_anothers_is_taken_out_of_the_queue_when_it_is_called_off(connect: Connect) -> None:
    async with connect(Family.SANDBOX, mode="legacy") as client:
        session = await made(client)
        first = asyncio.create_task(
            client.call_tool("execute_code", {"session_id": session, "code": _SLEEPS.replace("300", "6")})
        )
        await _until_it_runs(client, session)
        waits = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            waits.set()

        asked = {"session_id": session, "code": "open('second', 'w').close()"}
        second = asyncio.create_task(client.call_tool("execute_code", asked, progress_callback=hear))
        async with asyncio.timeout(_BEGAN_S):
            await waits.wait()
        second.cancel()
        await asyncio.wait((second,))
        ran = await first
        assert (ran.structured_content or {})["success"]
        said = await answer(client, "execute_code", {"session_id": session, "code": "import os; os.listdir()"})
        assert "second" not in said["result"]


async def test_a_call_that_is_called_off_while_its_sandbox_is_being_made_leaves_nothing_that_runs(
    connect: Connect, settings: Settings
) -> None:
    async with open_service(settings, os.environ) as service:
        bench = service.workbench()
        for delay_s in (0.0, 0.01, 0.03, 0.1):
            around = Alone(service.access, OWNER)
            name = SessionId(f"off-{secrets.token_hex(4)}")
            await bench.create_session(requests.CreateSession(session=name))
            visit = Visit(bench=bench, around=around, default_session=name)
            call = asyncio.create_task(performed(visit, requests.RunCell(session=name, code=_SLEEPS)))
            await asyncio.sleep(delay_s)
            call.cancel()
            await asyncio.wait((call,))
            began = time.monotonic()
            # It waits for what still runs on the caller's behalf.
            await around.aclose()
            assert time.monotonic() - began < 10
            described = await bench.describe_session(requests.DescribeSession(session=name))
            assert described.queue == ()
