"""`workbench exec`: run a piece of code in a session, streaming what it says."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import BinaryIO

import click

from workbench.cli.outcome import cell_exit_code, remarks
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
    runtime_option,
    session_option,
    tier_option,
    timeout_option,
)
from workbench.cli.values import cell_json, print_json
from workbench.core.requests import RunCell, StopCell
from workbench.settings import Settings


@click.command("exec")
@click.argument("code", required=False)
@click.option("-f", "--file", type=click.File("rb"), help="Take the code from this file; - is standard input.")
@session_option
@runtime_option
@tier_option
@env_option
@click.option("--cwd", metavar="DIR", help="Working folder of a new session; /home/user unless given.")
@timeout_option
@progress_options
@json_option
@click.pass_obj
def exec_(
    settings: Settings,
    code: str | None,
    file: BinaryIO | None,
    name: str | None,
    runtime: str | None,
    tier: str | None,
    variables: tuple[str, ...],
    cwd: str | None,
    timeout: float,
    thought: str,
    step: str,
    metric: str,
    idempotency_key: str,
    as_json: bool,
) -> None:
    """Run CODE in the session's language (Python unless --runtime says otherwise) and print what it prints, and its
    last value.

    Without CODE it is read from --file, or from standard input if that is no terminal. Without --session it runs in a
    session of its own, which is deleted afterwards.

    Exits with 0, with what the code gave to sys.exit, or 1 for another exception; 124 at the time limit, 125 when
    nothing was run, 126 when the sandbox ended under the code, 130 when it was interrupted.
    """
    program = _code(code, file)
    wanted = Wanted(name=name, runtime=runtime, tier=tier, variables=variables, cwd=cwd)
    progress = progress_from(thought, step, metric)
    check_idempotency(idempotency_key, name)

    async def job(place: Place) -> int:
        request = RunCell(
            session=place.session,
            code=program,
            limit_s=timeout,
            progress=progress,
            idempotency_key=idempotency_key,
        )
        return await _run(place, request, as_json=as_json)

    sys.exit(run_in_session(settings, wanted, job))


def _code(code: str | None, file: BinaryIO | None) -> str:
    if code is not None and file is not None:
        raise click.UsageError("give the code as an argument or with --file, not both")
    if code is not None:
        return code
    if file is None and sys.stdin.isatty():
        raise click.UsageError("give the code as an argument, with --file, or on standard input")
    raw = file.read() if file is not None else sys.stdin.buffer.read()
    if not raw.strip():
        raise click.UsageError("there is no code: the file or standard input is empty")
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise click.UsageError(f"the code is not text in UTF-8: {problem.reason} at byte {problem.start}") from None


async def _run(place: Place, request: RunCell, *, as_json: bool) -> int:
    output = Output()
    place.stop = lambda: place.bench.stop_cell(StopCell(session=place.session, cell=request.cell))
    result = await place.bench.run_cell(replace(request, follower=None if as_json else output.follower))
    if as_json:
        print_json(cell_json(result, place.name))
    elif result.error is not None:
        await output.error(result.error)
    for line in remarks(result, limit_s=request.limit_s, session=place.name):
        notice(line)
    return cell_exit_code(result)
