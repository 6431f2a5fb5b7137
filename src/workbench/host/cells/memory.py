"""One memory of a kernel, what it is started with, and what became of the one before it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from workbench.contracts.kernel import Kernel
from workbench.host.cells.cell_run import Ladder
from workbench.host.cells.words import Restored, restored_words
from workbench.model.execution import MemoryState
from workbench.model.ids import KernelId
from workbench.model.runtime import FORKED, Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How hard it is tried to have a memory; tests are in a hurry."""

    start_s: float = 60.0
    tries: int = 3
    """in the background, after a loss; a request that needs a kernel tries once more itself"""
    pause_s: float = 0.5
    settled_s: float = 5.0
    """a kernel that nobody used and that ended sooner than this has ended at once"""
    settle_s: float = 20.0
    """for a lost memory to be restored, before the cell that lost it is told"""
    ladder: Ladder = field(default_factory=Ladder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of the memory before."""

    lost: str = ""
    """why it is gone; empty if it is not"""
    restored: Restored | None = None
    """it came back all the same"""
    problem: str = ""
    """why it could not come back, if there was something that it could have come from"""
    for_good: bool = False
    """an earlier loss that nobody was told of had cost everything"""

    @property
    def state(self) -> MemoryState:
        """In one word."""
        if not self.lost:
            return MemoryState.INTACT
        return MemoryState.RESTORED if self.restored and not self.for_good else MemoryState.LOST

    @property
    def reason(self) -> str:
        """In a clause or two, for a receipt."""
        more = restored_words(self.restored) if self.restored else self.problem
        return f"{self.lost}; {more}" if self.lost and more else self.lost


@dataclass(slots=True, eq=False)
class Memory:
    """One interpreter with its variables."""

    kernel: Kernel
    start_up_error: str
    epoch: int = 0
    change: Change = field(default_factory=Change)
    """how it differs from what the last receipt told of, until a receipt has told it"""
    execution_count: int = 0
    cells: int = 0
    """that it has seen; a snapshot's go on counting where they were"""
    was_used: bool = False
    busy_since: float | None = None
    """when the cell began that runs in it, on the monotonic clock"""
    ready_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What every memory of the kernel is started with."""

    kernel: KernelId
    working_folder: str
    start_up: str
    snapshots: bool = True
    runtime: Runtime = FORKED


def joined(before: str, reason: str) -> str:
    """Two losses that nobody was told of between."""
    return f"{before}; then {reason}" if before and before != reason else reason
