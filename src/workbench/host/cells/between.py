"""What is asked of a kernel between two cells: its variables, a copy of its memory, an earlier memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from workbench.contracts.kernel import Carried, KernelGone
from workbench.errors import Conflict, KernelUnavailable
from workbench.host.cells.memories import Memories
from workbench.host.cells.memory import Memory
from workbench.host.cells.queue import Origin, Ticket, TurnQueue
from workbench.host.cells.snapshots import Snapshot, Snapshots
from workbench.host.cells.words import how_it_ended
from workbench.model.execution import Variable
from workbench.model.ids import new_cell_id
from workbench.model.runtime import FORKED, Runtime

# Beyond the kernel's own patience with the question.
_VARIABLES_S = 30.0
_TURN_S = 30.0

T = TypeVar("T")


class Own(Protocol):
    """Runs work in a task that the hosted kernel waits for when it closes."""

    def __call__(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start it."""
        ...


class Between:
    """Of one hosted kernel. Everything here waits for its turn among the cells, in a task of its own: what was asked
    must be answered before the next cell, also if the asker has left.
    """

    def __init__(
        self,
        queue: TurnQueue,
        memories: Memories,
        snapshots: Snapshots,
        own: Own,
        keep: Callable[[Ticket], None],
        runtime: Runtime = FORKED,
    ) -> None:
        """`keep` has a snapshot taken in the turn after the ticket's."""
        self._queue = queue
        self._memories = memories
        self._snapshots = snapshots
        self._own = own
        self._keep = keep
        self._runtime = runtime

    def check_memory(self, what: str) -> None:
        """For what needs a memory that can be kept or carried.

        Raises:
            Conflict: this one's cannot; the message names the language.
        """
        if why := self._runtime.why_no_memory:
            raise Conflict(f"there is no {what} here, {why}", {"runtime": self._runtime.name})

    async def variables(self, most: int, wait_s: float) -> tuple[Variable, ...]:
        """The names of the memory.

        Raises:
            Conflict: kernels of this language do not tell them.
            KernelUnavailable: its turn did not come in time, or there is no kernel.
        """
        if not (self._runtime.forked or self._runtime.tells_variables):
            raise Conflict(
                f"kernels of {self._runtime.title} do not tell their variables: ask by a cell",
                {"runtime": self._runtime.name},
            )

        async def ask(memory: Memory) -> tuple[Variable, ...]:
            async with asyncio.timeout(_VARIABLES_S):
                return await memory.kernel.variables(most)

        try:
            return await asyncio.shield(self._in_turn(ask, wait_s))
        except TimeoutError:
            raise KernelUnavailable(f"the kernel did not tell its variables in {_VARIABLES_S:g} s") from None

    async def copy(self, wait_s: float) -> Snapshot:
        """A copy of the memory, for the caller to start or to discard.

        Raises:
            Conflict: this kernel cannot be copied.
            KernelUnavailable: its turn did not come in time, or there is no kernel.
        """
        self.check_memory("copy of the memory")

        async def copied(memory: Memory) -> Snapshot:
            made = await self._snapshots.copy(memory.kernel, memory.cells, memory.execution_count)
            if not isinstance(made, Snapshot):
                raise Conflict(f"the memory of this kernel cannot be copied: {made.declined}")
            return made

        making = self._in_turn(copied, wait_s)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(self._nobody_wants)
            raise

    def _nobody_wants(self, making: asyncio.Task[Snapshot]) -> None:
        """Who asked for a copy has left before it was made."""
        if not making.cancelled() and making.exception() is None:
            self._own(self._snapshots.discard(making.result()), "discard")

    async def unpack(self, path: str, working_folder: str, wait_s: float) -> Carried:
        """Take up what another kernel packed.

        Raises:
            KernelUnavailable: its turn did not come in time, or it cannot.
        """

        async def unpacked(memory: Memory) -> Carried:
            carried = await memory.kernel.unpack(path, working_folder)
            # What is kept is not this memory any more.
            memory.cells += 1
            memory.was_used = True
            return carried

        return await asyncio.shield(self._in_turn(unpacked, wait_s, changes=True))

    async def undo(self, cells: int) -> str:
        """Back over so many; what could not be carried. What waits never begins.

        Raises:
            Conflict: a cell runs, or so many are not kept; nothing changed.
            KernelUnavailable: the memory cannot be had; nothing changed.
        """
        self.check_memory("undo")
        # From here to the place in the queue nothing may come between: what waits is refused only if there is a way.
        first = await self._memories.ready()
        seen = first.cells
        self._found(first, cells)
        running = self._queue.running
        if running is not None and running.origin is not Origin.HOST:
            raise Conflict(f"cell {running.cell} is running: wait for it or interrupt it, then undo")
        self._queue.refuse_all("its kernel went back to an earlier memory before it began; send it again")

        async def go_back(memory: Memory) -> str:
            if memory is not first or memory.cells != seen:
                raise Conflict("something ran meanwhile; look at it first, then undo")
            source = self._found(memory, cells)
            await self._memories.go_back(source)
            return source.not_carried if source else ""

        return await asyncio.shield(self._in_turn(go_back, _TURN_S, changes=True))

    def _found(self, memory: Memory, cells: int) -> Snapshot | None:
        """The one to go back to; None for a memory that nothing had run in."""
        if memory.change.lost:
            raise Conflict(
                f"the memory is not the one that the last result told of: {memory.change.reason}; run a cell first"
            )
        target = memory.cells - cells
        source = self._snapshots.before(target)
        # An empty memory needs no snapshot.
        begins_empty = memory.cells > 0 and not self._memories.has_start_up
        if source is None and (target != 0 or self._memories.has_start_up):
            far = sorted({*self._snapshots.reachable(memory.cells), *([memory.cells] if begins_empty else [])})
            why = self._snapshots.state(memory.cells).reason
            over = " or ".join(map(str, far))
            said = (
                f"undo can go back over {over} cells now: so many are kept" if far else "nothing to go back to is kept"
            )
            raise Conflict(f"{said}{f': {why}' if why else ''}", {"cells": str(cells)})
        return source

    def _in_turn(
        self, work: Callable[[Memory], Awaitable[T]], wait_s: float, *, changes: bool = False
    ) -> asyncio.Task[T]:
        """In the queue at once; the caller shields what it waits for."""
        ticket = Ticket(new_cell_id(), Origin.HOST, "")
        self._queue.join(ticket)
        return self._own(self._take_turn(ticket, work, wait_s, changes), "a question")

    async def _take_turn(
        self, ticket: Ticket, work: Callable[[Memory], Awaitable[T]], wait_s: float, changes: bool
    ) -> T:
        waiting = asyncio.get_running_loop().call_later(wait_s, self._too_late, ticket, wait_s)
        try:
            async with self._queue.turn(ticket):
                memory = await ticket.unless_refused(self._memories.ready())
                ticket.begin()
                answer = await work(memory)
                if changes:
                    self._keep(ticket)
                return answer
        except KernelGone as gone:
            raise KernelUnavailable(f"{how_it_ended(gone.exit)}; ask again") from gone
        finally:
            waiting.cancel()

    def _too_late(self, ticket: Ticket, wait_s: float) -> None:
        if ticket.is_running:
            return
        running = self._queue.running
        by = f"cell {running.cell} ({running.first_line!r}) is running" if running else "it is starting"
        ticket.refuse(
            KernelUnavailable(
                f"the kernel had no time in {wait_s:g} s: {by}; wait for it or interrupt it, and ask again"
            )
        )
