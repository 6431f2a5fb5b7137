"""What the server costs: on top of a cell, with a hundred sessions at once, with many clients for a minute.

python -m bench.server [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from bench.command import main
from bench.helper_calls import helper_calls
from bench.hosts import host
from bench.mcp_cells import Calls, by_official, official
from bench.serving import Answer, Client, Serving, end_of_stream, serving
from bench.sessions import Session
from bench.table import Row, p50, spread
from workbench import AsyncWorkbench
from workbench.core import requests
from workbench.host_client.connection import HostConnection
from workbench.model.ids import SessionId
from workbench.settings import Settings
from workbench.wiring import open_workbench

TRIVIAL, RIGHT = "1 + 1", "2"
PANDAS, PANDAS_RIGHT = "import pandas as pd\nint(pd.DataFrame({'a': range(4)})['a'].sum())", "6"
_WARM_CELLS = 20
_SAMPLES = 5
_SETTLE_S = 1.0


@dataclass(slots=True)
class Times:
    """Milliseconds of the same cell by each way, taken in turns so that noise falls on all alike."""

    core: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)
    sdk: list[float] = field(default_factory=list)
    api: list[float] = field(default_factory=list)
    mcp: list[float] = field(default_factory=list)
    mcp_older: list[float] = field(default_factory=list)
    mcp_client: list[float] = field(default_factory=list)


async def trivial(settings: Settings, n: int) -> Times:
    """A trivial cell, by the core in this process, by REST, the SDK, the sessions API and MCP, in one session."""
    times = Times()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(settings))
        client = await server.client()
        stack.push_async_callback(client.close)
        core = await stack.enter_async_context(open_workbench(server.settings, os.environ))
        sdk = await stack.enter_async_context(AsyncWorkbench(server.url, server.key))
        # What snapshots add is measured by itself, in bench/state.py.
        session = await _session(client, snapshots=False)
        held = await sdk.use(session)
        calls = Calls(client, session)
        await calls.connect()
        mcp_client = await stack.enter_async_context(official(server))

        async def by_core() -> str:
            request = requests.RunCell(session=SessionId(session), code=TRIVIAL)
            return (await core.run_cell(request)).results.text

        async def by_rest() -> str:
            return _value(await client.ask("POST", f"/v1/sessions/{session}/cells", {"code": TRIVIAL}))

        async def by_sdk() -> str:
            return (await held.run(TRIVIAL)).results

        async def by_api() -> str:
            path = f"/api/v3.1/tool_router/session/{session}/execute"
            body = {"tool_slug": "COMPOSIO_REMOTE_WORKBENCH", "arguments": {"code_to_execute": TRIVIAL}}
            answer = await client.ask("POST", path, body)
            if answer.status != 200:
                raise AssertionError(f"a call failed: {answer}")
            text: str = answer.json()["data"]["results"]
            return text

        ways: tuple[tuple[list[float], Callable[[], Awaitable[str]]], ...] = (
            (times.core, by_core),
            (times.rest, by_rest),
            (times.sdk, by_sdk),
            (times.api, by_api),
            (times.mcp, lambda: calls.without_a_connection(TRIVIAL)),
            (times.mcp_older, lambda: calls.on_a_connection(TRIVIAL)),
            (times.mcp_client, lambda: by_official(mcp_client, session, TRIVIAL)),
        )
        for turn in range(-_WARM_CELLS, n):
            for samples, take in ways:
                began = time.perf_counter()
                answer = await take()
                took = (time.perf_counter() - began) * 1000
                _check(answer, RIGHT)
                if turn >= 0:
                    samples.append(took)
    return times


async def _session(client: Client, **sandbox: object) -> str:
    answer = await client.ask("POST", "/v1/sessions", {"sandbox": sandbox})
    if answer.status != 201:
        raise AssertionError(f"no session: {answer}")
    name: str = answer.json()["id"]
    return name


def _value(answer: Answer) -> str:
    if answer.status != 200 or answer.json()["result"] is None:
        raise AssertionError(f"a cell failed: {answer}")
    text: str = answer.json()["result"]["results"]["text"]
    return text


def _check(answer: str, right: str) -> None:
    if answer != right:
        raise AssertionError(f"a wrong answer: {answer!r}")


async def burst(settings: Settings, count: int) -> tuple[int, float, list[str]]:
    """How many of `count` sessions, asked for together, answered a cell with pandas; in what time; what went wrong."""
    async with serving(settings) as server:
        clients = await asyncio.gather(*(server.client() for _ in range(count)))
        # One that is measured finds a host that runs, with its pool full.
        _check(await _first_answer(clients[0]), PANDAS_RIGHT)
        await asyncio.sleep(_SETTLE_S)
        began = time.perf_counter()
        answers = await asyncio.gather(*(_first_answer(client) for client in clients), return_exceptions=True)
        took = time.perf_counter() - began
        await asyncio.gather(*(client.close() for client in clients))
    wrong = [repr(answer) for answer in answers if answer != PANDAS_RIGHT]
    return count - len(wrong), took, wrong


async def host_burst(settings: Settings, count: int) -> float:
    """The same, asked of the host itself: seconds without server, keys and records."""
    async with host(settings) as connection:
        await _first_of_host(connection)
        await asyncio.sleep(_SETTLE_S)
        began = time.perf_counter()
        await asyncio.gather(*(_first_of_host(connection) for _ in range(count)))
        return time.perf_counter() - began


async def _first_of_host(connection: HostConnection) -> None:
    session = await Session.open(connection)
    _check(await session.value(PANDAS), PANDAS_RIGHT)


async def _first_answer(client: Client) -> str:
    session = await _session(client)
    return _value(await client.ask("POST", f"/v1/sessions/{session}/cells", {"code": PANDAS}))


@dataclass(slots=True)
class Crowd:
    """What many clients have seen, all together."""

    cells: int = 0
    errors: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    growth_kib: float = 0.0
    counted: int = 0
    """cells while it grew"""

    @property
    def growth_mib_per_thousand(self) -> float:
        """Of the server's process."""
        return self.growth_kib / 1024 / max(self.counted, 1) * 1000


async def crowd(settings: Settings, clients: int, seconds: float, warm_s: float) -> Crowd:
    """Clients that each ask as fast as they are answered, each in a session of its own, and know what is theirs."""
    seen = Crowd()
    async with serving(settings) as server:
        over = time.perf_counter() + seconds
        lanes = [asyncio.create_task(_lane(server, seen, number, lambda: time.perf_counter() < over))
                 for number in range(clients)]  # fmt: skip
        await asyncio.sleep(warm_s)
        first, first_cells = await _memory(server), seen.cells
        await asyncio.sleep(max(0.0, over - time.perf_counter() - 2 * _SAMPLES * 0.2))
        last, last_cells = await _memory(server), seen.cells
        await asyncio.gather(*lanes)
    seen.growth_kib, seen.counted = last - first, last_cells - first_cells
    return seen


async def _memory(server: Serving) -> float:
    """The middle of some looks: a process breathes."""
    looks = []
    for _ in range(_SAMPLES):
        looks.append(server.memory_kib())
        await asyncio.sleep(0.2)
    return p50(looks)


async def _lane(server: Serving, seen: Crowd, number: int, goes_on: Callable[[], bool]) -> None:
    who = f"{number}-{secrets.token_hex(8)}"
    client = await server.client()
    try:
        session = await _session(client, snapshots=False)
        _value(await client.ask("POST", f"/v1/sessions/{session}/cells", {"code": f"who = {who!r}"}))
        for serial in itertools.count():
            if not goes_on():
                return
            token = secrets.token_hex(8)
            said = await _said(client, session, serial, token)
            seen.cells += 1
            if said != f"{who} {token}\n":
                seen.mixed.append(f"{said!r} for {who} {token}")
    except Exception as problem:  # noqa: BLE001  (whatever it is, it is what is counted)
        seen.errors.append(f"{type(problem).__name__}: {problem}"[:500])
    finally:
        await client.close()


async def _said(client: Client, session: str, serial: int, token: str) -> str:
    """By turns: nine cells awaited, of which one is asked for again by its id; one streamed, and one command."""
    path = f"/v1/sessions/{session}/cells"
    code = f"print(who, {token!r})"
    match serial % 11:
        case 9:
            cell = end_of_stream(await client.ask("POST", path, {"code": code, "mode": "stream"}))
        case 10:
            # Beside the kernel: what is its own is what the cell before has left in a file.
            await _ended(client, path, {"code": "with open('/tmp/who', 'w') as file: print(who, end=' ', file=file)"})
            command = f"cat /tmp/who; echo {token}"
            cell = await _ended(client, f"/v1/sessions/{session}/commands", {"command": command})
        case 8:
            ran = await _ended(client, path, {"code": code})
            cell = (await client.ask("GET", f"{path}/{ran['id']}")).json()
        case _:
            cell = await _ended(client, path, {"code": code})
    text: str = cell["result"]["stdout"]["text"]
    return text


async def _ended(client: Client, path: str, body: dict[str, str]) -> Any:
    answer = await client.ask("POST", path, body)
    cell = answer.json()
    if answer.status != 200 or cell["result"]["outcome"] != "ok":
        raise AssertionError(f"a cell failed: {answer}")
    return cell


async def _trivial_rows(settings: Settings, n: int) -> list[Row]:
    times = await trivial(settings, n)
    return [_rest_row(times), _api_row(times), _mcp_row(times)]


def _rest_row(times: Times) -> Row:
    adds, by_sdk = p50(times.rest) - p50(times.core), p50(times.sdk) - p50(times.core)
    return Row(
        what="what REST adds to a trivial cell on a kept-alive connection",
        seen=f"{adds:.1f} ms: {spread(times.rest)}, by the core in one process {spread(times.core)}",
        must="6 ms", aim="2 ms", passed=adds <= 6, aimed=adds <= 2,
        notes=f"with the whole SDK {by_sdk:.1f} ms: {spread(times.sdk)}; all three write the cell down",
    )  # fmt: skip


def _api_row(times: Times) -> Row:
    adds = p50(times.api) - p50(times.core)
    return Row(
        what="what the sessions API adds to a trivial cell on a kept-alive connection",
        seen=f"{adds:.1f} ms: {spread(times.api)}, by REST {spread(times.rest)}",
        must="15 ms", aim="4 ms", passed=adds <= 15, aimed=adds <= 4,
        notes=f"{p50(times.api) / p50(times.rest):.2f} times REST: the configuration is looked up, and the answer is "
              "in the tool's own shape",
    )  # fmt: skip


def _mcp_row(times: Times) -> Row:
    floor = p50(times.core)
    new, older, whole = (p50(one) - floor for one in (times.mcp, times.mcp_older, times.mcp_client))
    adds = max(new, older)
    return Row(
        what="what MCP adds to a trivial cell over HTTP on a kept-alive connection",
        seen=f"{adds:.1f} ms: {spread(times.mcp)} since 2026-07-28, {spread(times.mcp_older)} before",
        must="15 ms", aim="8 ms", passed=adds <= 15, aimed=adds <= 8,
        notes=f"by the core in one process {spread(times.core)}; with the protocol's own Python client {whole:.1f} ms: "
              f"{spread(times.mcp_client)}",
    )  # fmt: skip


async def _helper_row(settings: Settings, n: int) -> Row:
    times = await helper_calls(settings, n)
    adds = p50(times.inside) - p50(times.within)
    return Row(
        what="what the way out of the sandbox adds to a helper's call with nothing behind it",
        seen=f"{adds:.1f} ms: {spread(times.inside)} in the cell, {spread(times.within)} within the server",
        must="5 ms", aim="2 ms", passed=adds <= 5, aimed=adds <= 2,
        notes="a connection of its own for each, through the host to the server, with the audit on both sides",
    )  # fmt: skip


async def _burst_row(settings: Settings, count: int, rounds: int) -> Row:
    times: list[float] = []
    floor: list[float] = []
    wrong: list[str] = []
    for _ in range(rounds):
        _, took, failed = await burst(settings, count)
        times.append(took)
        wrong += failed
        floor.append(await host_burst(settings, count))
    took, good = p50(times), rounds * count - len(wrong)
    return Row(
        what=f"{count} sessions in one burst through REST, each answering a cell with pandas",
        seen=f"{good} of {rounds * count}, middle round {took:.2f} s: {took / p50(floor):.1f} times the host alone",
        must=f"{count} of {count}, 5 s", aim="3 s",
        passed=not wrong and took <= 5, aimed=not wrong and took <= 3, fatal=bool(wrong),
        notes="; ".join(wrong[:3]) or f"best of {rounds} rounds {min(times):.2f} s; asked of the host itself, without "
              f"server, records and snapshots, {p50(floor):.2f} s",
    )  # fmt: skip


async def _crowd_rows(settings: Settings, clients: int, seconds: float, warm_s: float) -> list[Row]:
    seen = await crowd(settings, clients, seconds, warm_s)
    growth = seen.growth_mib_per_thousand
    right = not seen.errors and not seen.mixed
    return [
        Row(
            what=f"{clients} clients for {seconds:.0f} s: cells awaited, streamed and asked for again, and commands",
            seen=f"{len(seen.errors)} errors, {len(seen.mixed)} mixed answers of {seen.cells}",
            must="0 errors, 0 mixed", aim="", passed=right, aimed=right, fatal=True,
            notes="; ".join([*seen.errors, *seen.mixed][:3]) or f"{seen.cells / seconds:.0f} a second",
        ),
        Row(
            what=f"memory the server adds meanwhile, after the first {warm_s:.0f} s",
            seen=f"{growth:.2f} MB per 1,000 cells", must="1 MB per 1,000", aim="",
            # Of a few hundred cells nothing can be said: a process takes memory by the megabyte.
            passed=growth < 1, aimed=growth < 1, fatal=seen.counted >= 2000,
            notes=f"{seen.growth_kib / 1024:.1f} MB over {seen.counted} cells; RssAnon of its process",
        ),
    ]  # fmt: skip


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    return [
        *await _trivial_rows(settings, 40 if quick else 300),
        await _helper_row(settings, 60 if quick else 300),
        await _burst_row(settings, *((20, 1) if quick else (100, 3))),
        *await _crowd_rows(settings, *((16, 12.0, 5.0) if quick else (64, 60.0, 15.0))),
    ]


if __name__ == "__main__":
    sys.exit(main("Server", __doc__, measure))
