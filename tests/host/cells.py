"""Cells in real kernels of real hosts, as a client asks for them."""

from __future__ import annotations

import asyncio

from tests.host.support import WAIT_S

from workbench.host_client.connection import HostConnection
from workbench.model.execution import CellResult, CommandResult, Outcome, Piece, PieceKind
from workbench.model.ids import new_cell_id, new_sandbox_id
from workbench.wire import host as wire
from workbench.wire import kernels

KERNEL = "main"
# After which even a snapshot that took the kernel a tenth of a second may be followed by another.
_WHILE_S = 1.0


async def make_kernel(
    host: HostConnection, epoch: int = 1, start_up: str = "", snapshots: bool = True, **sandbox_fields: object
) -> str:
    """A sandbox with a kernel; its id."""
    sandbox = new_sandbox_id()
    create = wire.CreateSandbox(sandbox=sandbox, kernel=True, **sandbox_fields)  # type: ignore[arg-type]
    await host.ask(create, wire.SandboxReport)
    start = kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=epoch, start_up=start_up, snapshots=snapshots)
    await host.ask(start, kernels.KernelReport)
    return sandbox


def cell(
    sandbox: str, code: str, limit_s: float = WAIT_S, wait_s: float = WAIT_S, kernel: str = KERNEL
) -> kernels.RunCell:
    """A request under an id that nobody has."""
    return kernels.RunCell(
        sandbox=sandbox, kernel=kernel, cell=new_cell_id(), code=code, limit_s=limit_s, wait_s=wait_s
    )


async def run(
    host: HostConnection, sandbox: str, code: str, limit_s: float = WAIT_S, kernel: str = KERNEL
) -> CellResult:
    """To its end."""
    return await result_of(host, cell(sandbox, code, limit_s, kernel=kernel))


async def result_of(host: HostConnection, request: kernels.RunCell) -> CellResult:
    """To its end, however long that takes within bounds."""
    report = await host.ask(request, kernels.CellReport)
    if report.result is None:
        waiting = kernels.WaitCell(sandbox=request.sandbox, cell=request.cell, wait_s=WAIT_S)
        report = await host.ask(waiting, kernels.CellReport)
    assert report.result is not None, report.state
    return report.result


async def begin(host: HostConnection, sandbox: str, code: str, kernel: str = KERNEL) -> kernels.RunCell:
    """Send it, and return once it has printed something."""
    request = cell(sandbox, code, wait_s=0.0, kernel=kernel)
    await host.ask(request, kernels.CellReport)
    await host.ask(kernels.ReadCell(sandbox=sandbox, cell=request.cell, wait_s=WAIT_S), kernels.CellOutput)
    return request


async def all_pieces(host: HostConnection, sandbox: str, identity: str) -> list[Piece]:
    """From the spool, from its beginning."""
    pieces: list[Piece] = []
    offset = 0
    while True:
        request = kernels.ReadCell(sandbox=sandbox, cell=identity, offset=offset, wait_s=WAIT_S)
        output = await host.ask(request, kernels.CellOutput)
        pieces += output.pieces
        offset = output.next_offset
        if output.ended:
            return pieces


def text_of(pieces: list[Piece], kind: PieceKind = PieceKind.STDOUT) -> str:
    return "".join(piece.text for piece in pieces if piece.kind is kind)


async def value_of(host: HostConnection, sandbox: str, code: str, kernel: str = KERNEL) -> str:
    """The text of the last value of a cell that succeeds."""
    result = await run(host, sandbox, code, kernel=kernel)
    assert result.error is None, result.error
    assert result.outcome is Outcome.OK, result.explanation
    return result.results.text


async def described(host: HostConnection, sandbox: str, kernel: str = KERNEL) -> kernels.KernelReport:
    return await host.ask(kernels.DescribeKernel(sandbox=sandbox, kernel=kernel), kernels.KernelReport)


async def at_rest(host: HostConnection, sandbox: str, kernel: str = KERNEL) -> kernels.KernelReport:
    """The kernel once it has done what it does between cells."""
    await host.ask(kernels.ListVariables(sandbox=sandbox, kernel=kernel, wait_s=WAIT_S), kernels.VariableList)
    return await described(host, sandbox, kernel)


async def until_affordable(host: HostConnection, sandbox: str, kernel: str = KERNEL) -> None:
    """On a busy machine a snapshot may have been dear, and the next one is not taken before a while has passed."""
    if "took the kernel" in (await at_rest(host, sandbox, kernel)).snapshots.reason:
        await asyncio.sleep(_WHILE_S)


async def past_epoch(host: HostConnection, sandbox: str, epoch: int, kernel: str = KERNEL) -> kernels.KernelReport:
    """The kernel once its memory of that epoch is gone."""
    async with asyncio.timeout(WAIT_S):
        while (report := await described(host, sandbox, kernel)).epoch == epoch:
            await asyncio.sleep(0.01)
    return report


async def undo(host: HostConnection, sandbox: str, cells: int = 1, kernel: str = KERNEL) -> kernels.UndoReport:
    request = kernels.UndoCells(sandbox=sandbox, kernel=kernel, cells=cells)
    return await host.ask(request, kernels.UndoReport)


async def branch(
    host: HostConnection, sandbox: str, name: str, kernel: str = KERNEL, epoch: int = 1
) -> kernels.BranchReport:
    request = kernels.BranchKernel(sandbox=sandbox, kernel=kernel, branch=name, epoch=epoch)
    return await host.ask(request, kernels.BranchReport)


async def command(host: HostConnection, sandbox: str, text: str) -> CommandResult:
    """By bash, to its end."""
    request = kernels.RunCommand(sandbox=sandbox, cell=new_cell_id(), command=text, limit_s=WAIT_S, wait_s=WAIT_S)
    report = await host.ask(request, kernels.CellReport)
    assert report.command_result is not None, report.state
    return report.command_result
