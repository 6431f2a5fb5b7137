"""`workbench bash`: run a command line in a session, beside what its kernel does."""

from __future__ import annotations

import sys

import click

from workbench.cli.outcome import command_exit_code, remarks
from workbench.cli.printing import Output, notice
from workbench.cli.running import (
    Place,
    Wanted,
    env_option,
    json_option,
    run_in_session,
    session_option,
    tier_option,
    timeout_option,
)
from workbench.cli.values import command_json, print_json
from workbench.core.requests import RunCommand, StopCommand
from workbench.model.ids import new_cell_id
from workbench.settings import Settings


@click.command("bash")
@click.argument("command")
@session_option
@tier_option
@env_option
@timeout_option
@json_option
@click.pass_obj
def bash(
    settings: Settings,
    command: str,
    name: str | None,
    tier: str | None,
    variables: tuple[str, ...],
    timeout: float,
    as_json: bool,
) -> None:
    """Run COMMAND by bash in /home/user of a session, and print what it prints.

    What it starts with nohup or & lives on in a session that stays. Exits with the command's own exit code; 124 at the
    time limit, 125 when nothing was run, 126 when the sandbox ended under it, 130 when it was interrupted.
    """

    async def job(place: Place) -> int:
        return await _run(place, command, timeout, as_json=as_json)

    sys.exit(run_in_session(settings, Wanted(name=name, tier=tier, variables=variables), job))


async def _run(place: Place, command: str, limit_s: float, *, as_json: bool) -> int:
    output, cell = Output(), new_cell_id()
    place.stop = lambda: place.bench.stop_command(StopCommand(session=place.session, cell=cell))
    follower = None if as_json else output.follower
    request = RunCommand(session=place.session, command=command, limit_s=limit_s, cell=cell, follower=follower)
    result = await place.bench.run_command(request)
    if as_json:
        print_json(command_json(result, place.name))
    for line in remarks(result, limit_s=limit_s, session=place.name):
        notice(line)
    return command_exit_code(result)
