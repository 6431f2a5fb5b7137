"""Calls from inside a sandbox to whoever serves them: whose they are is the host's word, each is handed out once, and a
caller is told the truth when nobody answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.host.cells import KERNEL, begin, command, make_kernel, run, value_of
from tests.host.support import WAIT_S

from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.model.calls import MAX_CALL_BYTES
from workbench.settings import Settings
from workbench.wire import calls as wire
from workbench.wire import host as host_wire
from workbench.wire import kernels

# What a helper does, by hand: one connection, one call.
ASK = """\
import json, os, socket, struct, threading
from concurrent.futures import ThreadPoolExecutor
def connected():
    line = socket.socket(socket.AF_UNIX)
    address = os.environ.get('WORKBENCH_CALLS', '@workbench-calls')
    line.connect('\\0' + address[1:])
    return line
def frame(line):
    head = b''
    while len(head) < 4:
        more = line.recv(4 - len(head))
        if not more: return None
        head += more
    left, body = struct.unpack('>I', head)[0], b''
    while len(body) < left:
        more = line.recv(left - len(body))
        if not more: return None
        body += more
    return json.loads(body)
def ask(what, **arguments):
    body = json.dumps({'operation': what, 'arguments': arguments}).encode()
    with connected() as line:
        line.sendall(struct.pack('>I', len(body)) + body)
        return frame(line)
"""

Answer = Callable[[wire.CallReport], Awaitable[dict[str, Any]]]


async def echo(call: wire.CallReport) -> dict[str, Any]:
    """What was asked, and for whom."""
    asked = json.loads(call.body)
    return {"result": [asked["arguments"], call.kernel, call.cell], "error": "", "code": ""}


@contextlib.asynccontextmanager
async def served(settings: Settings, answer: Answer = echo, rank: int = 0) -> AsyncIterator[HostConnection]:
    """A client that takes calls and answers them."""
    async with await connect_or_start(settings, os.environ) as client:
        tasks: set[asyncio.Task[None]] = set()

        async def one(call: wire.CallReport) -> None:
            body = json.dumps(await answer(call)).encode()
            told = wire.AnswerCall(call=call.call, body=body, prompt_tokens=3, completion_tokens=2)
            await client.ask(told, host_wire.Done)

        async def take() -> None:
            while True:
                for call in (await client.ask(wire.TakeCalls(wait_s=10, rank=rank), wire.CallsReport)).calls:
                    tasks.add(asyncio.create_task(one(call)))

        taking = asyncio.create_task(take())
        try:
            yield client
        finally:
            for task in (taking, *tasks):
                task.cancel()
            await asyncio.wait((taking, *tasks))


async def test_a_call_is_answered_and_told_by_the_receipt(
    shared_settings: Settings, shared_host: HostConnection
) -> None:
    sandbox = await make_kernel(shared_host)
    async with served(shared_settings):
        request = await begin(shared_host, sandbox, f"{ASK}\nprint('on')\nask('x', n=1)")
        waiting = kernels.WaitCell(sandbox=sandbox, cell=request.cell, wait_s=WAIT_S)
        result = (await shared_host.ask(waiting, kernels.CellReport)).result
    assert result is not None
    assert result.results.text == f"{{'result': [{{'n': 1}}, 'main', '{request.cell}'], 'error': '', 'code': ''}}"
    use = result.receipt.helpers
    assert (use.calls, use.failed, use.prompt_tokens, use.completion_tokens) == (1, 0, 3, 2)
    after = await run(shared_host, sandbox, "1")
    assert after.receipt.helpers.calls == 0


async def test_a_kernel_and_its_branch_never_read_each_others_answers(
    shared_settings: Settings, shared_host: HostConnection
) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, ASK)
    branching = kernels.BranchKernel(sandbox=sandbox, kernel=KERNEL, branch="twig", epoch=1, wait_s=WAIT_S)
    await shared_host.ask(branching, kernels.BranchReport)
    asking = """\
with ThreadPoolExecutor(50) as pool:
    told = list(pool.map(lambda n: ask('x', n=n)['result'], range(50)))
[row[0]['n'] for row in told] == list(range(50)), {row[1] for row in told}"""

    async def slow(call: wire.CallReport) -> dict[str, Any]:
        await asyncio.sleep(0.001 * (hash(call.call) % 50))
        return await echo(call)

    async with served(shared_settings, slow):
        mine, theirs = await asyncio.gather(
            run(shared_host, sandbox, asking), run(shared_host, sandbox, asking, kernel="twig")
        )
    assert (mine.results.text, theirs.results.text) == ("(True, {'main'})", "(True, {'twig'})")


@pytest.mark.parametrize(
    "who",
    [
        pytest.param("subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout", id="child"),
        pytest.param(
            "subprocess.run(['setsid', 'bash', '-c', f\"{sys.executable} -c \\\"$CODE\\\" & wait\"], "
            "capture_output=True, text=True, env={**os.environ, 'CODE': code}).stdout",
            id="grandchild in a session of its own",
        ),
    ],
)
async def test_what_the_kernel_starts_asks_in_its_name(
    shared_settings: Settings, shared_host: HostConnection, who: str
) -> None:
    sandbox = await make_kernel(shared_host)
    code = f"{ASK}\nprint(ask('x')['result'][1])"
    async with served(shared_settings):
        said = await value_of(shared_host, sandbox, f"import os, subprocess, sys\ncode = {code!r}\n{who}")
    assert said == "'main\\n'"


async def test_a_command_asks_in_the_name_of_its_session(
    shared_settings: Settings, shared_host: HostConnection
) -> None:
    sandbox = await make_kernel(shared_host)
    async with served(shared_settings):
        code = f"{ASK}\nprint(ask('x')['result'][1:])"
        await run(shared_host, sandbox, f"open('/tmp/asks.py', 'w').write({code!r})")
        result = await command(shared_host, sandbox, "python3 /tmp/asks.py")
    assert result.stdout.text == f"['main', '{result.command}']\n"
    assert result.receipt.helpers.calls == 1


async def test_without_a_server_a_caller_is_told_that_nothing_was_done(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    told = await value_of(
        shared_host, sandbox, f"{ASK}\ntold = ask('x')\ntold['code'], 'nothing was done' in told['error']"
    )
    assert told == "('host_unavailable', True)"


async def test_a_server_that_comes_within_seconds_is_waited_for(
    shared_settings: Settings, shared_host: HostConnection
) -> None:
    sandbox = await make_kernel(shared_host)
    request = await begin(shared_host, sandbox, f"{ASK}\nprint('on')\nask('x')['error']")
    async with served(shared_settings):
        waiting = kernels.WaitCell(sandbox=sandbox, cell=request.cell, wait_s=WAIT_S)
        result = (await shared_host.ask(waiting, kernels.CellReport)).result
    assert result is not None
    assert result.results.text == "''"


async def test_a_server_that_goes_away_in_the_middle_is_told_and_nothing_is_done_twice(
    shared_settings: Settings, shared_host: HostConnection
) -> None:
    sandbox = await make_kernel(shared_host)
    taken: list[str] = []
    under_way = asyncio.Event()

    async def never(call: wire.CallReport) -> dict[str, Any]:
        taken.append(call.call)
        under_way.set()
        await asyncio.Event().wait()
        raise AssertionError

    request = await begin(shared_host, sandbox, f"{ASK}\nprint('on')\ntold = ask('x')\ntold['code'], told['error']")
    async with served(shared_settings, never):
        async with asyncio.timeout(WAIT_S):
            await under_way.wait()
    async with served(shared_settings, never):
        waiting = kernels.WaitCell(sandbox=sandbox, cell=request.cell, wait_s=WAIT_S)
        result = (await shared_host.ask(waiting, kernels.CellReport)).result
        assert result is not None
        assert "whether it was carried out is not known" in result.results.text
    assert len(taken) == 1
    assert result.receipt.helpers.failed == 1


async def test_a_command_of_the_shell_is_asked_only_where_no_server_is(
    shared_settings: Settings, shared_host: HostConnection
) -> None:
    sandbox = await make_kernel(shared_host)

    async def aside(_: wire.CallReport) -> dict[str, Any]:
        return {"result": "aside", "error": "", "code": ""}

    async def first(_: wire.CallReport) -> dict[str, Any]:
        return {"result": "first", "error": "", "code": ""}

    ask = f"{ASK}\n{{ask('x')['result'] for _ in range(10)}}"
    async with served(shared_settings, aside, rank=1):
        assert await value_of(shared_host, sandbox, ask) == "{'aside'}"
        async with served(shared_settings, first):
            assert await value_of(shared_host, sandbox, ask) == "{'first'}"
        assert await value_of(shared_host, sandbox, ask) == "{'aside'}"


async def test_a_caller_that_is_interrupted_gives_its_call_up(
    shared_settings: Settings, shared_host: HostConnection
) -> None:
    sandbox = await make_kernel(shared_host)
    async with await connect_or_start(shared_settings, os.environ) as client:
        request = await begin(shared_host, sandbox, f"{ASK}\nprint('on')\nask('x')")
        taken = await client.ask(wire.TakeCalls(wait_s=10), wire.CallsReport)
        await shared_host.ask(kernels.InterruptKernel(sandbox=sandbox, kernel=KERNEL), host_wire.Done)
        after = await client.ask(wire.TakeCalls(wait_s=10), wire.CallsReport)
        assert after.abandoned == (taken.calls[0].call,)
        late = wire.AnswerCall(call=taken.calls[0].call, body=b"{}")
        await client.ask(late, host_wire.Done)
    waiting = kernels.WaitCell(sandbox=sandbox, cell=request.cell, wait_s=WAIT_S)
    result = (await shared_host.ask(waiting, kernels.CellReport)).result
    assert result is not None
    assert result.outcome == "interrupted"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        pytest.param(
            f"line = connected(); line.sendall(struct.pack('>I', {MAX_CALL_BYTES} + 1)); frame(line)['code']",
            "'invalid_request'",
            id="one that is too long",
        ),
        pytest.param(
            """\
def large(n):
    with connected() as line:
        line.sendall(struct.pack('>I', 8_000_000) + b'x')
        return (frame(line) or {}).get('code')
lines = [connected() for _ in range(4)]
for line in lines: line.sendall(struct.pack('>I', 8_000_000) + b'x')
large(0)""",
            "'rate_limited'",
            id="too many large ones",
        ),
        pytest.param(
            """\
lines = []
while len(lines) < 400:
    lines.append(connected())
    lines[-1].settimeout(0.5)
    try:
        told = frame(lines[-1])
        break
    except TimeoutError:
        lines[-1].settimeout(0.002)
    if len(lines) == 1: [lines.append(connected()) for _ in range(128)]
len(lines) <= 131, told['code']""",
            "(True, 'rate_limited')",
            id="too many at once",
        ),
        pytest.param("line = connected(); line.sendall(b'xx'); line.close(); 1", "1", id="one that breaks off"),
    ],
)
async def test_hostile_calls_cost_their_own_sandbox_only(
    shared_settings: Settings, shared_host: HostConnection, code: str, told: str
) -> None:
    sandbox = await make_kernel(shared_host)
    other = await make_kernel(shared_host)
    async with served(shared_settings):
        assert await value_of(shared_host, sandbox, f"{ASK}\n{code}") == told
        assert await value_of(shared_host, other, f"{ASK}\nask('x')['error']") == "''"


async def test_restored_and_restarted_kernels_ask_again(shared_settings: Settings, shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    async with served(shared_settings):
        await run(shared_host, sandbox, ASK)
        await run(shared_host, sandbox, "os._exit(1)")
        assert await value_of(shared_host, sandbox, "ask('x')['result'][1]") == "'main'"
        await shared_host.ask(kernels.RestartKernel(sandbox=sandbox, kernel=KERNEL), kernels.KernelReport)
        assert await value_of(shared_host, sandbox, f"{ASK}\nask('x')['result'][1]") == "'main'"
