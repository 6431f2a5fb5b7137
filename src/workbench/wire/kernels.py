"""Requests about kernels, cells and commands, and their answers. The frames that carry them are in `host`."""

from __future__ import annotations

from workbench.model.execution import (
    BackgroundProcess,
    CellResult,
    CommandResult,
    Piece,
    QueuedCell,
    SnapshotState,
    Variable,
)
from workbench.model.runtime import PYTHON
from workbench.wire.values import Request, Value


class StartKernel(Request, frozen=True, kw_only=True):
    """A kernel in a sandbox. The caller chooses the id; the same request again gives the same kernel.

    When its process dies the host starts another under the same id, with the next epoch.
    """

    sandbox: str
    kernel: str
    epoch: int
    """of its first memory"""
    working_folder: str = "/home/user"
    start_up: str = ""
    """run in every new memory before the first cell"""
    lost_before: str = ""
    """why an earlier memory of the same session is gone; told by the first receipt"""
    snapshots: bool = True
    """whether its memory is kept between cells"""
    runtime: str = PYTHON
    """by its name"""


class KernelReport(Value, frozen=True, kw_only=True, tag=True):
    """A kernel as it is now."""

    sandbox: str
    kernel: str
    epoch: int
    execution_count: int
    queue: tuple[QueuedCell, ...]
    """the running one first"""
    start_up_error: str = ""
    """what the start-up code raised in this memory"""
    snapshots: SnapshotState = SnapshotState()
    """as it is now"""


class DescribeKernel(Request, frozen=True, kw_only=True):
    """How it is."""

    sandbox: str
    kernel: str


class RestartKernel(Request, frozen=True, kw_only=True):
    """A new memory. What runs is lost, what waits never begins."""

    sandbox: str
    kernel: str


class EndKernel(Request, frozen=True, kw_only=True):
    """End this kernel and its snapshots; the sandbox and its other kernels go on. Nothing happens if it is gone."""

    sandbox: str
    kernel: str


class SetSnapshots(Request, frozen=True, kw_only=True):
    """Keep its memory between cells from now on, or drop what is kept and keep nothing more."""

    sandbox: str
    kernel: str
    on: bool


class UndoCells(Request, frozen=True, kw_only=True):
    """Go back to the memory from before the last `cells` cells; what waits never begins.

    Raises `conflict` if a cell runs, or if so many are not kept, with how many are; nothing changes.
    """

    sandbox: str
    kernel: str
    cells: int = 1


class UndoReport(Value, frozen=True, kw_only=True, tag=True):
    """The memory after an undo."""

    kernel: KernelReport
    not_carried: str = ""
    """what of it no snapshot can carry: threads, tasks, sockets; empty if there was nothing"""


class BranchKernel(Request, frozen=True, kw_only=True):
    """A second kernel with the same memory in the same sandbox; the same request again gives the same one."""

    sandbox: str
    kernel: str
    branch: str
    """its id, which the caller chooses"""
    epoch: int
    """of its first memory"""
    wait_s: float = 30.0
    """for its turn among the cells"""


class BranchReport(Value, frozen=True, kw_only=True, tag=True):
    """A new branch."""

    kernel: KernelReport
    not_carried: str = ""


class CopyInto(Request, frozen=True, kw_only=True):
    """Copy files and variables of a kernel and its sandbox into another sandbox with a fresh kernel."""

    sandbox: str
    kernel: str
    to_sandbox: str
    to_kernel: str
    wait_s: float = 30.0


class CopyReport(Value, frozen=True, kw_only=True, tag=True):
    """What arrived."""

    carried: tuple[str, ...]
    """variables, sorted"""
    not_carried: dict[str, str]
    """the others, each with its reason"""
    files_note: str = ""
    """what is to be known about the files; empty if all arrived"""


class InterruptKernel(Request, frozen=True, kw_only=True):
    """Interrupt what runs, up to three times a second apart; nothing happens if nothing runs."""

    sandbox: str
    kernel: str
    cell: str | None = None
    """only if it is this one; which is looked at and done in one step"""


class ListVariables(Request, frozen=True, kw_only=True):
    """Names of the memory; waits for its turn in the queue, up to `wait_s`."""

    sandbox: str
    kernel: str
    most: int = 500
    wait_s: float = 10.0


class VariableList(Value, frozen=True, kw_only=True, tag=True):
    """Sorted by name."""

    variables: tuple[Variable, ...]


class AttachKernel(Request, frozen=True, kw_only=True):
    """Open a door for Jupyter clients of the host's machine."""

    sandbox: str
    kernel: str


class AttachReport(Value, frozen=True, kw_only=True, tag=True):
    """Where the door is."""

    connection_file: str
    info: dict[str, str | int]
    """what the file says: transport, ip, ports, key"""


class RunCell(Request, frozen=True, kw_only=True):
    """Put a cell into the queue of a kernel; the answer comes when it has ended, or after `wait_s`.

    The caller chooses the id; the same cell again is the same cell, and never runs twice.
    """

    sandbox: str
    kernel: str
    cell: str
    code: str
    limit_s: float
    store_history: bool = True
    wait_s: float = 0.0


class RunCommand(Request, frozen=True, kw_only=True):
    """Run a command line by bash, beside what the kernels do. Answered like a cell."""

    sandbox: str
    cell: str
    command: str
    limit_s: float
    cwd: str = "/home/user"
    kernel: str = "main"
    """the session's, of which the receipt tells"""
    epoch: int = 0
    """for the receipt when the kernel was never started"""
    wait_s: float = 0.0


class WaitCell(Request, frozen=True, kw_only=True):
    """How a cell or command is, after waiting up to `wait_s` for its end.

    Raises `cancelled` for one that was taken out of the queue.
    """

    sandbox: str
    cell: str
    wait_s: float = 0.0


class CellReport(Value, frozen=True, kw_only=True, tag=True):
    """How a cell or command is."""

    cell: str
    state: str
    """`waiting`, `running` or `ended`"""
    result: CellResult | None = None
    command_result: CommandResult | None = None


class ReadCell(Request, frozen=True, kw_only=True):
    """Pieces of a cell's or command's output from `offset` on; waits up to `wait_s` for something new."""

    sandbox: str
    cell: str
    offset: int = 0
    """0, or the `next_offset` of an earlier answer"""
    limit: int = 1024 * 1024
    """in bytes; one piece is always given"""
    wait_s: float = 0.0


class CellOutput(Value, frozen=True, kw_only=True, tag=True):
    """Pieces in the order they came."""

    pieces: tuple[Piece, ...]
    next_offset: int
    ended: bool
    """nothing more will come"""
    dropped_bytes: int
    """over what the spool keeps"""


class CancelCell(Request, frozen=True, kw_only=True):
    """Take a waiting cell out of the queue.

    Raises `conflict` for one that runs (interrupt it) or has ended.
    """

    sandbox: str
    cell: str


class InterruptCommand(Request, frozen=True, kw_only=True):
    """SIGINT to a command and its group; nothing happens if it has ended."""

    sandbox: str
    cell: str


class ForgetCell(Request, frozen=True, kw_only=True):
    """Drop the spool of one that has ended; nothing happens if there is none."""

    sandbox: str
    cell: str


class ListProcesses(Request, frozen=True, kw_only=True):
    """What runs in the background of a sandbox."""

    sandbox: str


class ProcessList(Value, frozen=True, kw_only=True, tag=True):
    """Oldest first."""

    processes: tuple[BackgroundProcess, ...]


AnyKernelRequest = (
    StartKernel | DescribeKernel | RestartKernel | InterruptKernel | ListVariables | AttachKernel
    | EndKernel | SetSnapshots | UndoCells | BranchKernel | CopyInto
    | RunCell | RunCommand | WaitCell | ReadCell | CancelCell | InterruptCommand | ForgetCell | ListProcesses
)  # fmt: skip
AnyKernelAnswer = (
    KernelReport | UndoReport | BranchReport | CopyReport | VariableList | AttachReport | CellReport | CellOutput
    | ProcessList
)  # fmt: skip
