"""`workbench cells`: work that goes on whoever waits for it, and can be followed again from any place."""

from __future__ import annotations

import asyncio
import sys

import click

from workbench.cli.asking import ask
from workbench.cli.outcome import EXIT_ENDED, EXIT_INTERRUPTED, cell_exit_code, command_exit_code, remarks
from workbench.cli.printing import Output, notice
from workbench.cli.running import (
    Place,
    Wanted,
    json_option,
    progress_from,
    progress_options,
    run_in_session,
    runtime_option,
    tier_option,
    timeout_option,
)
from workbench.cli.values import print_json, record_json
from workbench.contracts.host import OutputPage
from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.model.execution import CellResult, CommandResult
from workbench.model.ids import SessionId, cell_id, session_id
from workbench.model.records import CellKind, CellRecord, CellStatus
from workbench.settings import Settings

# The most that one question waits; a longer wait is several.
_WAIT_S = 30.0
_LEAVING_S = 1.0
_EXIT_PENDING = 1

of_session = click.option("-s", "--session", "name", required=True, metavar="NAME", help="The session it is in.")


@click.group()
def cells() -> None:
    """Cells and commands that run on by themselves: start, look, follow, stop."""


@cells.command()
@click.argument("code")
@click.option("-s", "--session", "name", required=True, metavar="NAME", help="It is made if new.")
@click.option("--command", "is_command", is_flag=True, help="CODE is a command line for bash.")
@runtime_option
@tier_option
@timeout_option
@progress_options
@json_option
@click.pass_obj
def start(
    settings: Settings,
    code: str,
    name: str,
    is_command: bool,
    runtime: str | None,
    tier: str | None,
    timeout: float,
    thought: str,
    step: str,
    metric: str,
    idempotency_key: str,
    as_json: bool,
) -> None:
    """Start CODE (in its language) in a session, print its id, and leave; it goes on."""
    said = progress_from(thought, step, metric)

    async def job(place: Place) -> int:
        session = place.session
        record = await place.bench.submit(
            requests.RunCommand(
                session=session, command=code, limit_s=timeout, progress=said, idempotency_key=idempotency_key
            )
            if is_command
            else requests.RunCell(
                session=session, code=code, limit_s=timeout, progress=said, idempotency_key=idempotency_key
            )
        )
        if as_json:
            print_json(record_json(record))
        else:
            click.echo(record.id)
        return 0

    sys.exit(run_in_session(settings, Wanted(name=name, runtime=runtime, tier=tier), job))


@cells.command()
@click.argument("cell")
@of_session
@click.option("--wait", "wait_s", type=click.FloatRange(min=0), default=0.0, help="Wait so many seconds for its end.")
@json_option
@click.pass_obj
def show(settings: Settings, cell: str, name: str, wait_s: float, as_json: bool) -> None:
    """How CELL is, and what it said if it has ended.

    Exits as `exec` or `bash` would have; with 1 if it has not ended, with 125 if it never began.
    """
    at = session_id(name)
    record = ask(settings, lambda bench: _waited(bench, at, cell, wait_s))
    if as_json:
        print_json(record_json(record))
    elif record.status is CellStatus.PENDING:
        click.echo(f"{record.id} has not ended; `workbench cells follow -s {name} {record.id}` follows it")
    elif record.result is not None:
        try:
            asyncio.run(_print(record.result))
        except BrokenPipeError:
            sys.exit(EXIT_ENDED)
    sys.exit(_EXIT_PENDING if record.status is CellStatus.PENDING else _ended(record))


async def _waited(bench: Workbench, session: SessionId, cell: str, wait_s: float) -> CellRecord:
    """At its end, or after so long."""
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        left = max(deadline - asyncio.get_running_loop().time(), 0.0)
        request = requests.GetCell(session=session, cell=cell_id(cell), wait_s=min(left, _WAIT_S))
        record = await bench.get_cell(request)
        if record.status is not CellStatus.PENDING or left <= _WAIT_S:
            return record


async def _print(result: CellResult | CommandResult) -> None:
    output = Output()
    for text, is_stdout in ((result.stdout, True), (result.stderr, False)):
        await output.text(text.text, is_stdout=is_stdout)
    if isinstance(result, CellResult):
        if result.results.text:
            await output.text(result.results.text.rstrip("\n") + "\n", is_stdout=True)
        if result.error is not None:
            await output.error(result.error)


@cells.command()
@click.argument("cell")
@of_session
@click.option("--offset", type=click.IntRange(min=0), default=0, help="From here on, and not from the beginning.")
@click.pass_obj
def follow(settings: Settings, cell: str, name: str, offset: int) -> None:
    """Print what CELL says from the beginning, or from --offset, until it ends. Exits as `exec` or `bash` would have.

    Ctrl-C ends the following and not the cell, and says from which offset to go on.
    """
    seen = _Following(session_id(name), cell, offset)
    try:
        record = ask(settings, seen.to_end)
    except KeyboardInterrupt:
        again = f"`workbench cells follow -s {name} {cell} --offset {seen.offset}`"
        notice(f"no longer following; {cell} goes on, and {again} goes on from here")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # `| head` has seen enough; the cell is somebody else's.
        sys.exit(EXIT_ENDED)
    sys.exit(_ended(record))


class _Following:
    """One cell's output, and how far it was printed."""

    def __init__(self, session: SessionId, cell: str, offset: int) -> None:
        self._session = session
        self._cell = cell_id(cell)
        self.offset = offset

    async def to_end(self, bench: Workbench) -> CellRecord:
        """Print until it ends."""
        output, ended = Output(), False
        while not ended:
            request = requests.ReadOutput(session=self._session, cell=self._cell, offset=self.offset, wait_s=_WAIT_S)
            page = await bench.read_output(request)
            await self._print(page, output)
            ended = page.ended
        record = await _waited(bench, self._session, self._cell, _WAIT_S)
        if isinstance(record.result, CellResult) and record.result.error is not None:
            await output.error(record.result.error)
        return record

    async def _print(self, page: OutputPage, output: Output) -> None:
        """All of it, also when we are to leave meanwhile: who goes on from `offset` must not read it twice."""
        printing = asyncio.create_task(_print_page(page, output), name="printing")
        try:
            await asyncio.shield(printing)
        except asyncio.CancelledError:
            # Bounded: a reader of ours may stand still.
            await asyncio.wait([printing], timeout=_LEAVING_S)
            if printing.cancel() or printing.exception() is not None:
                raise
            self.offset = page.next_offset
            raise
        self.offset = page.next_offset


async def _print_page(page: OutputPage, output: Output) -> None:
    for piece in page.pieces:
        await output.piece(piece)
    if page.ended and page.dropped_bytes:
        await output.follower.on_dropped(page.dropped_bytes)


def _ended(record: CellRecord) -> int:
    """Say what is to be known about its end; the exit code of it."""
    result = record.result
    if record.problem is not None:
        raise record.problem.error()
    if result is None:
        return _EXIT_PENDING
    for line in remarks(result, limit_s=record.limit_s, session=record.session):
        notice(line)
    return cell_exit_code(result) if isinstance(result, CellResult) else command_exit_code(result)


@cells.command()
@click.argument("cell")
@of_session
@click.pass_obj
def stop(settings: Settings, cell: str, name: str) -> None:
    """Cancel CELL if it waits, interrupt it if it runs; no other is touched."""
    session, which = session_id(name), cell_id(cell)

    async def stopped(bench: Workbench) -> bool:
        record = await bench.get_cell(requests.GetCell(session=session, cell=which))
        if record.kind is CellKind.COMMAND:
            return await bench.stop_command(requests.StopCommand(session=session, cell=which))
        return await bench.stop_cell(requests.StopCell(session=session, cell=which))

    if not ask(settings, stopped):
        notice(f"{cell} had ended")
