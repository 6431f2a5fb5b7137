"""Turns on one kernel: first come, first served, whoever asks; what waits can be seen and taken out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable
from enum import StrEnum
from typing import TypeVar

from workbench.errors import Cancelled, WorkbenchError
from workbench.model.execution import QueuedCell
from workbench.model.ids import CellId

_FIRST_LINE_CHARACTERS = 200

T = TypeVar("T")


class Origin(StrEnum):
    """Who wants a turn."""

    SESSION = "session"
    ATTACHED = "attached"
    HOST = "host"
    """a short question of our own; not shown in the queue"""


class Ticket:
    """One place in the queue. Made by `TurnQueue.join`, given back by leaving `TurnQueue.turn`."""

    def __init__(self, cell: CellId, origin: Origin, code: str) -> None:
        self.cell = cell
        self.origin = origin
        self.first_line = first_line(code)
        self.is_running = False
        self._since = time.monotonic()
        self.granted = asyncio.Event()
        self.over = asyncio.Event()
        """it has left the queue"""
        self._refused = asyncio.Event()
        self._problem: WorkbenchError | None = None

    def begin(self) -> None:
        """From here on it runs, and cannot be refused."""
        self.is_running = True
        self._since = time.monotonic()

    def wait_again(self) -> None:
        """It turned out that it never began: it keeps its place, and can be refused again."""
        self.is_running = False

    def refuse(self, problem: WorkbenchError) -> None:
        """Take it out of the queue; whoever waits with it gets the problem."""
        assert not self.is_running
        self._problem = problem
        self._refused.set()

    @property
    def is_refused(self) -> bool:
        """Whether it was taken out."""
        return self._problem is not None

    async def unless_refused(self, work: Awaitable[T]) -> T:
        """What comes of the work.

        Raises:
            WorkbenchError: it was refused meanwhile; the work is cancelled.
        """
        doing, refused = asyncio.ensure_future(work), asyncio.ensure_future(self._refused.wait())
        try:
            await asyncio.wait((doing, refused), return_when=asyncio.FIRST_COMPLETED)
            if self._problem is not None:
                raise self._problem
            return await doing
        finally:
            for task in (doing, refused):
                task.cancel()
            await asyncio.wait((doing, refused))
            if not doing.cancelled():
                doing.exception()  # seen, if it failed and was refused at the same time

    def report(self) -> QueuedCell:
        """As it is now."""
        return QueuedCell(
            cell=self.cell,
            origin=self.origin,
            running=self.is_running,
            for_s=time.monotonic() - self._since,
            first_line=self.first_line,
        )


class TurnQueue:
    """Of one kernel; it outlives the kernel's memories."""

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []

    def join(self, ticket: Ticket) -> None:
        """At the end. Whoever joins uses `turn` next, with nothing that can fail between."""
        self._tickets.append(ticket)
        self._grant()

    def _grant(self) -> None:
        if self._tickets:
            self._tickets[0].granted.set()

    @contextlib.asynccontextmanager
    async def turn(self, ticket: Ticket) -> AsyncIterator[None]:
        """Its body is the turn of a ticket that has joined.

        Raises:
            WorkbenchError: it was refused.
        """
        try:
            if not ticket.granted.is_set() or ticket.is_refused:
                await ticket.unless_refused(ticket.granted.wait())
            yield
        finally:
            self.leave(ticket)

    def follow(self, ticket: Ticket, after: Ticket) -> None:
        """`after`, whose turn it is, is over, and this one has its turn before all that wait. Its owner ends it."""
        self._tickets[self._tickets.index(after)] = ticket
        ticket.granted.set()
        ticket.begin()
        after.over.set()

    def leave(self, ticket: Ticket) -> None:
        """Make room for the next. May be called twice."""
        if ticket in self._tickets:
            self._tickets.remove(ticket)
            self._grant()
        ticket.over.set()

    @property
    def is_empty(self) -> bool:
        """Nobody has a turn or waits for one."""
        return not self._tickets

    def has(self, origin: Origin) -> bool:
        """Whether one of these has a turn or waits for it."""
        return any(ticket.origin is origin for ticket in self._tickets)

    @property
    def running(self) -> Ticket | None:
        """The one whose turn it is, once it has begun."""
        return self._tickets[0] if self._tickets and self._tickets[0].is_running else None

    def waiting(self) -> list[Ticket]:
        """Those that have not begun."""
        return [ticket for ticket in self._tickets if not ticket.is_running]

    def refuse_all(self, reason: str, *, also_hosts: bool = False) -> None:
        """Those that have not begun never will; what the host itself wants a turn for only if it is said."""
        for ticket in self.waiting():
            if also_hosts or ticket.origin is not Origin.HOST:
                ticket.refuse(Cancelled(reason, {"cell": ticket.cell}))

    def report(self) -> tuple[QueuedCell, ...]:
        """The running one first."""
        return tuple(ticket.report() for ticket in self._tickets if ticket.origin is not Origin.HOST)


def first_line(code: str) -> str:
    """What a person recognises it by."""
    return next((line.strip()[:_FIRST_LINE_CHARACTERS] for line in code.splitlines() if line.strip()), "")
