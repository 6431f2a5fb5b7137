"""Cells and commands by their ids, from when they are asked for until they are forgotten."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from enum import StrEnum

from workbench.contracts.host import dropped
from workbench.errors import Conflict, NotFound, WorkbenchError
from workbench.host.cells.recorder import Recorder
from workbench.model.execution import Cell, CellResult, Command, CommandResult
from workbench.model.ids import CellId, KernelId

# Ended ones that are kept for whoever asks late, of one sandbox; the oldest go first.
MOST_ENDED = 100
MOST_SPOOL_BYTES = 1024**3
MOST_RESULT_BYTES = 64 * 1024**2
# Ids alone: a cell that is asked for again after it was dropped must not run again.
_MOST_REMEMBERED = 10_000


class State(StrEnum):
    """Where it is."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class Tracked:
    """One cell or command."""

    def __init__(self, asked: Cell | Command, kernel: KernelId | None, output: Recorder) -> None:
        self.asked = asked
        self.kernel = kernel
        self.output = output
        self.state = State.WAITING
        self._result: CellResult | CommandResult | None = None
        self._problem: WorkbenchError | None = None
        self._ended = asyncio.Event()

    @property
    def id(self) -> CellId:
        """As the caller chose it."""
        return self.asked.id

    def is_same(self, asked: Cell | Command, kernel: KernelId | None) -> bool:
        """Whether it is what someone asks for again."""
        return self.asked == asked and self.kernel == kernel

    def end(self, result: CellResult | CommandResult) -> None:
        """It began, and this is what came of it."""
        self._result = result
        self._over()

    def fail(self, problem: WorkbenchError) -> None:
        """It never began."""
        self._problem = problem
        self._over()

    def _over(self) -> None:
        self.state = State.ENDED
        self.output.end()
        self._ended.set()

    async def result(self, wait_s: float) -> CellResult | CommandResult | None:
        """Its end, or None if that has not come in time.

        Raises:
            WorkbenchError: it never began.
        """
        try:
            async with asyncio.timeout(wait_s):
                await self._ended.wait()
        except TimeoutError:
            return None
        if self._problem is not None:
            raise type(self._problem)(self._problem.message, self._problem.context)
        return self._result


class Shelf:
    """All cells and commands of one sandbox."""

    def __init__(
        self, most_ended: int = MOST_ENDED, most_spool: int = MOST_SPOOL_BYTES, most_results: int = MOST_RESULT_BYTES
    ) -> None:
        self._most_ended = most_ended
        self._most_spool = most_spool
        self._most_results = most_results
        self._live: dict[CellId, Tracked] = {}
        self._ended: OrderedDict[CellId, Tracked] = OrderedDict()
        self._gone: OrderedDict[CellId, bool] = OrderedDict()
        """that cannot be sent again, and whether they were ever here"""

    def find(self, cell: CellId) -> Tracked:
        """Raises: NotFound if there is none, or none any more."""
        found = self._live.get(cell) or self._ended.get(cell)
        if found is None:
            if self._gone.get(cell):
                raise NotFound(f"no cell {cell} in this sandbox: it ended and was dropped", dropped(cell))
            raise NotFound(f"no cell {cell} in this sandbox: it was never sent", {"cell": cell})
        return found

    def known(self, asked: Cell | Command, kernel: KernelId | None) -> Tracked | None:
        """The one that is asked for again, if it is.

        Raises:
            Conflict: its id belongs to something else, or to one that ended and was dropped.
        """
        if asked.id in self._gone:
            was_here = self._gone[asked.id]
            why = "ended and was dropped" if was_here else "was given up before it came"
            # Who lost the answer to the first time it was sent must not take this for a no: it is over.
            context = dropped(asked.id) if was_here else {"cell": asked.id}
            raise Conflict(f"cell {asked.id} {why}; choose another id", context)
        found = self._live.get(asked.id) or self._ended.get(asked.id)
        if found is not None and not found.is_same(asked, kernel):
            raise Conflict(f"there is another cell {asked.id} already; choose another id", {"cell": asked.id})
        return found

    def add(self, tracked: Tracked) -> None:
        """One that waits or runs."""
        self._live[tracked.id] = tracked

    def ended(self, tracked: Tracked) -> None:
        """Keep it for a while; the oldest make room for it."""
        if self._live.pop(tracked.id, None) is not None:
            self._ended[tracked.id] = tracked
            while len(self._ended) > 1 and self._is_too_much():
                self.forget(next(iter(self._ended)))

    def _is_too_much(self) -> bool:
        kept = self._ended.values()
        return (
            len(self._ended) > self._most_ended
            or sum(one.output.spool.size for one in kept) > self._most_spool
            or sum(one.output.held_bytes for one in kept) > self._most_results
        )

    def forget(self, cell: CellId) -> None:
        """Drop one that has ended; one that never came is refused from now on.

        Raises:
            Conflict: it has not ended.
        """
        if cell in self._live:
            raise Conflict(f"cell {cell} has not ended: interrupt or cancel it first", {"cell": cell})
        tracked = self._ended.pop(cell, None)
        if tracked is not None:
            tracked.output.spool.remove()
        self._gone.setdefault(cell, tracked is not None)
        if len(self._gone) > _MOST_REMEMBERED:
            self._gone.popitem(last=False)

    def live(self) -> Iterator[Tracked]:
        """Those that have not ended."""
        return iter(list(self._live.values()))

    def clear(self) -> None:
        """Drop everything from the disk."""
        for tracked in (*self._live.values(), *self._ended.values()):
            tracked.output.spool.remove()
        self._live.clear()
        self._ended.clear()
