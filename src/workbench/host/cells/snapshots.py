"""The snapshots of one kernel: when one is taken, how many are kept, and which is what a loss or an undo goes back to.

The policy is in SPECIFICATION.md. What it weighs: memory, because a page that the kernel changes is there twice from
then on; time, because the kernel stands still; threads, because a copy has none of them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from dataclasses import dataclass, field

from workbench.contracts.engine import Sandbox
from workbench.contracts.kernel import Kernel, KernelGone, SnapshotAnswer
from workbench.errors import KernelUnavailable, WorkbenchError
from workbench.host.cells.measuring import Meter
from workbench.model.execution import SnapshotState
from workbench.model.ids import KernelId
from workbench.model.tier import tier_named

_log = logging.getLogger(__name__)
_OFF = "switched off for this session"
_NOT_OFFERED = "the engine has no snapshots"
_MIB = 1024 * 1024
_ANY_ROOM = 2**62
_FIRST_LOOK_S = 0.005
_names = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPolicy:
    """What is affordable."""

    kept: int = 3
    """the newest is for a loss, the others are for undo"""
    memory_share: float = 0.8
    """of the tier's memory: what is in use and what the kernel has, which could be needed twice, must fit into it"""
    cheap_s: float = 0.2
    """one that takes the kernel no longer than this is always affordable"""
    time_share: float = 0.1
    """of the time since the last one: what a dearer one may take"""
    older_go_at: float = 0.85
    """of the tier's memory: above it the older ones are given up while a cell runs"""
    newest_goes_at: float = 0.92
    """above it the newest is given up too, if that frees enough"""
    enough: float = 0.04
    """of the tier's memory, that only snapshots hold"""
    crowded: float = 0.3
    """of the tier's memory: above it one looks more often, and snapshots that hold enough go first at the limit"""
    look_s: float = 0.05
    look_when_crowded_s: float = 0.01
    """how often a running cell's memory is looked at"""
    offer_s: float = 5.0
    """until a copy that was made has gone to sleep"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One of them."""

    name: str
    cells: int
    """how many cells its memory had seen"""
    execution_count: int
    cost_s: float
    not_carried: str
    at: float = field(default_factory=time.monotonic)


class Snapshots:
    """Owned by a hosted kernel. Every call is made in the kernel's turn, but for those that only look or drop."""

    def __init__(
        self,
        sandbox: Sandbox,
        kernel: KernelId,
        meter: Meter,
        policy: SnapshotPolicy,
        *,
        on: bool,
        never: str = "",
    ) -> None:
        """`never` is why there are none of this kernel, whatever is wanted."""
        self._sandbox = sandbox
        self._never = never
        self._kernel = kernel
        self._meter = meter
        self._policy = policy
        self._on = on
        self._kept: list[Snapshot] = []
        self._declined = ""
        self.given_up = ""
        """why the newest is no more, if that was not wanted"""
        self._round = 0
        """a copy that is being made belongs to the round in which it was begun"""
        self._last = 0.0, 0.0, ""
        """when the last one was taken or tried, how long that took, and what came between"""

    def _there(self) -> list[Snapshot]:
        """Oldest first. Whoever ended one of them, an agent or the kernel when memory ran out, it is not told of."""
        alive = self._sandbox.snapshots
        if self._kept and self._kept[-1].name not in alive:
            self.given_up = "its snapshot was ended before it, by the limit of memory or by someone inside"
        self._kept = [one for one in self._kept if one.name in alive]
        return self._kept

    def state(self, cells: int) -> SnapshotState:
        """For a memory that has seen so many cells."""
        there = self._there()
        newest = there[-1] if there else None
        current = newest is not None and newest.cells == cells
        return SnapshotState(
            kept=len(there),
            current=current,
            cost_s=newest.cost_s if newest else 0.0,
            reason="" if current else self._why_none(cells),
        )

    def _why_none(self, cells: int) -> str:
        if self._never:
            return self._never
        if not self._sandbox.description.snapshots:
            return _NOT_OFFERED
        if not self._on:
            return _OFF
        return self._declined or ("nothing has run yet" if cells == 0 else "not taken yet")

    def newest(self) -> Snapshot | None:
        """What a loss is restored from."""
        there = self._there()
        return there[-1] if there else None

    def before(self, cells: int) -> Snapshot | None:
        """The one of the memory that had seen so many cells."""
        return next((one for one in reversed(self._there()) if one.cells == cells), None)

    def reachable(self, cells: int) -> list[int]:
        """Over how many cells one can go back from a memory that has seen so many."""
        return sorted({cells - one.cells for one in self._there() if one.cells < cells})

    async def take(self, kernel: Kernel, cells: int, execution_count: int) -> None:
        """Of the memory as it is, if there is none and it is affordable. Never raises."""
        newest = self.newest()
        if newest is not None and newest.cells == cells:
            return
        self._declined = ""
        if self._never or not self._on or not self._sandbox.description.snapshots:
            return
        began = time.monotonic()
        try:
            if not self._declined_for_time():
                await self._try(kernel, cells, execution_count)
        except KernelGone:
            self._declined = "the kernel ended"
        except WorkbenchError as problem:
            self._declined = problem.message
            # A kernel that is broken in this makes nobody wait for it after every cell.
            self._last = time.monotonic(), time.monotonic() - began, problem.message

    def _declined_for_time(self) -> bool:
        at, cost_s, problem = self._last
        since_s = time.monotonic() - at
        dear = cost_s > self._policy.cheap_s and cost_s > since_s * self._policy.time_share
        if dear and (self._there() or problem):
            self._declined = problem or f"the last one took the kernel {cost_s * 1000:.0f} ms, {since_s:.1f} s ago"
        return bool(self._declined)

    async def _try(self, kernel: Kernel, cells: int, execution_count: int) -> None:
        await self._drop(self._there()[: max(0, len(self._kept) - self._policy.kept + 1)])
        while True:
            round_ = self._round
            made = await self.copy(kernel, cells, execution_count, await self._room())
            if isinstance(made, Snapshot):
                if round_ != self._round or not self._on:
                    await self._sandbox.discard(made.name)
                    return
                for older in self._there():
                    await self._sandbox.let_go_first(older.name)
                self._kept.append(made)
                self.given_up = ""
                self._last = time.monotonic(), made.cost_s, ""
                return
            self._declined = made.declined
            if not made.declined_for_memory or not self._there():
                return
            # Those for undo hold memory too, and one of now is worth more than all of them.
            await self._drop(self._there()[:1])

    async def copy(
        self, kernel: Kernel, cells: int, execution_count: int, room: int = _ANY_ROOM
    ) -> Snapshot | SnapshotAnswer:
        """Of the memory as it is, for the caller to use or to discard; or the answer that declined it.

        Raises:
            KernelGone: the kernel ended.
            KernelUnavailable: it does not answer, or the copy does not go to sleep.
        """
        if self._never or not self._sandbox.description.snapshots:
            return SnapshotAnswer(declined=self._never or _NOT_OFFERED)
        name = f"{self._kernel}.{next(_names)}"
        self._sandbox.expect(name)
        try:
            answer = await kernel.snapshot(name, room)
            if answer.declined:
                await self._sandbox.discard(name)
                return answer
            if not await self._sandbox.snapshot_offered(name, self._policy.offer_s):
                raise KernelUnavailable("the copy did not go to sleep")
        except BaseException:
            # It may still come.
            await self._sandbox.discard(name)
            raise
        return Snapshot(
            name=name,
            cells=cells,
            execution_count=execution_count,
            cost_s=answer.cost_s,
            not_carried=answer.not_carried,
        )

    async def _room(self) -> int:
        limit = tier_named(self._sandbox.description.tier).memory_bytes
        used = (await self._meter.read()).memory_bytes
        return int(limit * self._policy.memory_share) - used

    def taken(self, snapshot: Snapshot) -> None:
        """It is started, and no snapshot any more."""
        self._kept = [one for one in self._kept if one is not snapshot]

    async def drop_after(self, cells: int) -> None:
        """Those of memories that had seen more cells than this: they are no more."""
        await self._drop([one for one in self._kept if one.cells > cells])

    @property
    def on(self) -> bool:
        """Whether they are wanted."""
        return self._on

    async def discard(self, snapshot: Snapshot) -> None:
        """A copy that was made for someone and is not used."""
        await self._sandbox.discard(snapshot.name)

    async def switch(self, *, on: bool) -> None:
        """On, from the next cell on; off, and none is left."""
        self._on = on
        if not on:
            await self.drop_all()

    def close_round(self) -> None:
        """The memory is no more: a copy of it that is being made is not wanted."""
        self._round += 1

    async def drop_all(self) -> None:
        """Give all up, also what is being made."""
        self.close_round()
        self.given_up = ""
        await self._drop(list(self._kept))

    async def _drop(self, some: list[Snapshot]) -> None:
        for one in list(some):
            if one in self._kept:
                self._kept.remove(one)
            # Whoever gives up waiting: one that is not known any more must not sleep on.
            await asyncio.shield(self._sandbox.discard(one.name))

    async def watch(self) -> None:
        """While a cell runs: give snapshots up before they cost the cell memory that it may have. Until cancelled.

        What only snapshots hold is what the sandbox uses more and no process of it has more: old pages of those that
        the cell has changed. A cell that just takes everything changes few; then a snapshot is worth most, and stays.
        """
        if not self._there():
            return
        limit = tier_named(self._sandbox.description.tier).memory_bytes
        before = None
        last_used = last_resident = 0
        # Most cells are over by then.
        await asyncio.sleep(_FIRST_LOOK_S)
        while True:
            began = time.monotonic()
            used, resident, apart, is_sure = await self._measured(limit)
            # A process that is being ended has nothing any more, while its memory is still counted.
            is_ending = last_resident - resident > max(0, last_used - used) + limit * self._policy.enough
            if is_sure and not is_ending:
                last_used, last_resident = used, resident
                before = apart if before is None else before
                if self._there():
                    await self._give_up(used / limit, (apart - before) / limit, (apart - before) // _MIB)
            look_s = self._policy.look_s if used < limit * self._policy.crowded else self._policy.look_when_crowded_s
            # Where looking is dear, it is done less often.
            await asyncio.sleep(max(look_s, 10 * (time.monotonic() - began)))

    async def _measured(self, limit: int) -> tuple[int, int, int, bool]:
        """What is in use, what processes have, what is beyond that, and whether the latter is to be believed.

        One is read after the other, and a cell may take tens of megabytes in between: read once, what it takes would
        look like what snapshots hold, or hide it.
        """
        first = (await self._meter.read()).memory_bytes
        resident = await self._sandbox.resident_bytes()
        used = (await self._meter.read()).memory_bytes
        return used, resident, (first + used) // 2 - resident, abs(used - first) < limit * self._policy.enough

    async def _give_up(self, used: float, held: float, mib: int) -> None:
        if used > self._policy.older_go_at:
            await self._drop(self._there()[:-1])
        if used > self._policy.crowded and held > self._policy.enough:
            # Looks may come too late for a cell in a hurry; then whoever ends processes at the limit ends these first.
            for one in self._there():
                await self._sandbox.let_go_first(one.name)
            if used > self._policy.newest_goes_at:
                await self._drop(self._there())
                self._declined = self.given_up = f"its snapshot was given up, with {mib} MiB that the cell needed"
