"""`workbench host`: run one in the foreground, ask how it is, stop it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from workbench.cli.host_beside import end_with
from workbench.cli.outcome import EXIT_ENDED
from workbench.cli.temporary_data import check_temporary, is_temporary
from workbench.data_folder import DataFolder
from workbench.errors import Conflict, HostUnavailable, NotFound
from workbench.guest_trees import remove_tree
from workbench.host_client.find import ENDS_WITH, all_hosts
from workbench.model.tier import TIERS
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire.values import Value

_STOP_TIMEOUT_S = 60.0


@click.group()
def host() -> None:
    """The process that owns all sandboxes of this data folder."""


@host.command()
@click.pass_obj
def run(settings: Settings) -> None:
    """Run a host in the foreground, until it is told to stop."""
    # Imported here: the other commands need neither engines nor images.
    from workbench.host.main import main

    def serve() -> int:
        return main(settings, lambda line: click.echo(line, err=line.startswith("error")))

    server = os.environ.pop(ENDS_WITH, None)
    sys.exit(serve() if server is None else _beside(server, serve, settings.data_dir))


def _beside(server: str, serve: Callable[[], int], data: Path) -> int:
    """Serve until the server is gone as well, and then leave as little as it would have left."""
    # Looked at now: whoever started the server may be removing the folder when we come to it.
    temporary = is_temporary(data)
    # Until the host has its own handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_ENDED))
    gone = end_with(server)
    try:
        return EXIT_ENDED if gone.is_set() else serve()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if temporary and gone.is_set():
            remove_tree(data)


@host.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Which hosts run, what they hold, and what was lost with earlier ones. Exits with 1 if none runs."""
    answers = asyncio.run(_statuses(settings))
    if as_json:
        click.echo(json.dumps([msgspec.to_builtins(answer) for answer, _ in answers], indent=2))
    for answer, held in () if as_json else answers:
        _print_status(answer, held)
    if not answers:
        click.echo(f"no host runs in {settings.data_dir}; `make run` or `workbench exec` starts one", err=True)
        sys.exit(1)


async def _statuses(settings: Settings) -> list[tuple[wire.StatusAnswer, wire.SandboxList]]:
    answers = []
    for connection in await all_hosts(settings):
        async with connection:
            status_ = await connection.ask(wire.Status(), wire.StatusAnswer)
            answers.append((status_, await connection.ask(wire.ListSandboxes(), wire.SandboxList)))
    return answers


def _print_status(answer: wire.StatusAnswer, held: wire.SandboxList) -> None:
    state = "draining" if answer.draining else "active"
    click.echo(f"host {answer.host}  {state}  version {answer.version}  pid {answer.pid}  up {answer.uptime_s:.0f} s")
    click.echo(f"  engine {answer.engine}, level {answer.level}, limits by {answer.limits_by}")
    click.echo(f"  {answer.sandboxes} sandboxes, {answer.pooled} prepared")
    for one in held.sandboxes:
        state = f"gone: {one.gone}" if one.gone else f"{one.age_s:.0f} s old"
        click.echo(f"    {one.sandbox}  {one.tier}  {state}")
    if answer.warning:
        click.echo(f"  WARNING: {answer.warning}")
    for lost in answer.lost[-10:]:
        click.echo(f"  lost: sandbox {lost.sandbox} with host {lost.host}, found {lost.when}")


@host.command()
@click.argument("sandbox")
@click.argument("tier", type=click.Choice(list(TIERS)))
@click.pass_obj
def tier(settings: Settings, sandbox: str, tier: str) -> None:
    """Give a living sandbox another size; its memory stays."""
    asyncio.run(_ask_holder(settings, sandbox, wire.ChangeTier(sandbox=sandbox, tier=tier)))
    click.echo(f"{sandbox} is {tier}")


@host.command()
@click.argument("sandbox")
@click.pass_obj
def close(settings: Settings, sandbox: str) -> None:
    """End a sandbox and all that runs in it; its mount stays."""
    asyncio.run(_ask_holder(settings, sandbox, wire.CloseSandbox(sandbox=sandbox)))


async def _ask_holder(settings: Settings, sandbox: str, request: wire.AnyRequest) -> None:
    """Ask whichever host holds the sandbox, the active one or one that drains."""
    for connection in await all_hosts(settings):
        async with connection:
            held = await connection.ask(wire.ListSandboxes(), wire.SandboxList)
            if any(one.sandbox == sandbox for one in held.sandboxes):
                await connection.ask(request, Value)
                return
    raise NotFound(f"no sandbox {sandbox!r} lives here; `workbench host status` lists those that do")


@host.command()
@click.option("--drain", is_flag=True, help="Take no new sandboxes, and leave with the last one.")
@click.option("--and-remove", is_flag=True, hidden=True, help="For what a server that was killed left behind.")
@click.pass_obj
def stop(settings: Settings, drain: bool, and_remove: bool) -> None:
    """End all hosts of this data folder and every sandbox in them."""
    if and_remove:
        asyncio.run(_remove(settings))
        return
    asyncio.run(_stop(settings, drain))


async def _stop(settings: Settings, drain: bool) -> None:
    connections = await all_hosts(settings)
    if not connections:
        raise HostUnavailable(f"no host runs in {settings.data_dir}: nothing to stop")
    for connection in connections:
        async with connection:
            await connection.ask(wire.Drain() if drain else wire.Stop(), wire.Done)
            click.echo(f"host {connection.greeting.host} {'drains' if drain else 'stops'}")
    if not drain:
        await _until_gone(settings)


async def _remove(settings: Settings) -> None:
    """End what runs in a temporary data folder, sweep up behind what was killed, and remove the folder."""
    from workbench.host.sweep import sweep_all

    check_temporary(settings.data_dir)
    for connection in await all_hosts(settings):
        async with connection:
            # It may be about to leave by itself.
            with contextlib.suppress(HostUnavailable):
                await connection.ask(wire.Stop(), wire.Done)
    sweep_all(DataFolder(settings.data_dir))
    await _until_gone(settings)
    if not remove_tree(settings.data_dir):
        raise Conflict(f"some of {settings.data_dir} could not be removed")


async def _until_gone(settings: Settings) -> None:
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while any(run_folder.path.is_dir() for run_folder in DataFolder(settings.data_dir).run_folders()):
        if time.monotonic() > deadline:
            raise HostUnavailable(
                f"the host has not left after {_STOP_TIMEOUT_S:.0f} s; see {settings.data_dir}/host.log"
            )
        await asyncio.sleep(0.02)
