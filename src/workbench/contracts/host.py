"""SandboxHost: what the core asks of the process that owns sandboxes, in values of the model.

For the author of the next one, say a placement over many machines: sandboxes, kernels and cells are known by ids that
the core chooses, so that whoever missed an answer can ask again. What may be raised is said once, here:

* `HostUnavailable`: no host can be reached. If the host had been asked already, `answer_lost` of the error is true: it
  may have done what it was told. Methods marked *again* have asked twice by then: the same request is the same thing.
* `SandboxUnavailable` with a `gone_reason`: the sandbox ended, or nobody knows it; nothing was done now. About a cell
  that was asked for before, `never_began` of the error is true if that is certain.
* `NotFound`: the sandbox lives, and has no such kernel or cell. About a cell, `was_dropped` of the error is true if it
  was there and has ended, and false if it never came.
* any other error of the tree: nothing was done, for the reason it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from workbench.contracts.engine import Usage
from workbench.contracts.kernel import AttachPoint
from workbench.errors import HostUnavailable, SandboxUnavailable, WorkbenchError
from workbench.model.execution import (
    BackgroundProcess,
    Cell,
    CellResult,
    Command,
    CommandResult,
    Piece,
    QueuedCell,
    SnapshotState,
    Variable,
)
from workbench.model.ids import CellId, KernelId, MountId, SandboxId
from workbench.model.runtime import PYTHON
from workbench.model.tier import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOrder:
    """A sandbox that is wanted."""

    sandbox: SandboxId
    tier: Tier
    mount: MountId
    """shown at /mnt/files; made if new"""
    env: dict[str, str] = field(default_factory=dict)
    warm: str = ""
    """what code in it imports soon and takes long to import, by the name of a warm set of the image; a wish"""
    runtime: str = PYTHON
    """whose kernel will be started first in it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """A sandbox that is known."""

    tier: str
    warning: str
    """what is weak about its isolation"""
    gone: str = ""
    """why it ended, if it has"""
    frozen: bool = False
    """nothing in it runs until something is asked of it"""
    attached_idle_s: float | None = None
    """since an attached Jupyter client last asked for something, or its door was opened; None if it never was"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAddress:
    """Which kernel."""

    sandbox: SandboxId
    kernel: KernelId


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOrder:
    """A kernel that is wanted."""

    at: KernelAddress
    epoch: int
    working_folder: str
    start_up: str
    lost_before: str
    """why an earlier memory of the same session is gone; told by the first receipt"""
    snapshots: bool = True
    """whether its memory is kept between cells"""
    runtime: str = PYTHON
    """by its name; the host knows how it is started"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelState:
    """A kernel as it is now."""

    epoch: int
    execution_count: int
    queue: tuple[QueuedCell, ...]
    """the running one first"""
    start_up_error: str = ""
    snapshots: SnapshotState = field(default_factory=SnapshotState)
    """as it is now"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A kernel whose memory is that of a snapshot, or of another kernel."""

    kernel: KernelState
    not_carried: str = ""
    """what of the memory no snapshot can carry, in words; empty if there was nothing"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What of a kernel's variables and files arrived in another sandbox."""

    carried: tuple[str, ...]
    not_carried: dict[str, str]
    """names with the reason"""
    files_note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAddress:
    """Which cell or command."""

    sandbox: SandboxId
    cell: CellId


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOrder:
    """A cell for a kernel; the answer comes with its end, or after `wait_s`."""

    at: KernelAddress
    cell: Cell
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOrder:
    """A command for a sandbox; answered like a cell."""

    at: KernelAddress
    """the session's kernel, of which the receipt tells"""
    command: Command
    epoch: int
    """of the session, for the receipt if there is no kernel to ask"""
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPage:
    """Pieces in the order they came."""

    pieces: tuple[Piece, ...]
    next_offset: int
    ended: bool
    """nothing more will come"""
    dropped_bytes: int
    """beyond what the host keeps of one cell"""


class SandboxHost(Protocol):
    """Owned by who wired it. Many calls at once are the normal case."""

    async def create_sandbox(self, order: SandboxOrder) -> SandboxState:
        """Make it, or give the one that the same order made. *Again.* Starts a host if none runs.

        Raises:
            Conflict: it is just being made for someone else, was ordered differently, has ended, or its mount is in
                use; `describe_sandbox` tells which.
        """
        ...

    async def describe_sandbox(self, sandbox: SandboxId) -> SandboxState:
        """Also one that ended, as long as the host remembers it. *Again.*"""
        ...

    async def close_sandbox(self, sandbox: SandboxId, *, if_frozen: bool = False) -> None:
        """End it and drop its outputs; its mount is free afterwards. Nothing happens if it is gone. *Again.*

        Raises:
            Conflict: it is to be ended only `if_frozen`, and is not: somebody uses it. Nothing happened.
        """
        ...

    async def freeze_sandbox(self, sandbox: SandboxId) -> bool:
        """Let nothing in it run until something is asked of it again. *Again.*

        False, and nothing happens, while a cell or a command waits or runs in it, an attached Jupyter client asked for
        something a moment ago, or the machine cannot do this. Looking at it (`describe_*`, `measure`, `list_processes`,
        outputs of what has ended) does not thaw it; everything else does, before it is done, and so does whatever a
        Jupyter client asks.
        """
        ...

    async def thaw_sandbox(self, sandbox: SandboxId) -> None:
        """Let it run again; nothing happens if it does. *Again.*"""
        ...

    async def change_tier(self, sandbox: SandboxId, tier: Tier) -> None:
        """Other limits for a live sandbox. *Again.*

        Raises:
            QuotaExceeded: it uses more than that now; nothing changed.
        """
        ...

    async def measure(self, sandbox: SandboxId) -> Usage:
        """What it uses. *Again.*"""
        ...

    async def list_processes(self, sandbox: SandboxId) -> tuple[BackgroundProcess, ...]:
        """What runs in its background. *Again.*"""
        ...

    async def start_kernel(self, order: KernelOrder) -> KernelState:
        """Start it, or give the one that the same order started. *Again.*"""
        ...

    async def describe_kernel(self, at: KernelAddress) -> KernelState:
        """*Again.*"""
        ...

    async def restart_kernel(self, at: KernelAddress) -> KernelState:
        """A new memory with a new epoch. What runs is lost, what waits never begins."""
        ...

    async def end_kernel(self, at: KernelAddress) -> None:
        """End it and its snapshots; its sandbox goes on. Nothing happens if it is gone. *Again.*"""
        ...

    async def set_snapshots(self, at: KernelAddress, *, on: bool) -> None:
        """Keep its memory between cells from now on, or drop what is kept. *Again.*"""
        ...

    async def undo(self, at: KernelAddress, cells: int) -> Moved:
        """Back to the memory from before the last `cells` cells, with a new epoch. What waits never begins.

        Raises:
            Conflict: a cell runs, or so many are not kept; nothing changed.
        """
        ...

    async def branch(self, at: KernelAddress, branch: KernelId, epoch: int) -> Moved:
        """A second kernel with the same memory in the same sandbox. Waits a bounded time for its turn. *Again.*

        Raises:
            Conflict: this kernel cannot be branched, with the reason.
        """
        ...

    async def copy_into(self, at: KernelAddress, target: KernelAddress) -> Copied:
        """Files and variables into another sandbox with a fresh kernel. Waits a bounded time for its turn."""
        ...

    async def interrupt_kernel(self, at: KernelAddress, cell: CellId | None = None) -> None:
        """Interrupt what runs; with `cell` only if it is that one, which is looked at and done in one step."""
        ...

    async def list_variables(self, at: KernelAddress, most: int) -> tuple[Variable, ...]:
        """Waits a bounded time for its turn. *Again.*"""
        ...

    async def attach(self, at: KernelAddress) -> AttachPoint:
        """Open the door for Jupyter clients, or give the one that is open. *Again.*"""
        ...

    async def run_cell(self, order: CellOrder) -> CellResult | None:
        """Queue it; None if it has not ended after `wait_s`. The same cell again never runs twice.

        Raises:
            HostUnavailable: with `answer_lost` if it may have begun.
            Cancelled: it was taken out of the queue.
        """
        ...

    async def run_command(self, order: CommandOrder) -> CommandResult | None:
        """The same for a command."""
        ...

    async def wait_cell(self, at: CellAddress, wait_s: float) -> CellResult | None:
        """Its end, also in a sandbox that ended under it; None if it has not come after `wait_s`. *Again.*"""
        ...

    async def wait_command(self, at: CellAddress, wait_s: float) -> CommandResult | None:
        """The same for a command. *Again.*"""
        ...

    async def read_output(self, at: CellAddress, offset: int, wait_s: float) -> OutputPage:
        """Output from `offset` (0, or an earlier `next_offset`) on; waits for something new up to `wait_s`. *Again.*"""
        ...

    async def cancel_cell(self, at: CellAddress) -> None:
        """Take a waiting cell out of the queue.

        Raises:
            Conflict: it runs or has ended.
        """
        ...

    async def interrupt_command(self, at: CellAddress) -> None:
        """Interrupt a command and everything in its group; nothing happens if it has ended."""
        ...

    async def forget_cell(self, at: CellAddress) -> None:
        """Drop what is kept of one that has ended; one that never came cannot be sent any more. *Again.*

        Raises:
            Conflict: it waits or runs.
        """
        ...


_GONE, _ANSWER, _BEGAN, _DROPPED = "gone", "answer", "began", "dropped"


def sandbox_gone(sandbox: SandboxId, reason: str, *, began: bool = True) -> SandboxUnavailable:
    """The error for a sandbox that ended or is unknown; `began` is False if what was asked about surely never did."""
    context = {"sandbox": sandbox, _GONE: reason} | ({} if began else {_BEGAN: "no"})
    return SandboxUnavailable(f"sandbox {sandbox} is gone: {reason}", context)


def never_began(problem: WorkbenchError) -> bool:
    """Whether it is certain that nothing ran."""
    return problem.context.get(_BEGAN) == "no"


def gone_reason(problem: WorkbenchError) -> str | None:
    """Why the sandbox is gone, if that is what the error says."""
    return problem.context.get(_GONE) if isinstance(problem, SandboxUnavailable) else None


def lost_answer(problem: HostUnavailable) -> HostUnavailable:
    """The same error, for a host that had been asked already."""
    return HostUnavailable(problem.message, {**problem.context, _ANSWER: "lost"})


def answer_lost(problem: WorkbenchError) -> bool:
    """Whether the host may have done what it was told."""
    return isinstance(problem, HostUnavailable) and problem.context.get(_ANSWER) == "lost"


def dropped(cell: CellId) -> dict[str, str]:
    """The context of a `NotFound`, or of a `Conflict` about sending it again, for a cell that ended and was dropped."""
    return {"cell": cell, _DROPPED: "yes"}


def was_dropped(problem: WorkbenchError) -> bool:
    """Whether it says that."""
    return problem.context.get(_DROPPED) == "yes"
