"""Lanes in parallel against one host, for a while; then what is left is looked for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.hosts import until
from bench.soak.leaks import Holdings, descendants, holdings, left_behind, resident_mib
from bench.soak.session import Hang, SoakSession
from bench.soak.state import lane as state_lane
from bench.soak.steps import STEPS, closed_in_mid_cell
from bench.soak.tally import Tally
from bench.table import machine
from workbench.data_folder import DataFolder
from workbench.errors import WorkbenchError
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect, connect_or_start
from workbench.settings import Settings
from workbench.wire import host as wire

_POOL = 2
_FIRST_SESSIONS = 2
_STEPS_OF_A_SESSION = (5, 30)
# For what was closed to be gone, and for a stopped host to leave.
_SETTLE_S = 60.0
# A record of the host's log begins with its time.
_RECORD = r"(?m)^(?=\d{4}-\d\d-\d\d )"
_ZYGOTE_ENDED = "start the zygote: closed by the other side"
_MOST_OF_A_FAULT = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What lanes do."""

    name: str
    session: Callable[[Settings, Tally, random.Random, float], Awaitable[None]]
    """one session from its beginning to its end, which comes soon after the deadline; never raises"""
    beside: Callable[[int, Tally, random.Random, float], Awaitable[None]] | None = None
    """what happens to the host with this pid meanwhile"""


async def soak(settings: Settings, seconds: float, lanes: int, seed: int, scenario: Scenario | None = None) -> str:
    """The report: a line of it begins with PASS or FAIL."""
    scenario = scenario or CELLS
    folder = Path(tempfile.mkdtemp(prefix="wb-soak-"))
    mine = replace(settings, data_dir=folder, pool_size=_POOL)
    tally = Tally()
    facts = "The host did not start."
    try:
        facts = await _on_a_host(mine, tally, seconds, lanes, seed, scenario)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    title = f"{scenario.name}, as {who}: {seconds:.0f} s, {lanes} lanes, seed {seed}"
    return tally.report(title, f"{facts}\n\n{machine()}")


async def _on_a_host(
    settings: Settings, tally: Tally, seconds: float, lanes: int, seed: int, scenario: Scenario
) -> str:
    data = DataFolder(settings.data_dir)
    async with await connect_or_start(settings, os.environ) as connection:
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        # What is opened once, with the first sessions, is no leak.
        for number in range(_FIRST_SESSIONS):
            await scenario.session(settings, tally, random.Random(f"{seed}-first-{number}"), float("inf"))
        before = await _at_rest(connection, data)
        resident = resident_mib(status.pid)
        deadline = time.monotonic() + seconds
        work: list[Awaitable[None]] = [
            _lane(scenario, settings, tally, random.Random(f"{seed}-{lane}"), deadline) for lane in range(lanes)
        ]
        if scenario.beside is not None:
            work.append(scenario.beside(status.pid, tally, random.Random(f"{seed}-beside"), deadline))
        await asyncio.gather(*work)
        tally.leaks += (await _at_rest(connection, data)).more_than(before)
        facts = f"The host's resident memory: {resident:.0f} MB before, {resident_mib(status.pid):.0f} MB after."
        pids = [status.pid, *descendants(status.pid)]
        await connection.ask(wire.Stop(), wire.Done)
    tally.wrong += _faults_told(settings.data_dir / "host.log")
    try:
        await until(lambda: not left_behind(status.host, pids, data), _SETTLE_S)
    except TimeoutError:
        tally.leaks += left_behind(status.host, pids, data)
    return facts


async def _at_rest(connection: HostConnection, data: DataFolder) -> Holdings:
    """With no sandbox and a full pool, at the least that is seen: what has just been closed takes a moment to go."""
    seen: Holdings | None = None
    quiet = 0
    deadline = time.monotonic() + _SETTLE_S
    while quiet < 10 and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        if status.sandboxes or status.pooled < _POOL:
            continue
        now = await asyncio.to_thread(holdings, status.pid, status.host, data)
        quiet = quiet + 1 if now == seen else 0
        seen = now
    assert seen is not None, "the host never came to rest"
    return seen


def _faults_told(log: Path) -> list[str]:
    """What the host did not expect, but for the end of a zygote that we killed."""
    records = re.split(_RECORD, log.read_text(encoding="utf-8", errors="replace"))
    faults = [one for one in records if "Traceback" in one and _ZYGOTE_ENDED not in one]
    return [f"the host's log: {fault.strip()[-_MOST_OF_A_FAULT:]}" for fault in faults]


async def _lane(scenario: Scenario, settings: Settings, tally: Tally, luck: random.Random, deadline: float) -> None:
    """One session after the other, until it is time."""
    while time.monotonic() < deadline:
        await scenario.session(settings, tally, luck, deadline)


async def _cells(settings: Settings, tally: Tally, luck: random.Random, deadline: float) -> None:
    """Faults are counted here, and end the session alone."""
    # A connection each: clients come and go.
    session = SoakSession(lambda: connect(settings), tally, luck)
    try:
        await session.open()
        for _ in range(session.luck.randint(*_STEPS_OF_A_SESSION)):
            if time.monotonic() >= deadline:
                break
            step = session.luck.choices([one for one, _ in STEPS], [weight for _, weight in STEPS])[0]
            await step(session)
        if session.luck.random() < 0.15:
            await closed_in_mid_cell(session)
        await session.close()
    except Hang as hang:
        session.tally.hangs.append(str(hang))
    except WorkbenchError as problem:
        session.tally.wrong.append(f"{session.sandbox}: {type(problem).__name__}: {problem.message}")
    finally:
        with contextlib.suppress(Hang, WorkbenchError):
            await session.close()
        await session.leave()


CELLS = Scenario(name="Cells", session=_cells)
STATE = Scenario(name="State", session=state_lane.session, beside=state_lane.kill_zygotes_at_times)
