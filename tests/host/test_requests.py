"""What a host answers: to right requests, to wrong ones, and to bytes that are no request at all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import time

import msgspec
import pytest
from tests.host.support import make_sandbox, run_code, sandbox_roots, start_code, stop, whole_output

from workbench.data_folder import reach, release
from workbench.errors import (
    Conflict,
    HostIncompatible,
    InvalidRequest,
    NotFound,
    SandboxUnavailable,
    WorkbenchError,
)
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect, connect_or_start
from workbench.model.process import Limit, Stream
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire.values import Value


async def wait(host: HostConnection, sandbox: str, process: str, wait_s: float = 60.0) -> wire.ProcessReport:
    return await host.ask(wire.WaitProcess(sandbox=sandbox, process=process, wait_s=wait_s), wire.ProcessReport)


async def test_a_process_is_followed_from_start_to_exit(host: HostConnection) -> None:
    sandbox = await make_sandbox(host, tier="medium", env={"GREETING": "hello"})
    report = await host.ask(wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport)
    assert (report.tier, report.isolated, report.engine) == ("medium", True, "namespace")
    process = await start_code(host, sandbox, "import os, sys; print(os.environ['GREETING']); sys.exit(7)")
    end = await wait(host, sandbox, process)
    assert (end.running, end.code, end.signal, end.lost) == (False, 7, None, False)
    assert await whole_output(host, sandbox, process) == b"hello\n"
    await host.ask(wire.ForgetProcess(sandbox=sandbox, process=process), wire.Done)
    with pytest.raises(NotFound, match="forgotten"):
        await wait(host, sandbox, process)


async def test_input_reaches_a_program_and_ends(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    await host.ask(
        wire.StartProcess(sandbox=sandbox, process="cat", argv=("/bin/cat",), stdin=True), wire.ProcessReport
    )
    data = os.urandom(300_000)
    await host.ask(wire.WriteStdin(sandbox=sandbox, process="cat", data=data, end=True), wire.Done)
    assert await whole_output(host, sandbox, "cat") == data


async def test_output_can_be_read_again_from_any_offset(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    process = await start_code(host, sandbox, "print('0123456789')")
    assert await whole_output(host, sandbox, process) == b"0123456789\n"
    request = wire.ReadOutput(sandbox=sandbox, process=process, stream=Stream.STDOUT, offset=3, limit=4)
    piece = await host.ask(request, wire.OutputReport)
    assert (piece.data, piece.offset, piece.ended) == (b"3456", 3, False)


async def test_a_wait_is_bounded_and_says_that_it_runs(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    process = await start_code(host, sandbox, "import time; time.sleep(1000)")
    assert (await wait(host, sandbox, process, wait_s=0.05)).running
    await host.ask(wire.SignalProcess(sandbox=sandbox, process=process, signal=9), wire.Done)
    end = await wait(host, sandbox, process)
    assert (end.code, end.signal) == (None, 9)


async def test_memory_that_runs_out_is_named(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    code = "import time\nkeep = [bytearray(b'x' * (1 << 20)) for _ in range(3000)]\ntime.sleep(60)"
    process = await start_code(host, sandbox, code)
    end = await wait(host, sandbox, process)
    assert end.signal == 9
    assert end.limits == (Limit.MEMORY,)
    assert await run_code(host, sandbox, "print('the sandbox lives')") == b"the sandbox lives\n"


async def test_closing_a_sandbox_ends_what_runs_and_is_idempotent(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    process = await start_code(host, sandbox, "import time; time.sleep(1000)")
    waiting = asyncio.create_task(wait(host, sandbox, process))
    await asyncio.sleep(0)
    await host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
    await host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
    end = await waiting
    assert end.lost
    assert end.reason == "closed"
    report = await host.ask(wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport)
    assert report.gone == "closed"


async def test_a_mount_outlives_its_sandbox_and_the_host(settings: Settings) -> None:
    async with await connect_or_start(settings, os.environ) as first:
        sandbox = await make_sandbox(first, files="reports")
        await run_code(first, sandbox, "open('/mnt/files/kept', 'w').write('words')")
        await stop(first)
    while (settings.data_dir / "host.sock").is_symlink():
        await asyncio.sleep(0.02)
    async with await connect_or_start(settings, os.environ) as second:
        sandbox = await make_sandbox(second, files="reports")
        assert await run_code(second, sandbox, "print(open('/mnt/files/kept').read())") == b"words\n"


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (wire.CreateSandbox(sandbox="../up"), InvalidRequest, "not a sandbox id"),
        (wire.CreateSandbox(sandbox="ok", tier="huge"), InvalidRequest, "choose one of standard"),
        (wire.CreateSandbox(sandbox="ok", files="a/b"), InvalidRequest, "not a mount id"),
        (wire.CreateSandbox(sandbox="ok", files="tmp-x"), InvalidRequest, "may not start with"),
        (wire.CreateSandbox(sandbox="ok", env={"A=B": "c"}), InvalidRequest, "variable's name"),
        (wire.DescribeSandbox(sandbox="never"), NotFound, "no sandbox 'never'"),
        (wire.StartProcess(sandbox="never", process="p", argv=("x",)), NotFound, "no sandbox"),
        (wire.ChangeTier(sandbox="never", tier="large"), NotFound, "no sandbox"),
    ],
)
async def test_a_wrong_request_gets_an_error_that_names_the_thing(
    host: HostConnection, request_: wire.AnyRequest, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await host.ask(request_, Value)


async def test_a_process_id_can_be_used_once_and_a_program_must_exist(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    program = wire.StartProcess(sandbox=sandbox, process="p", argv=("/bin/true",))
    await host.ask(program, wire.ProcessReport)
    with pytest.raises(Conflict, match="already"):
        await host.ask(program, wire.ProcessReport)
    with pytest.raises(InvalidRequest, match="no such program in the sandbox"):
        await host.ask(wire.StartProcess(sandbox=sandbox, process="q", argv=("/no/such",)), wire.ProcessReport)


async def test_a_sandbox_that_ends_by_itself_keeps_its_outputs_and_says_why(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    process = await start_code(host, sandbox, "import time; print('said', flush=True); time.sleep(1000)")
    request = wire.ReadOutput(sandbox=sandbox, process=process, stream=Stream.STDOUT, wait_s=30.0)
    await host.ask(request, wire.OutputReport)
    pid = (await host.ask(wire.Status(), wire.StatusAnswer)).pid
    for child in sandbox_roots(pid):
        os.kill(child, 9)
    end = await wait(host, sandbox, process)
    assert end.lost
    assert end.reason == "the sandbox ended by itself"
    assert await whole_output(host, sandbox, process) == b"said\n"
    with pytest.raises(SandboxUnavailable, match="is gone: the sandbox ended by itself"):
        await start_code(host, sandbox, "print(1)")
    again = await make_sandbox(host)
    assert await run_code(host, again, "print(1)") == b"1\n"


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", 3) + b"abc", struct.pack(">I", 1 << 31)]
)
async def test_bytes_that_are_no_request_end_only_their_connection(
    host: HostConnection, settings: Settings, garbage: bytes
) -> None:
    name = reach(settings.data_dir / "host.sock")
    try:
        reader, writer = await asyncio.open_unix_connection(name)
    finally:
        release(name)
    writer.write(garbage)
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 15) == b""
    writer.close()
    assert (await host.ask(wire.Status(), wire.StatusAnswer)).host == host.greeting.host


async def test_a_newer_host_is_refused_with_the_next_step(
    host: HostConnection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "PROTOCOL", 0)
    with pytest.raises(HostIncompatible, match="upgrade the client"):
        await connect(settings)


async def test_many_requests_share_one_connection(host: HostConnection) -> None:
    began = time.monotonic()
    sandboxes = await asyncio.gather(*(make_sandbox(host) for _ in range(8)))
    said = await asyncio.gather(*(run_code(host, one, f"print({n})") for n, one in enumerate(sandboxes)))
    assert said == [b"%d\n" % n for n in range(8)]
    assert time.monotonic() - began < 60
    await asyncio.gather(*(host.ask(wire.CloseSandbox(sandbox=one), wire.Done) for one in sandboxes))


async def test_the_same_request_again_gives_the_same_sandbox(host: HostConnection) -> None:
    request = wire.CreateSandbox(sandbox="again", tier="medium", env={"A": "b"})
    first = await host.ask(request, wire.SandboxReport)
    second = await host.ask(request, wire.SandboxReport)
    assert (first.sandbox, first.tier) == (second.sandbox, second.tier)
    with pytest.raises(Conflict, match="already"):
        await host.ask(wire.CreateSandbox(sandbox="again", tier="large"), wire.SandboxReport)


async def test_a_sandbox_closed_while_it_is_made_does_not_appear_afterwards(host: HostConnection) -> None:
    for _ in range(10):
        making = asyncio.create_task(make_named(host, "short-lived"))
        await asyncio.sleep(0)
        await host.ask(wire.CloseSandbox(sandbox="short-lived"), wire.Done)
        with contextlib.suppress(WorkbenchError):
            await making
        await host.ask(wire.CloseSandbox(sandbox="short-lived"), wire.Done)
        assert (await host.ask(wire.ListSandboxes(), wire.SandboxList)).sandboxes == ()


async def make_named(host: HostConnection, name: str) -> None:
    await host.ask(wire.CreateSandbox(sandbox=name), wire.SandboxReport)


async def test_of_two_who_want_one_mount_at_once_one_gets_it(host: HostConnection) -> None:
    results = await asyncio.gather(*(make_sandbox(host, files="wanted") for _ in range(4)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Conflict", "Conflict", "Conflict", "str"]


async def test_a_wait_that_is_no_number_is_refused(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    process = await start_code(host, sandbox, "print(1)")
    for wrong in (float("nan"), -1.0):
        with pytest.raises(InvalidRequest, match="0 s or more"):
            await wait(host, sandbox, process, wait_s=wrong)


async def test_a_request_that_cannot_be_understood_is_answered_and_ends_nothing(
    host: HostConnection, settings: Settings
) -> None:
    name = reach(settings.data_dir / "host.sock")
    try:
        reader, writer = await asyncio.open_unix_connection(name)
    finally:
        release(name)
    hello = wire.Hello(protocol=wire.PROTOCOL, version="0.1.0")
    writer.write(wire.frame(wire.Asked(number=1, request=hello)))
    unknown = msgspec.msgpack.encode({"number": 7, "request": {"type": "FlyToTheMoon"}})
    writer.write(struct.pack(">I", len(unknown)) + unknown)
    writer.write(wire.frame(wire.Asked(number=8, request=wire.Status())))
    answers = {}
    for _ in range(3):
        length = wire.frame_length(await asyncio.wait_for(reader.readexactly(4), 15))
        answered = wire.read_answered(await reader.readexactly(length))
        answers[answered.number] = answered.answer
    writer.close()
    assert isinstance(answers[8], wire.StatusAnswer)
    problem = answers[7]
    assert isinstance(problem, wire.Problem)
    assert problem.code == "host_incompatible"
