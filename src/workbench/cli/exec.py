"""`workbench exec`: run a piece of Python in a fresh sandbox, streaming what it prints."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

import click

from workbench.cli.outcome import EXIT_ENDED, EXIT_LOST, exit_code, remarks
from workbench.errors import HostUnavailable, WorkbenchError
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.process import Stream
from workbench.model.tier import TIERS
from workbench.settings import Settings
from workbench.wire import host as wire

_POLL_S = 20.0
# Short: the end of the process must be noticed by who waits for a stream that something else holds open.
_COPY_POLL_S = 0.25
_GRACE_S = 2.0


@click.command("exec")
@click.argument("code", required=False)
@click.option("-f", "--file", type=click.File("rb"), help="Take the code from this file; - is standard input.")
@click.option(
    "--tier", type=click.Choice(list(TIERS)), default="standard", show_default=True, help="Size of the sandbox."
)
@click.option("--files", metavar="MOUNT", help="Show this mount at /mnt/files; it is made if new and stays afterwards.")
@click.option(
    "--env", "-e", "variables", multiple=True, metavar="NAME=VALUE", help="A variable for the code; repeatable."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=180.0, show_default=True, help="Time limit in seconds."
)
@click.pass_obj
def exec_(
    settings: Settings,
    code: str | None,
    file: BinaryIO | None,
    tier: str,
    files: str | None,
    variables: tuple[str, ...],
    timeout: float,
) -> None:
    """Run CODE (Python) in a fresh sandbox and print what it prints.

    Exits with the code's own exit code; 124 at the time limit, 125 when nothing was run because of us, 126 when the
    sandbox ended under the code, 128 and the signal's number when a signal ended it.
    """
    if (code is None) == (file is None):
        raise click.UsageError("give the code as an argument, or with --file; one of them")
    payload = code.encode() if code is not None else file.read() if file is not None else b""
    env = {}
    for variable in variables:
        name, equals, value = variable.partition("=")
        if not equals:
            raise click.UsageError(f"--env wants NAME=VALUE, not {variable!r}")
        env[name] = value
    create = wire.CreateSandbox(sandbox=new_sandbox_id(), tier=tier, files=files, env=env)
    sys.exit(asyncio.run(_run_until_told_to_end(settings, create, payload, timeout)))


async def _run_until_told_to_end(settings: Settings, create: wire.CreateSandbox, payload: bytes, limit_s: float) -> int:
    """A terminal that closes, or who ends us, ends the sandbox too: nobody else knows of it."""
    running = asyncio.create_task(_run(settings, create, payload, limit_s))
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        return await running
    except asyncio.CancelledError:
        return EXIT_ENDED


async def _run(settings: Settings, create: wire.CreateSandbox, payload: bytes, limit_s: float) -> int:
    async with await connect_or_start(settings, os.environ) as host:
        report = await host.ask(create, wire.SandboxReport)
        if report.warning:
            click.echo(f"[workbench] {report.warning}", err=True)
        try:
            return await _run_in(host, create.sandbox, payload, limit_s)
        finally:
            # A host that has gone has taken the sandbox along.
            with contextlib.suppress(HostUnavailable):
                await host.ask(wire.CloseSandbox(sandbox=create.sandbox), wire.Done)


async def _run_in(host: HostConnection, sandbox: str, payload: bytes, limit_s: float) -> int:
    process = new_process_id()
    await host.ask(
        wire.StartProcess(sandbox=sandbox, process=process, entry="run_code", payload=payload), wire.ProcessReport
    )
    # From here on the code has begun: whatever happens is told as its outcome.
    try:
        return await _follow(host, sandbox, process, limit_s)
    except WorkbenchError as problem:
        click.echo(f"[workbench] the code had begun, and its end is not known: {problem.message}", err=True)
        return EXIT_LOST


async def _follow(host: HostConnection, sandbox: str, process: str, limit_s: float) -> int:
    loop = asyncio.get_running_loop()
    signals: set[asyncio.Task[wire.Done]] = set()

    def send(number: int) -> None:
        request = wire.SignalProcess(sandbox=sandbox, process=process, signal=number)
        signals.add(loop.create_task(host.ask(request, wire.Done)))

    over = asyncio.Event()

    def interrupt() -> None:
        if not over.is_set():
            send(signal.SIGINT)
        else:
            # Nothing runs any more: it is the printing that is to stop.
            for copy in copies:
                copy.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    copies = [
        asyncio.create_task(_copy(host, sandbox, process, stream, to, over, send))
        for stream, to in ((Stream.STDOUT, sys.stdout.buffer), (Stream.STDERR, sys.stderr.buffer))
    ]
    try:
        report, timed_out = await _until_end(host, sandbox, process, limit_s)
        over.set()
        # However slow the reader of ours is: what was printed is in the spool, and is handed on to its last byte.
        await asyncio.gather(*copies)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for task in (*copies, *signals):
            task.cancel()
        await asyncio.wait([*copies, *signals])
    for line in remarks(report, timed_out=timed_out, limit_s=limit_s):
        click.echo(f"[workbench] {line}", err=True)
    return exit_code(report, timed_out=timed_out)


async def _until_end(
    host: HostConnection, sandbox: str, process: str, limit_s: float
) -> tuple[wire.ProcessReport, bool]:
    """Wait; at the limit ask it to stop, then make it."""
    deadline = time.monotonic() + limit_s
    ladder = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    timed_out = False
    while True:
        wait_s = min(_POLL_S, max(0.0, deadline - time.monotonic()))
        request = wire.WaitProcess(sandbox=sandbox, process=process, wait_s=wait_s)
        report = await host.ask(request, wire.ProcessReport)
        if not report.running:
            return report, timed_out
        if time.monotonic() >= deadline:
            timed_out = True
            number = ladder.pop(0) if len(ladder) > 1 else ladder[0]
            await host.ask(wire.SignalProcess(sandbox=sandbox, process=process, signal=number), wire.Done)
            deadline = time.monotonic() + _GRACE_S


async def _copy(
    host: HostConnection,
    sandbox: str,
    process: str,
    stream: Stream,
    to: BinaryIO,
    over: asyncio.Event,
    send: Callable[[int], None],
) -> None:
    """Hand a stream on until its end; once the process is over, until there is nothing more.

    A process left in the background may hold the stream open for ever; what the code itself printed is there by then.
    """
    offset = 0
    while True:
        last = over.is_set()
        wait_s = 0.0 if last else _COPY_POLL_S
        piece = await host.ask(
            wire.ReadOutput(sandbox=sandbox, process=process, stream=stream, offset=offset, wait_s=wait_s),
            wire.OutputReport,
        )
        try:
            # In a thread: a paused reader of ours must not keep the time limit or Ctrl-C from working.
            await asyncio.to_thread(_write, to, piece.data)
        except BrokenPipeError:
            # `| head` has seen enough. As for any program, nobody to print for is a reason to end.
            send(signal.SIGTERM)
            os.dup2(os.open(os.devnull, os.O_WRONLY), to.fileno())
            return
        offset += len(piece.data)
        if piece.ended or (last and not piece.data):
            if piece.dropped_bytes:
                click.echo(f"[workbench] {piece.dropped_bytes} bytes of {stream} were over the spool's limit", err=True)
            return


def _write(to: BinaryIO, data: bytes) -> None:
    to.write(data)
    to.flush()
