"""One cell in one memory: handed over, followed, and at its limit interrupted, until it is known how it ended.

What is told about it, and what becomes of the kernel, is left to the hosted kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from workbench.contracts.kernel import Began, Finished, Kernel, KernelGone
from workbench.errors import WorkbenchError
from workbench.host.cells.words import NOT_INTERRUPTIBLE, how_it_ended
from workbench.model.execution import Cell, Outcome, Piece
from workbench.model.process import ProcessExit

_log = logging.getLogger(__name__)
# After this many pieces others get their turn, also if the kernel always has one ready.
_PIECES_IN_A_ROW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """How long each step takes at most; tests are in a hurry."""

    interrupts: int = 3
    pause_s: float = 1.0
    """between two interrupts, and after the last"""
    begin_s: float = 60.0
    """until a kernel that lives takes a cell up; one that does not by then will not"""
    close_s: float = 15.0
    """for a kernel to end, and for what it said to be read"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How it went."""

    outcome: Outcome
    began: Began | None
    finished: Finished | None
    exit: ProcessExit | None
    """of the kernel, if it ended under the cell"""
    lost: str
    """why the memory is gone or must go; empty if it goes on"""
    problem: WorkbenchError | None
    """what the kernel raised instead"""
    why_interrupted: str
    """if it was, and not because a caller asked for it"""

    @property
    def never_began(self) -> bool:
        """For certain: the contract promises a `Began` before anything runs."""
        return self.began is None and self.exit is not None


class CellRun:
    """Made for one cell; `run` is called once."""

    def __init__(self, kernel: Kernel, cell: Cell, keep: Callable[[Piece], None], ladder: Ladder) -> None:
        self._kernel = kernel
        self._cell = cell
        self._keep = keep
        self._ladder = ladder
        self._begun = asyncio.Event()
        self._stop = asyncio.Event()
        self._decided: Outcome | None = None
        self._was_interrupted = False
        self._why_interrupted = ""
        self._began: Began | None = None
        self._finished: Finished | None = None
        self._exit: ProcessExit | None = None
        self._problem: WorkbenchError | None = None
        self._lost = ""
        self.over = asyncio.Event()
        """it says nothing any more"""

    async def run(self) -> Ending:
        """Until its end. Never raises because the kernel or the code misbehaves."""
        pump = asyncio.create_task(self._follow(), name=f"output of {self._cell.id}")
        try:
            if not await self._first_of(self._begun, self._ladder.begin_s):
                self._lost = f"the kernel did not take the cell up in {self._ladder.begin_s:g} s and had to be ended"
            # The limit counts from here: a cell is not charged for its wait.
            elif not await self._first_of(self.over, self._cell.limit_s):
                # Decided before the interrupt is sent, so that a late answer of the guest cannot change it.
                self._decided = Outcome.TIMED_OUT
                if not await send_interrupts(self._kernel, self.over, self._ladder) and not self._stop.is_set():
                    self._lost = NOT_INTERRUPTIBLE
            if not self.over.is_set():
                await self._end_kernel()
        finally:
            pump.cancel()
            await asyncio.wait([pump])
        return self._ending()

    async def _first_of(self, event: asyncio.Event, timeout_s: float) -> bool:
        """Whether it came, or a stop or the end before it; False when the time is over."""
        waits = [asyncio.ensure_future(one.wait()) for one in (event, self.over, self._stop)]
        try:
            done, _ = await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            for wait in waits:
                wait.cancel()

    async def _end_kernel(self) -> None:
        """It ends, by us or as someone else said; what it said before is still read."""
        await close_kernel(self._kernel, self._ladder.close_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._ladder.close_s):
                await self.over.wait()

    def interrupted(self, why: str = "") -> None:
        """By request, or for this reason: an end with an error is an interruption from here on.

        The last one counts: code that ran on after those before it was not ended by them.
        """
        self._was_interrupted, self._why_interrupted = True, why

    def stop(self, reason: str, end: ProcessExit | None = None) -> None:
        """The memory is gone, or someone wants it gone."""
        self._lost = self._lost or reason
        self._exit = self._exit or end
        self._stop.set()

    async def _follow(self) -> None:
        try:
            await self._events()
        except KernelGone as gone:
            self._exit = gone.exit
        except WorkbenchError as problem:
            self._problem = problem
        except Exception:  # noqa: BLE001
            # A fault of ours: the conversation is broken, and with it this memory; the host goes on.
            _log.exception("cell %s: the conversation with its kernel failed", self._cell.id)
        finally:
            self.over.set()

    async def _events(self) -> None:
        in_a_row = 0
        async for event in self._kernel.execute(self._cell):
            match event:
                case Began():
                    self._began = event
                    self._begun.set()
                case Finished():
                    self._finished = event
                    return
                case _:
                    self._keep(event)
            in_a_row += 1
            if in_a_row % _PIECES_IN_A_ROW == 0:
                await asyncio.sleep(0)

    def _ending(self) -> Ending:
        lost = self._lost
        if not lost and self._finished is None:
            lost = how_it_ended(self._exit) if self._exit else "the conversation with the kernel broke off"
        return Ending(
            outcome=self._outcome(),
            began=self._began,
            finished=self._finished,
            exit=self._exit,
            lost=lost,
            problem=self._problem,
            why_interrupted=self._why_interrupted,
        )

    def _outcome(self) -> Outcome:
        if self._decided is not None:
            return self._decided
        if self._finished is None:
            return Outcome.LOST
        if self._finished.ok:
            return Outcome.OK
        return Outcome.INTERRUPTED if self._was_interrupted else Outcome.RAISED


async def send_interrupts(kernel: Kernel, over: asyncio.Event, ladder: Ladder) -> bool:
    """Again and again, up to a few times; whether it was over then."""
    for _ in range(ladder.interrupts):
        if over.is_set():
            return True
        with contextlib.suppress(WorkbenchError, TimeoutError):
            async with asyncio.timeout(ladder.pause_s):
                await kernel.interrupt()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ladder.pause_s):
                await over.wait()
                return True
    return over.is_set()


async def close_kernel(kernel: Kernel, timeout_s: float) -> None:
    """Never raises: what cannot be closed is written down."""
    try:
        async with asyncio.timeout(timeout_s):
            await kernel.aclose()
    except Exception:  # noqa: BLE001
        _log.exception("a kernel could not be closed")
