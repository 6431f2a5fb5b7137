"""`workbench sessions`: what there is, how it is, and what can be done with it."""

from __future__ import annotations

import dataclasses
import sys
from typing import BinaryIO

import click

from workbench.cli.asking import ask, ask_and_note, ask_service, noted
from workbench.cli.commands import Commands
from workbench.cli.local_sandbox import local
from workbench.cli.printing import notice
from workbench.cli.running import env_option, json_option, parsed_variables, runtime_option, tier_option
from workbench.cli.tables import lasting, moment, plain, print_table, size
from workbench.cli.values import print_json, session_json
from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.model.configuration import SandboxSwitches, SessionConfig
from workbench.model.corrections import SWITCHES, switches_of
from workbench.model.execution import QueuedCell
from workbench.model.ids import SessionId, cell_id, new_session_id, session_id
from workbench.model.packages import PackagePolicy
from workbench.model.records import Progress
from workbench.model.runtime import PYTHON
from workbench.model.session import SessionDescription
from workbench.model.tier import TIERS, tier_named
from workbench.settings import Settings
from workbench.wiring import Service

_EXIT_START_UP = 1


# They stand on this module.
_ELSEWHERE = {
    "undo": "workbench.cli.state:undo",
    "branch": "workbench.cli.state:branch",
    "snapshots": "workbench.cli.state:snapshots",
    "history": "workbench.cli.history:history",
    "export": "workbench.cli.history:export",
    "idle": "workbench.cli.idle:idle",
    "keep": "workbench.cli.idle:keep",
}


@click.group(commands=Commands(_ELSEWHERE), invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> None:
    """Sessions: they outlive their kernels, their sandboxes and the host. Without a command: list them."""
    if context.invoked_subcommand is None:
        context.invoke(ls, as_json=False)


sessions.add_command(local)


@sessions.command()
@json_option
@click.pass_obj
def ls(settings: Settings, as_json: bool) -> None:
    """All sessions, by name."""
    found = ask(settings, _all)
    if as_json:
        print_json([session_json(one) for one in found])
        return
    print_table(
        ("SESSION", "USER", "RUNTIME", "STATE", "TIER", "CELLS", "MEMORY", "LAST USED"),
        (
            (
                one.session.spec.id,
                one.session.spec.user,
                one.session.spec.runtime,
                one.state,
                one.session.spec.tier.name,
                str(one.execution_count),
                size(one.memory_bytes) if one.memory_bytes else "-",
                moment(one.session.used_at),
            )
            for one in found
        ),
    )


async def _all(bench: Workbench) -> list[SessionDescription]:
    found: list[SessionDescription] = []
    after: SessionId | None = None
    while True:
        page = await bench.list_sessions(requests.ListSessions(user=None, after=after))
        found.extend(page.sessions)
        after = page.next_after
        if after is None:
            return found


@sessions.command()
@click.argument("name")
@json_option
@click.pass_obj
def show(settings: Settings, name: str, as_json: bool) -> None:
    """One session in detail."""
    request = requests.DescribeSession(session=session_id(name))
    _print(ask(settings, lambda bench: bench.describe_session(request)), as_json=as_json)


def _print(described: SessionDescription, *, as_json: bool) -> None:
    if as_json:
        print_json(session_json(described))
        return
    session, spec = described.session, described.session.spec
    lines = {
        "session": spec.id,
        "user": plain(spec.user),
        "runtime": spec.runtime,
        "state": described.state + (f": {described.detail}" if described.detail else ""),
        "tier": spec.tier.name,
        "memory": size(described.memory_bytes) if described.memory_bytes else "-",
        "epoch": str(session.epoch),
        "cells run": str(described.execution_count),
        "queue": f"{len(described.queue)} cells" if described.queue else "-",
        "step": _step(described.progress),
        "thought": plain(described.progress.thought) or "-",
        "working folder": spec.working_folder,
        "variables": ", ".join(sorted(spec.env)) or "-",
        "start-up code": f"{len(spec.start_up.splitlines())} lines" if spec.start_up else "-",
        "snapshots": snapshots_in_words(described),
        "sandbox": session.sandbox if session.begun else "-",
        "shared with": ", ".join(described.shared_with) or "-",
        "branched from": session.parent or "-",
        "context of": session.context_of or "-",
        "made": moment(session.created_at),
        "last used": moment(session.used_at),
    }
    for name, value in lines.items():
        click.echo(f"{name + ':':16}{value}")
    warn(described)


def _step(progress: Progress) -> str:
    said = (progress.current_step, progress.current_step_metric)
    return plain(", ".join(one for one in said if one)) or "-"


def snapshots_in_words(described: SessionDescription) -> str:
    """What is kept of a memory, and what that costs."""
    state = described.snapshots
    if not described.session.spec.snapshots:
        return "off"
    if described.state not in ("idle", "busy"):
        return f"none: {plain(state.reason)}" if state.reason else "on"
    kept = f"{state.kept} kept" if state.kept else "none"
    if state.current:
        return f"{kept}, the newest is current and took {state.cost_s:.3f} s"
    return f"{kept}{', not current' if state.kept else ''}" + (f": {plain(state.reason)}" if state.reason else "")


def warn(described: SessionDescription) -> None:
    """Of what is weak or failed."""
    if described.warning:
        notice(described.warning)
    if described.start_up_error:
        notice(f"the start-up code failed: {described.start_up_error}")


@sessions.command()
@click.argument("name", required=False)
@runtime_option
@tier_option
@env_option
@click.option("--start-up", type=click.File("rb"), metavar="FILE", help="Code to run in every new memory; - is stdin.")
@click.option("--cwd", default="/home/user", show_default=True, metavar="DIR", help="Working folder; made if missing.")
@click.option("--no-snapshots", is_flag=True, help="Keep nothing of its memory between cells.")
@click.option("--no-sandbox", is_flag=True, help="For a box of your own: nothing runs in it here.")
@click.option("--no-tool-execution", is_flag=True, help="No helpers for tools, the model and the web search.")
@click.option(
    "--packages",
    type=click.Choice([one.value for one in PackagePolicy]),
    help="Which packages its code may have installed, within what the server allows.",
)
@click.option(
    "--corrections", default=None, metavar="LIST", help="Which mistakes are corrected, like all,-keys or none."
)
@json_option
@click.pass_obj
def create(
    settings: Settings,
    name: str | None,
    runtime: str | None,
    tier: str | None,
    variables: tuple[str, ...],
    start_up: BinaryIO | None,
    cwd: str,
    no_snapshots: bool,
    no_sandbox: bool,
    no_tool_execution: bool,
    packages: str | None,
    corrections: str | None,
    as_json: bool,
) -> None:
    """Make a session, start its kernel and print its name. Exits with 1 if the start-up code raised."""
    request = requests.CreateSession(
        session=session_id(name) if name is not None else new_session_id(),
        runtime=runtime or PYTHON,
        tier=tier_named(tier or "standard"),
        env=parsed_variables(variables),
        start_up=start_up.read().decode("utf-8", "replace") if start_up is not None else "",
        working_folder=cwd,
        snapshots=not no_snapshots,
        config=SessionConfig(
            sandbox=SandboxSwitches(
                enable=not no_sandbox,
                tool_execution=not no_tool_execution,
                packages=None if packages is None else PackagePolicy(packages),
                corrections=_switched(corrections),
            )
        ),
        eager=not no_sandbox,
    )
    described = ask_and_note(settings, "session.create", request.session, lambda bench: bench.create_session(request))
    if as_json:
        print_json(session_json(described))
    else:
        click.echo(described.session.spec.id)
    warn(described)
    sys.exit(_EXIT_START_UP if described.start_up_error else 0)


def _switched(text: str | None) -> dict[str, bool]:
    """All of them, if a list is given."""
    if text is None:
        return {}
    on = switches_of(text)
    return {one: one in on for one in SWITCHES}


@sessions.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def rm(settings: Settings, names: tuple[str, ...]) -> None:
    """Delete sessions: what runs in them ends; files go with the last of those that share them."""

    async def remove(service: Service) -> None:
        for name in names:
            session = session_id(name)
            async with noted(service, "session.delete", session):
                await service.workbench().delete_session(requests.DeleteSession(session=session))

    ask_service(settings, remove)


@sessions.command()
@click.argument("name")
@json_option
@click.pass_obj
def restart(settings: Settings, name: str, as_json: bool) -> None:
    """Give a session a new, empty memory; files stay, and the start-up code is run."""
    request = requests.RestartKernel(session=session_id(name))
    described = ask(settings, lambda bench: bench.restart_kernel(request))
    if as_json:
        print_json(session_json(described))
    else:
        click.echo(f"{name} has a new memory, epoch {described.session.epoch}")
    warn(described)


@sessions.command()
@click.argument("name")
@click.pass_obj
def interrupt(settings: Settings, name: str) -> None:
    """Interrupt the cell that runs; what waits behind it goes on."""
    request = requests.InterruptKernel(session=session_id(name))
    ask(settings, lambda bench: bench.interrupt_kernel(request))


@sessions.command()
@click.argument("name")
@click.argument("tier", type=click.Choice(list(TIERS)))
@click.pass_obj
def tier(settings: Settings, name: str, tier: str) -> None:
    """Give a session, and all that share its sandbox, another size; their memory stays."""
    request = requests.ChangeTier(session=session_id(name), tier=tier_named(tier))
    ask_and_note(settings, "session.change", request.session, lambda bench: bench.change_tier(request))
    click.echo(f"{name} is {tier}")


@sessions.command("vars")
@click.argument("name")
@json_option
@click.pass_obj
def variables(settings: Settings, name: str, as_json: bool) -> None:
    """Names of the memory: type, size, and the beginning of the value."""
    request = requests.ListVariables(session=session_id(name))
    found = ask(settings, lambda bench: bench.list_variables(request))
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
    else:
        print_table(("NAME", "TYPE", "SIZE", "VALUE"), ((one.name, one.type, one.size, one.preview) for one in found))


@sessions.command()
@click.argument("name")
@json_option
@click.pass_obj
def ps(settings: Settings, name: str, as_json: bool) -> None:
    """What runs in the background."""
    request = requests.ListProcesses(session=session_id(name))
    found = ask(settings, lambda bench: bench.list_processes(request))
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
    else:
        rows = ((str(one.pid), lasting(one.for_s), size(one.memory_bytes), one.command) for one in found)
        print_table(("PID", "FOR", "MEMORY", "COMMAND"), rows)


@sessions.command()
@click.argument("name")
@json_option
@click.pass_obj
def queue(settings: Settings, name: str, as_json: bool) -> None:
    """The cell that runs, and those that wait for their turn."""
    request = requests.DescribeSession(session=session_id(name))
    found = ask(settings, lambda bench: bench.describe_session(request)).queue
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
    else:
        print_table(("CELL", "STATE", "FOR", "FROM", "CODE"), (_queued(one) for one in found))


def _queued(one: QueuedCell) -> tuple[str, ...]:
    return one.cell, "running" if one.running else "waiting", lasting(one.for_s), one.origin, one.first_line


@sessions.command()
@click.argument("name")
@click.argument("cell")
@click.pass_obj
def cancel(settings: Settings, name: str, cell: str) -> None:
    """Take a waiting cell out of the queue; `workbench sessions queue` has their ids."""
    request = requests.CancelCell(session=session_id(name), cell=cell_id(cell))
    ask(settings, lambda bench: bench.cancel_cell(request))
