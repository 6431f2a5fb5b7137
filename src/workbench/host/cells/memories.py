"""The memories of one kernel, one after the other: which there is now, why the one before is gone, and the next one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace

from workbench.contracts.engine import Sandbox
from workbench.contracts.kernel import Kernel, KernelLauncher, KernelStart
from workbench.errors import KernelUnavailable, SandboxUnavailable, WorkbenchError
from workbench.host.cells.cell_run import CellRun, close_kernel
from workbench.host.cells.memory import Change, Memory, Patience, Wanted, joined
from workbench.host.cells.recorder import plain_error
from workbench.host.cells.snapshots import Snapshot, Snapshots
from workbench.host.cells.words import Restored, how_it_ended
from workbench.model.execution import Cell, CellError, MemoryState, Outcome, Piece
from workbench.model.ids import new_cell_id
from workbench.model.process import ProcessExit

_log = logging.getLogger(__name__)
_TOLD_OF_AN_ERROR = 2000


class Memories:
    """Owned by a hosted kernel. Starts nothing before it is asked to."""

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        launcher: KernelLauncher,
        wanted: Wanted,
        epoch: int,
        lost_before: str,
        snapshots: Snapshots,
        source: Snapshot | None,
        on_lost: Callable[[Memory, str, ProcessExit | None], None],
        patience: Patience,
    ) -> None:
        self._sandbox = sandbox
        self._launcher = launcher
        self._wanted = wanted
        self._on_lost = on_lost
        self._patience = patience
        self._snapshots = snapshots
        self._source = source
        """what the next memory comes from; None is a new one"""
        self._change = Change(lost=lost_before)
        self._generation = 0
        self._ended_at_once = 0
        self._cells = 0
        """that the memory had seen which is being replaced"""
        self._sweep_since: float | None = None
        """when the cell began that was lost with it"""
        self._problem: WorkbenchError | None = None
        self._starting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: set[asyncio.Task[None]] = set()
        """those of them that only wait for the end of a memory"""
        self._closed = False
        self._left_over: tuple[Piece, ...] = ()
        self.epoch = epoch
        """of the present memory, or of the next"""
        self.current: Memory | None = None
        self.start_up_run: CellRun | None = None
        """while it runs, with its kernel"""
        self.starting_kernel: Kernel | None = None

    @property
    def has_start_up(self) -> bool:
        """Whether a new memory is not an empty one."""
        return bool(self._wanted.start_up)

    @property
    def busy(self) -> bool:
        """Whether one is being started or ended."""
        return self._starting is not None or bool(self._tasks - self._watching)

    async def ready(self) -> Memory:
        """The present memory, or the next one as soon as it is there.

        Raises:
            KernelUnavailable: none comes up; the next call tries again.
            SandboxUnavailable: the sandbox is gone.
        """
        while self.current is None:
            if self._closed:
                raise SandboxUnavailable("the sandbox is being closed")
            starting = self._starting or self._begin(tries=1)
            await asyncio.wait([starting])
            if self.current is None and self._problem is not None:
                # A new one each time: an exception grows with every place that it is raised at.
                raise type(self._problem)(self._problem.message, self._problem.context)
        return self.current

    def _begin(self, tries: int) -> asyncio.Task[None]:
        self._problem = None
        self._starting = asyncio.create_task(self._start(tries), name=f"start kernel {self._wanted.kernel}")
        return self._starting

    async def _start(self, tries: int) -> None:
        try:
            for attempt in range(tries):
                if attempt:
                    await asyncio.sleep(self._patience.pause_s * attempt)
                try:
                    memory = await self._launch()
                except SandboxUnavailable as problem:
                    self._problem = problem
                    return
                except KernelUnavailable as problem:
                    self._problem = problem
                else:
                    self._problem = None
                    self._adopt(memory)
                    return
        except Exception:  # noqa: BLE001
            _log.exception("kernel %s could not be started", self._wanted.kernel)
            self._problem = KernelUnavailable("the kernel could not be started; the host's log has the reason")
        finally:
            self._starting = None

    async def _launch(self) -> Memory:
        if self._sweep_since is not None:
            since, self._sweep_since = self._sweep_since, None
            await self._sandbox.sweep(time.monotonic() - since)
        if self._source is not None:
            source, self._source = self._source, None
            try:
                memory = await self._wake(source)
            except KernelUnavailable as problem:
                if not self._change.lost:
                    # A branch: an empty memory would not be one.
                    raise
                _log.warning("kernel %s: %s", self._wanted.kernel, problem.message)
                self._change = replace(self._change, problem=problem.message)
                self._own(self._snapshots.drop_all())
            else:
                if self._change.lost:
                    self._change = replace(self._change, restored=self._restored_from(source))
                return memory
        kernel = await self._start_kernel()
        try:
            self.starting_kernel = kernel
            return Memory(kernel, await self._start_up(kernel))
        except BaseException:
            self._own(close_kernel(kernel, self._patience.ladder.close_s))
            raise
        finally:
            self.starting_kernel = None

    async def _start_kernel(self, snapshot: Snapshot | None = None) -> Kernel:
        self._generation += 1
        start = KernelStart(
            id=self._wanted.kernel,
            generation=self._generation,
            working_folder=self._wanted.working_folder,
            snapshot=snapshot.name if snapshot else None,
            runtime=self._wanted.runtime,
        )
        try:
            async with asyncio.timeout(self._patience.start_s):
                return await self._launcher.start(self._sandbox, start)
        except TimeoutError:
            raise KernelUnavailable(f"the kernel did not come up in {self._patience.start_s:g} s") from None

    async def _wake(self, source: Snapshot) -> Memory:
        """Nothing is run: the memory is as it was when its cells had ended."""
        # No snapshot any more, whatever comes of it.
        self._snapshots.taken(source)
        try:
            kernel = await self._start_kernel(source)
        except BaseException:
            # One that was not reached still sleeps.
            self._own(self._sandbox.discard(source.name))
            raise
        return Memory(kernel, "", execution_count=source.execution_count, cells=source.cells)

    def _restored_from(self, source: Snapshot) -> Restored:
        return Restored(
            cells_lost=max(0, self._cells - source.cells),
            execution_count=source.execution_count,
            not_carried=source.not_carried,
        )

    async def _start_up(self, kernel: Kernel) -> str:
        """What the start-up code raised.

        Raises:
            KernelUnavailable: it ended the kernel.
            SandboxUnavailable: the sandbox ended.
        """
        if not self._wanted.start_up:
            return ""
        errors: list[CellError] = []

        def keep(piece: Piece) -> None:
            if piece.error is not None:
                errors.append(plain_error(piece.error))

        cell = Cell(id=new_cell_id(), code=self._wanted.start_up, store_history=False, corrected=False)
        self.start_up_run = CellRun(kernel, cell, keep, self._patience.ladder)
        try:
            ending = await self.start_up_run.run()
        finally:
            self.start_up_run = None
        if ending.exit is not None and ending.exit.lost:
            raise SandboxUnavailable(how_it_ended(ending.exit))
        if ending.lost:
            raise KernelUnavailable(f"no kernel survives the session's start-up code: {ending.lost}")
        if ending.outcome is Outcome.OK:
            return ""
        if ending.outcome is Outcome.TIMED_OUT:
            return f"TimedOut: the start-up code ran longer than {cell.limit_s:g} s and was interrupted"
        return f"{errors[-1].name}: {errors[-1].message}"[:_TOLD_OF_AN_ERROR] if errors else "it failed"

    def _adopt(self, memory: Memory) -> None:
        memory.epoch, memory.change = self.epoch, self._change
        self._change = Change()
        self.current = memory
        self._watching.add(self._own(self._until_it_ends(memory)))

    async def _until_it_ends(self, memory: Memory) -> None:
        end = await memory.kernel.wait()
        self.lost(memory, how_it_ended(end), end)

    def lost(self, memory: Memory, reason: str, end: ProcessExit | None = None, *, restore: bool = True) -> None:
        """It ended, or must: the next one is started in the background. Nothing happens if that is known."""
        if self.current is not memory:
            return
        self.current = None
        self.epoch += 1
        before = memory.change
        self._change = Change(lost=joined(before.reason, reason), for_good=before.state is MemoryState.LOST)
        self._sweep_since = memory.busy_since
        # What is being copied now is of a memory that is no more.
        self._snapshots.close_round()
        self._cells = memory.cells
        self._source = self._snapshots.newest() if restore else None
        if self._source is None and restore and self._snapshots.given_up:
            self._change = replace(self._change, problem=self._snapshots.given_up)
        if not restore:
            self._own(self._snapshots.drop_all())
        self._left_over += memory.kernel.left_over()
        self._on_lost(memory, reason, end)
        self._own(close_kernel(memory.kernel, self._patience.ladder.close_s))
        at_once = not memory.was_used and time.monotonic() - memory.ready_at < self._patience.settled_s
        self._ended_at_once = self._ended_at_once + 1 if at_once else 0
        if self._closed or (end is not None and end.lost):
            return
        if self._ended_at_once < self._patience.tries:
            self._begin(self._patience.tries)
        # Else whoever needs one tries again: kernels that nobody uses are not made in a loop.

    def take_left_over(self) -> tuple[Piece, ...]:
        """What memories that ended between two cells had printed; for the next cell to tell."""
        pieces, self._left_over = self._left_over, ()
        return pieces

    def told(self) -> None:
        """A receipt has told every loss up to the present epoch."""
        self._change = Change()
        if self.current is not None:
            self.current.change = Change()

    async def settle(self) -> Change:
        """For who tells of a loss: what became of it, for certain. What has not come back by then never does."""
        if self.current is None and self._starting is None and self._source is not None and not self._closed:
            self._begin(tries=1)
        await self.settled()
        if self.current is None and not self._closed:
            waking = self._starting is not None
            await self._give_up_starting()
            self._source = None
            if waking:
                self._begin(self._patience.tries)
        return await self.settled()

    async def settled(self) -> Change:
        """What became of the memory since the last receipt, once one is there or cannot be had."""
        if self.current is None and self._starting is not None:
            await asyncio.wait([self._starting], timeout=self._patience.settle_s)
        return self.current.change if self.current is not None else self._change

    async def replace(self, reason: str) -> None:
        """A new memory by request. One that is just being started is started anew."""
        await self._give_up_starting()
        if self.current is not None:
            self.current.was_used = True
            self.lost(self.current, reason, restore=False)
        elif self._starting is None:
            self._source = None
            self._own(self._snapshots.drop_all())
            self._begin(self._patience.tries)

    async def go_back(self, source: Snapshot | None) -> Memory:
        """To the memory of a snapshot, or to an empty one. Nobody is told of it as of a loss: it was asked for.

        Raises:
            KernelUnavailable: it cannot be had; the present memory is what it was.
        """
        before = self.current
        if before is None:
            raise KernelUnavailable("the kernel ended meanwhile; ask again")
        if source is None:
            memory = Memory(await self._start_kernel(), "")
            await self._snapshots.drop_all()
        else:
            memory = await self._wake(source)
            await self._snapshots.drop_after(source.cells)
        if self.current is not before:
            self._own(close_kernel(memory.kernel, self._patience.ladder.close_s))
            raise KernelUnavailable("the kernel ended meanwhile")
        self._left_over += before.kernel.left_over()
        self._own(close_kernel(before.kernel, self._patience.ladder.close_s))
        self.epoch += 1
        memory.was_used = True
        self._adopt(memory)
        return memory

    async def _give_up_starting(self) -> None:
        if (starting := self._starting) is not None:
            starting.cancel()
            await asyncio.wait([starting])

    def close(self) -> None:
        """Start no more."""
        self._closed = True

    async def aclose(self) -> None:
        """End the present one. May be called twice."""
        self.close()
        await self._give_up_starting()
        if self.current is not None:
            self.lost(self.current, "the sandbox is being closed")
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=2 * self._patience.ladder.close_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _own(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._watching.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("kernel %s: %r", self._wanted.kernel, problem)
