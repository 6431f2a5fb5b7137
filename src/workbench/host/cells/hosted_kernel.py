"""One kernel as its host keeps it: a queue of cells, a memory at a time, and a result for everything that began."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from workbench.contracts.engine import Sandbox
from workbench.contracts.kernel import AttachPoint, Kernel, KernelGone, KernelLauncher, Visit
from workbench.errors import (
    Cancelled,
    Conflict,
    HostError,
    KernelUnavailable,
    QuotaExceeded,
    SandboxUnavailable,
    WorkbenchError,
)
from workbench.host.calls.tally import Asked, CallTally
from workbench.host.cells.between import Between
from workbench.host.cells.cell_run import CellRun, Ending
from workbench.host.cells.interrupts import Interrupts
from workbench.host.cells.measuring import Cost, Meter
from workbench.host.cells.memories import Memories
from workbench.host.cells.memory import Change, Memory, Patience, Wanted, joined
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.queue import Origin, Ticket, TurnQueue
from workbench.host.cells.results import cell_result
from workbench.host.cells.snapshots import Snapshot, SnapshotPolicy, Snapshots
from workbench.host.cells.tracked import Shelf, State, Tracked
from workbench.host.cells.visits import Visits
from workbench.host.cells.words import RESTARTED, Place, how_it_ended, sandbox_ended
from workbench.model.execution import Cell, CorrectionKind, Receipt, SnapshotState
from workbench.model.ids import CellId, new_cell_id
from workbench.model.process import ProcessExit
from workbench.wire import kernels as wire

_log = logging.getLogger(__name__)
# Each holds its code in memory.
MOST_WAITING = 1000
_NEVER_BEGAN = "the kernel was restarted before it began; send it again"
_ATTACH_S = 30.0
_THREADS_S = 5.0
# For cells to write their results down when the sandbox closes.
_CLOSE_S = 30.0

T = TypeVar("T")


class HostedKernel:
    """Made by the sandbox's cells, which close it."""

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        launcher: KernelLauncher,
        wanted: Wanted,
        epoch: int,
        lost_before: str,
        shelf: Shelf,
        mount: Mount,
        meter: Meter,
        place: Place,
        tally: CallTally,
        policy: SnapshotPolicy,
        visit: Visit,
        patience: Patience | None = None,
        source: Snapshot | None = None,
    ) -> None:
        self.wanted = wanted
        self._shelf = shelf
        self._mount = mount
        self._meter = meter
        self._place = place
        self._tally = tally
        self._patience = patience or Patience()
        self._queue = TurnQueue()
        self._tickets: dict[Tracked, Ticket] = {}
        self._run: tuple[Memory, CellRun] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._interrupts = Interrupts(self._own, self._patience.ladder)
        self._visits = Visits(visit)
        runtime = wanted.runtime
        self.snapshots = Snapshots(
            sandbox, wanted.kernel, meter, policy, on=wanted.snapshots, never=runtime.why_no_memory
        )
        self.memories = Memories(
            sandbox=sandbox,
            launcher=launcher,
            wanted=wanted,
            epoch=epoch,
            lost_before=lost_before,
            snapshots=self.snapshots,
            source=source,
            on_lost=self._memory_lost,
            patience=self._patience,
        )

        self.between = Between(self._queue, self.memories, self.snapshots, self._own, self._keep_memory, runtime)

    @property
    def busy(self) -> bool:
        """Whether it has something to do, or a notebook asked for something a moment ago."""
        return bool(self._tasks) or not self._queue.is_empty or self.memories.busy or self._visits.are_recent

    @property
    def attached_idle_s(self) -> float | None:
        """Since a notebook last asked for something that is done by now; None if none ever has."""
        return 0.0 if self._queue.has(Origin.ATTACHED) else self._visits.idle_s

    @property
    def running(self) -> CellId | None:
        """The cell that runs now, if it is a session's."""
        ticket = self._queue.running
        return ticket.cell if ticket is not None and ticket.origin is Origin.SESSION else None

    def report(self, sandbox: str) -> wire.KernelReport:
        """As it is now."""
        memory = self.memories.current
        return wire.KernelReport(
            sandbox=sandbox,
            kernel=self.wanted.kernel,
            epoch=self.memories.epoch,
            execution_count=memory.execution_count if memory else 0,
            queue=self._queue.report(),
            start_up_error=memory.start_up_error if memory else "",
            snapshots=self.snapshots.state(memory.cells if memory else -1),
        )

    async def memory_now(self) -> Receipt:
        """For who does nothing to it. A change that no cell has told yet is told here too, and by the next cell."""
        change = await self.memories.settled()
        memory = self.memories.current
        return Receipt(
            epoch=self.memories.epoch,
            execution_count=memory.execution_count if memory else 0,
            state=change.state,
            reason=change.reason,
            snapshot=self.snapshots.state(memory.cells if memory else -1),
        )

    def submit(self, tracked: Tracked) -> None:
        """Into the queue; the shelf has it from here on.

        Raises:
            QuotaExceeded: too many wait already.
        """
        assert isinstance(tracked.asked, Cell)
        if len(self._queue.waiting()) >= MOST_WAITING:
            raise QuotaExceeded(f"{MOST_WAITING} cells wait for this kernel already; wait for them or restart it")
        ticket = Ticket(tracked.id, Origin.SESSION, tracked.asked.code)
        self._tickets[tracked] = ticket
        self._shelf.add(tracked)
        self._queue.join(ticket)
        self._own(self._live(tracked, tracked.asked, ticket), f"cell {tracked.id}")

    async def _live(self, tracked: Tracked, cell: Cell, ticket: Ticket) -> None:
        try:
            async with self._queue.turn(ticket):
                await self._take_turn(tracked, cell, ticket)
                self._keep_memory(after=ticket)
        except WorkbenchError as problem:
            tracked.fail(problem)
        except asyncio.CancelledError:
            tracked.fail(Cancelled("the sandbox was closed"))
            raise
        except Exception:  # noqa: BLE001
            _log.exception("cell %s failed", tracked.id)
            tracked.fail(HostError("the host failed; its log has the reason"))
        finally:
            self._tickets.pop(tracked, None)
            self._shelf.ended(tracked)

    async def _take_turn(self, tracked: Tracked, cell: Cell, ticket: Ticket) -> None:
        tried_before = False
        while True:
            memory = await ticket.unless_refused(self._ready_with_snapshot())
            measured = await ticket.unless_refused(self._meter.start())
            await ticket.unless_refused(self._interrupts.arrived())
            if self.memories.current is not memory:
                continue
            kept = self.snapshots.state(memory.cells)
            # Nothing may come between: from here on it can begin, and cannot be taken out of the queue.
            ticket.begin()
            tracked.state = State.RUNNING
            ending = await self._run_in(memory, cell, tracked)
            if ending.began is not None or ending.finished is not None:
                break
            if tried_before or not ending.never_began or ending.lost == RESTARTED:
                raise _not_begun(ending)
            # It certainly never began, so it may be given to the next memory; once, as it may be what kills them.
            tried_before = True
            ticket.wait_again()
            tracked.state = State.WAITING
        cost = await measured.stop()
        change = memory.change
        if ending.lost:
            # Whoever noticed the end first, the cell knows best why.
            change = replace(await self.memories.settle(), lost=joined(memory.change.reason, ending.lost))
        elif cost.gone:
            # After its end, so the cell did what it did; the next memory's epoch is told by its own first receipt.
            change = Change(lost=joined(change.reason, how_it_ended(sandbox_ended(cost.gone))))
        asked = _with_mended(self._tally.take(cell.id), ending)
        receipt = self._receipt(asked, memory, ending, change, cost, kept)
        await tracked.output.keep_whole(self._mount)
        told = (receipt, asked.corrections, tracked.output, self._place, change.restored, cost)
        tracked.end(cell_result(cell, ending, *told))

    async def _ready_with_snapshot(self) -> Memory:
        """A memory that came back, or whose start-up code has run, is kept before anything can happen to it."""
        memory = await self.memories.ready()
        if memory.cells or self.wanted.start_up:
            await self.snapshots.take(memory.kernel, memory.cells, memory.execution_count)
        return memory

    def _keep_memory(self, after: Ticket) -> None:
        """Between this turn and the next, while the agent thinks."""
        ticket = Ticket(new_cell_id(), Origin.HOST, "")
        self._queue.follow(ticket, after)
        self._own(self._keep(ticket), "snapshot")

    async def _keep(self, ticket: Ticket) -> None:
        try:
            if (memory := self.memories.current) is not None:
                await self.snapshots.take(memory.kernel, memory.cells, memory.execution_count)
        finally:
            self._queue.leave(ticket)

    async def _run_in(self, memory: Memory, cell: Cell, tracked: Tracked) -> Ending:
        for piece in self.memories.take_left_over():
            tracked.output.add(piece)
        run = CellRun(memory.kernel, cell, tracked.output.add, self._patience.ladder)
        self._run = (memory, run)
        memory.was_used, memory.busy_since = True, time.monotonic()
        watching = asyncio.create_task(self.snapshots.watch(), name=f"memory during {cell.id}")
        try:
            ending = await run.run()
        finally:
            self._run = None
            watching.cancel()
            await asyncio.wait([watching])
        memory.cells += not ending.lost
        if ending.lost:
            self.memories.lost(memory, ending.lost, ending.exit)
        memory.busy_since = None
        return ending

    def _receipt(
        self, asked: Asked, memory: Memory, ending: Ending, change: Change, cost: Cost, kept: SnapshotState
    ) -> Receipt:
        if ending.lost and change.restored:
            memory.execution_count = change.restored.execution_count
        elif (counted := ending.finished or ending.began) is not None:
            memory.execution_count = counted.execution_count
        finished = ending.finished
        # A memory that went with this cell is told by this receipt, with the epoch of the next; else one that went
        # before it is, by the first receipt of the memory that followed.
        epoch = self.memories.epoch if ending.lost else memory.epoch
        if ending.lost:
            self.memories.told()
        memory.change = Change()
        return Receipt(
            epoch=epoch,
            execution_count=memory.execution_count,
            state=change.state,
            reason=change.reason,
            snapshot=kept,
            added=finished.names.added if finished else (),
            removed=finished.names.removed if finished else (),
            rebound=finished.names.rebound if finished else (),
            more_names=finished.names.more if finished else 0,
            working_folder=finished.working_folder if finished else "",
            peak_memory_bytes=cost.peak_memory_bytes,
            cpu_s=cost.cpu_s,
            wall_s=cost.wall_s,
            helpers=asked.helpers,
            corrections=asked.corrections.texts(CorrectionKind.CORRECTED),
            installs=asked.corrections.texts(CorrectionKind.INSTALLED),
        )

    def cancel(self, tracked: Tracked) -> None:
        """Take it out of the queue.

        Raises:
            Conflict: it runs, or has ended.
        """
        ticket = self._tickets.get(tracked)
        if tracked.state is State.ENDED or ticket is None:
            raise Conflict(f"cell {tracked.id} has ended already", {"cell": tracked.id})
        if ticket.is_running:
            raise Conflict(f"cell {tracked.id} is running: interrupt it", {"cell": tracked.id})
        ticket.refuse(Cancelled(f"cell {tracked.id} was taken out of the queue", {"cell": tracked.id}))

    async def restart(self) -> None:
        """A new memory. What runs is lost, what waits never begins.

        Raises:
            KernelUnavailable: none comes up.
        """
        self._queue.refuse_all(_NEVER_BEGAN)
        if self._run is not None:
            self._run[1].stop(RESTARTED)
        await self.memories.replace(RESTARTED)

    async def interrupt(self, cell: CellId | None = None, why: str = "") -> None:
        """What runs, or only this one if it does; until it is over, up to a few times. `why` if nobody asked for it."""
        if (running := self._running(cell)) is not None:
            kernel, over, run = running
            # Nothing may come between this and the look: what is interrupted is what was looked at.
            if run is not None:
                run.interrupted(why)
            await self._interrupts.send(kernel, over)

    def _running(self, cell: CellId | None) -> tuple[Kernel, asyncio.Event, CellRun | None] | None:
        """What an interrupt would be for, and how it is known to be over."""
        memory, ticket = self.memories.current, self._queue.running
        if cell is not None and (ticket is None or ticket.cell != cell):
            return None
        if self._run is not None:
            return self._run[0].kernel, self._run[1].over, self._run[1]
        if cell is None and (starting := self.memories.starting_kernel) and (run := self.memories.start_up_run):
            return starting, run.over, run
        if memory is not None and ticket is not None and ticket.origin is Origin.ATTACHED:
            return memory.kernel, ticket.over, None
        return None

    async def use_threads(self, count: int) -> None:
        """Tell the present memory; the next one is started with the new number. Never fails: it is about speed."""
        if (memory := self.memories.current) is not None:
            try:
                async with asyncio.timeout(_THREADS_S):
                    await memory.kernel.use_threads(count)
            except (WorkbenchError, KernelGone, TimeoutError) as problem:
                _log.warning("kernel %s: its pools of threads keep their size: %s", self.wanted.kernel, problem)

    async def attach(self) -> AttachPoint:
        """The door for notebooks, which stays open over the loss of a memory.

        Raises:
            KernelUnavailable: there is no kernel.
        """
        memory = await self.memories.ready()
        try:
            async with asyncio.timeout(_ATTACH_S):
                point = await memory.kernel.attach(self._turn, self._visits)
        except TimeoutError:
            raise KernelUnavailable(f"the kernel could not be attached to in {_ATTACH_S:g} s") from None
        self._visits.note()
        return point

    @asynccontextmanager
    async def _turn(self, code: str) -> AsyncIterator[None]:
        ticket = Ticket(new_cell_id(), Origin.ATTACHED, code)
        self._queue.join(ticket)
        async with self._queue.turn(ticket):
            try:
                await ticket.unless_refused(self._interrupts.arrived())
                memory = await ticket.unless_refused(self.memories.ready())
            except (KernelUnavailable, SandboxUnavailable) as problem:
                raise Cancelled(problem.message) from problem
            memory.was_used = True
            ticket.begin()
            yield
            self._visits.note()
            if self.memories.current is memory:
                memory.cells += 1
                self._keep_memory(after=ticket)

    def _memory_lost(self, memory: Memory, reason: str, end: ProcessExit | None) -> None:
        if self._run is not None and self._run[0] is memory:
            self._run[1].stop(reason, end)
        # What notebooks ran or wanted to run was in that memory; nobody else would end their turns.
        for ticket in self._queue.waiting():
            if ticket.origin is Origin.ATTACHED:
                ticket.refuse(Cancelled(f"{reason}; send it again"))
        running = self._queue.running
        if running is not None and running.origin is Origin.ATTACHED:
            self._queue.leave(running)

    def close(self) -> None:
        """Begin nothing more."""
        self.memories.close()
        self._queue.refuse_all("the sandbox was closed before it began", also_hosts=True)

    async def aclose(self) -> None:
        """End what runs and wait until it is written down. May be called twice."""
        self.close()
        if self._run is not None:
            self._run[1].stop("the sandbox was closed")
        await self.memories.aclose()
        await self.snapshots.drop_all()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_CLOSE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _own(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=f"{name} of kernel {self.wanted.kernel}")
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # told to whoever waits; nobody may


def _with_mended(asked: Asked, ending: Ending) -> Asked:
    """Behind what was installed for it, what the kernel did for it."""
    if ending.finished is None:
        return asked
    told = ending.finished.mended.corrections
    return replace(asked, corrections=asked.corrections.with_more(told.items, told.left_out))


def _not_begun(ending: Ending) -> WorkbenchError:
    if ending.lost == RESTARTED:
        return Cancelled(_NEVER_BEGAN)
    if isinstance(ending.problem, SandboxUnavailable):
        return ending.problem
    if ending.exit is not None and ending.exit.lost:
        return SandboxUnavailable(f"{how_it_ended(ending.exit)}; nothing ran", {"gone": ending.exit.reason})
    if ending.problem is not None:
        return KernelUnavailable(f"{ending.problem.message}; nothing is known to have run")
    return KernelUnavailable(f"{ending.lost}; the cell never began")
