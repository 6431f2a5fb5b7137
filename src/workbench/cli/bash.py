"""`workbench bash`: run a command line in a session, beside what its kernel does."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from workbench.cli.outcome import command_exit_code, remarks
from workbench.cli.printing import Output, notice
from workbench.cli.running import (
    Place,
    Wanted,
    check_idempotency,
    env_option,
    json_option,
    progress_from,
    progress_options,
    run_in_session,
    session_option,
    tier_option,
    timeout_option,
)
from workbench.cli.values import command_json, print_json
from workbench.core.requests import RunCommand, StopCommand
from workbench.settings import Settings


@click.command("bash")
@click.argument("command")
@session_option
@tier_option
@env_option
@timeout_option
@progress_options
@json_option
@click.pass_obj
def bash(
    settings: Settings,
    command: str,
    name: str | None,
    tier: str | None,
    variables: tuple[str, ...],
    timeout: float,
    thought: str,
    step: str,
    metric: str,
    idempotency_key: str,
    as_json: bool,
) -> None:
    """Run COMMAND by bash in /home/user of a session, and print what it prints.

    What it starts with nohup or & lives on in a session that stays. Exits with the command's own exit code; 124 at the
    time limit, 125 when nothing was run, 126 when the sandbox ended under it, 130 when it was interrupted.
    """
    progress = progress_from(thought, step, metric)
    check_idempotency(idempotency_key, name)

    async def job(place: Place) -> int:
        request = RunCommand(
            session=place.session,
            command=command,
            limit_s=timeout,
            progress=progress,
            idempotency_key=idempotency_key,
        )
        return await _run(place, request, as_json=as_json)

    sys.exit(run_in_session(settings, Wanted(name=name, tier=tier, variables=variables), job))


async def _run(place: Place, request: RunCommand, *, as_json: bool) -> int:
    output = Output()
    place.stop = lambda: place.bench.stop_command(StopCommand(session=place.session, cell=request.cell))
    result = await place.bench.run_command(replace(request, follower=None if as_json else output.follower))
    if as_json:
        print_json(command_json(result, place.name))
    for line in remarks(result, limit_s=request.limit_s, session=place.name):
        notice(line)
    return command_exit_code(result)
