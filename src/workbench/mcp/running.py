"""Running a cell or a command for a client that waits: progress meanwhile, and an interrupt when it calls it off."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace

from workbench.core import requests
from workbench.errors import ServerUnavailable, WorkbenchError
from workbench.mcp.visit import Visit
from workbench.model.execution import Piece, PieceKind
from workbench.model.records import CellKind, CellRecord

Run = requests.RunCell | requests.RunCommand
_PROGRESS_EVERY_S = 1.0
_MOST_OF_A_LINE = 200
_STOP_S = 10.0
_STOP_EVERY_S = 0.05


async def performed(visit: Visit, run: Run) -> CellRecord:
    """Its end.

    Raises:
        ServerUnavailable: the server leaves before. It goes on, or still waits for its turn; its id is in the context.
    """
    watch = _Watch()
    kind = CellKind.CELL if isinstance(run, requests.RunCell) else CellKind.COMMAND
    task = visit.around.keep(visit.bench.perform(replace(run, follower=watch.follower(visit))), kind)
    leaving = asyncio.create_task(visit.around.stopping.wait(), name="watching for a stop")
    try:
        await _wait(visit, run, task, leaving, watch)
    except asyncio.CancelledError:
        # Called off by the client. A server that leaves calls nothing off: what runs goes on without it.
        if not visit.around.stopping.is_set() and not task.done():
            visit.around.keep(_stop(visit, run, task), "stopping a cell")
        raise
    finally:
        leaving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving
    record: CellRecord = task.result()
    visit.around.ran(record)
    return record


async def _wait(
    visit: Visit, run: Run, task: asyncio.Task[CellRecord], leaving: asyncio.Task[bool], watch: _Watch
) -> None:
    every_s = _PROGRESS_EVERY_S if visit.on_progress is not None else None
    began = time.monotonic()
    while not task.done():
        await asyncio.wait((task, leaving), timeout=every_s, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return
        if leaving.done():
            raise ServerUnavailable(
                "the server stops before this has ended. It goes on in the session without it: look there in a "
                "moment, instead of running it again",
                {"cell": run.cell},
            )
        if visit.on_progress is not None:
            await visit.on_progress(round(time.monotonic() - began, 1), run.limit_s, watch.last_line)


async def _stop(visit: Visit, run: Run, task: asyncio.Task[CellRecord]) -> None:
    """Again and again: while its sandbox is being made there is nothing yet that could be stopped."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_STOP_S):
            while not task.done() and not await _is_stopped(visit, run):
                await asyncio.wait((task,), timeout=_STOP_EVERY_S)


async def _is_stopped(visit: Visit, run: Run) -> bool:
    with contextlib.suppress(WorkbenchError):
        if isinstance(run, requests.RunCell):
            return await visit.bench.stop_cell(requests.StopCell(session=run.session, cell=run.cell))
        return await visit.bench.stop_command(requests.StopCommand(session=run.session, cell=run.cell))
    return False


class _Watch:
    """What was printed last."""

    def __init__(self) -> None:
        self.last_line = "running"

    def follower(self, visit: Visit) -> requests.Follower | None:
        """None if nobody wants to know."""
        if visit.on_progress is None:
            return None
        return requests.Follower(on_piece=self._on_piece, on_dropped=self._on_dropped)

    async def _on_piece(self, piece: Piece) -> None:
        if piece.kind in (PieceKind.STDOUT, PieceKind.STDERR):
            lines = piece.text[-2000:].strip().splitlines()
            self.last_line = lines[-1][:_MOST_OF_A_LINE] if lines else self.last_line

    async def _on_dropped(self, count: int) -> None:
        pass
