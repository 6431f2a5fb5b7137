"""The limit of 180 s, waited for."""

from __future__ import annotations

import asyncio

import pytest
from tests.mcp.conftest import Connect
from tests.mcp.test_workbench_tools import bash, data, run, said

from workbench.mcp.families import Family


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_what_takes_longer_than_180_s_is_ended_and_keeps_what_it_printed(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        await run(client, "kept = 1")
        code = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)"
        cell, command = await asyncio.gather(run(client, code), bash(client, "echo begun; sleep 1000"))
        assert cell.is_error is False
        assert said(cell)["data"]["stdout"] == "begun\n"
        assert said(cell)["error"].startswith("timed out: The cell ran longer than its limit of 180 s")
        assert command["error"].startswith("timed out: The command ran longer than its limit of 180 s")
        assert (await data(client, "kept"))["results"] == "1"
