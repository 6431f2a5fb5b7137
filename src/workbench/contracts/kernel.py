"""Kernel, KernelLauncher: one conversation with one interpreter in a sandbox.

For the author of the next kernel: speak to it in your own words, and say what happens in these. The host decides about
queues, limits, spools and what an outcome is; a kernel only runs what it is given and tells the truth about it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from workbench.contracts.engine import Ahead, Sandbox
from workbench.model.execution import Cell, Corrections, Piece, RuleCount, Variable
from workbench.model.ids import KernelId, ProcessId, SandboxId
from workbench.model.process import ProcessExit
from workbench.model.runtime import FORKED, Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStart:
    """What a kernel is started with."""

    id: KernelId
    generation: int
    """how many memories this kernel has had; the names of its process and sockets have it"""
    working_folder: str
    snapshot: str | None = None
    """go on with the memory of this snapshot"""
    runtime: Runtime = FORKED


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAnswer:
    """Whether a kernel left a dormant copy of itself. Told by the guest, bounded by the client."""

    declined: str = ""
    """why not; empty if it did"""
    declined_for_memory: bool = False
    """with less in use it would have"""
    cost_s: float = 0.0
    """how long it stood still"""
    not_carried: str = ""
    """what the copy cannot have, in words"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Variables that were packed or taken up, and those that were not. Told by a guest, bounded by the client."""

    names: tuple[str, ...] = ()
    not_carried: Mapping[str, str] = field(default_factory=dict)
    """with the reason"""
    working_folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """The kernel has taken the cell up: from here on there is a result."""

    execution_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """How the names of the memory differ from before the cell. Told by the guest, bounded by the client."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rebound: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """What was done for a cell, as the guest says it; bounded by the client."""

    corrections: Corrections = field(default_factory=Corrections)
    rules: tuple[RuleCount, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The cell is over and everything that it said has been told."""

    ok: bool
    execution_count: int
    names: Names
    working_folder: str
    mended: Mended = field(default_factory=Mended)
    output_incomplete: bool = False
    """the kernel answered, but did not say that its output is complete within the time it has for that"""


KernelEvent = Began | Piece | Finished
Turn = Callable[[str], AbstractAsyncContextManager[None]]
"""Given the first line of what an attached notebook wants to run: its body is that cell's turn among the others."""
Visit = Callable[[], AbstractAsyncContextManager[None] | None]
"""Told of everything that an attached notebook asks; what it gives, if anything, is held while that is passed on."""


def process_of(kernel: KernelId, generation: int) -> ProcessId:
    """What the process of a kernel is called, in its sandbox."""
    return ProcessId(f"k-{kernel}-{generation}")


def kernel_of(process: ProcessId) -> KernelId | None:
    """Whose it is, if it is one's."""
    kernel, _, generation = process.removeprefix("k-").rpartition("-")
    return KernelId(kernel) if process.startswith("k-") and kernel and generation.isdigit() else None


class KernelGone(Exception):
    """The kernel's process ended. What it said before has been told."""

    def __init__(self, exit_: ProcessExit) -> None:
        super().__init__("the kernel ended")
        self.exit = exit_


class Kernel(Protocol):
    """One memory. Owned by the host, which closes it; never restarted, only replaced."""

    def execute(self, cell: Cell) -> AsyncIterator[KernelEvent]:
        """Run it: `Began` first, pieces in the order they came, `Finished` last. One at a time.

        What was printed since the last cell, by a thread or a process in the background, comes first. Who stops
        reading before `Finished` leaves the cell running and must end the kernel.

        Raises:
            KernelGone: at any point. Without a `Began` before it, the cell never began.
        """
        ...

    async def variables(self, most: int) -> tuple[Variable, ...]:
        """The names of the memory, sorted, without those that the interpreter brings. Between cells only.

        Only kernels whose runtime tells its variables are asked, and only forked ones for what memories can do.

        Raises:
            KernelGone: it ended.
            KernelUnavailable: it did not answer in time.
        """
        ...

    async def snapshot(self, name: str, most_bytes: int) -> SnapshotAnswer:
        """Leave a dormant copy in the sandbox, which will offer it under this name. Between cells only.

        Args:
            name: unique in the sandbox.
            most_bytes: how much memory it may need if both the kernel and the copy are used.

        Raises:
            KernelGone: it ended.
            KernelUnavailable: it did not answer in time; the copy may still come.
        """
        ...

    async def unpack(self, path: str, working_folder: str) -> Carried:
        """Take up variables that a copy of another kernel packed into a file of the sandbox. Between cells only.

        Raises:
            KernelGone: it ended.
            KernelUnavailable: it did not answer in time, or cannot read the file.
        """
        ...

    async def use_threads(self, count: int) -> None:
        """The sandbox has so many CPUs from now on: pools of threads follow, before the next cell at the latest."""
        ...

    async def interrupt(self) -> None:
        """SIGINT to the kernel and everything it started in its own group. Nothing happens when it has ended."""
        ...

    async def attach(self, turn: Turn, visit: Visit | None = None) -> AttachPoint:
        """Open the door for notebooks, or give the one that is open. What they run waits for its `turn`."""
        ...

    async def wait(self) -> ProcessExit:
        """Its end. May be called by many and again."""
        ...

    def left_over(self) -> tuple[Piece, ...]:
        """What was printed since the last cell and that no cell has told; given once. For one that has ended."""
        ...

    async def aclose(self) -> None:
        """End the process and its group, close what was opened. May be called twice."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPoint:
    """How a Jupyter client on this machine finds the kernel."""

    connection_file: str
    info: Mapping[str, str | int]
    """what the file says"""


class KernelLauncher(Protocol):
    """Starts kernels of every runtime."""

    async def start(self, sandbox: Sandbox, start: KernelStart) -> Kernel:
        """A kernel that is ready for its first cell.

        Raises:
            KernelUnavailable: it did not come up, the machine lacks something that its runtime needs, or there is no
                such snapshot; nothing is left of it.
            SandboxUnavailable: the sandbox is gone.
        """
        ...

    async def pack(self, sandbox: Sandbox, snapshot: str, path: str) -> Carried:
        """Have a snapshot write its variables into a new file of the sandbox, one by one. It is used up by that.

        Raises:
            KernelUnavailable: it did not, or not in time.
            SandboxUnavailable: the sandbox is gone.
        """
        ...

    def ahead(self, runtime: Runtime) -> Ahead | None:
        """What of its kernel can begin before anybody asks for a sandbox; None if nothing can, or it is not here."""
        ...

    def forget(self, sandbox: SandboxId, kernel: KernelId | None = None) -> None:
        """The kernel has ended for good, or all of a sandbox: what was kept across memories goes. Again is fine."""
        ...

    async def aclose(self) -> None:
        """Free what the kernels share. Called last."""
        ...
