"""Cells in real kernels of real hosts, as a client asks for them."""

from __future__ import annotations

from tests.host.support import WAIT_S

from workbench.host_client.connection import HostConnection
from workbench.model.execution import CellResult, Piece, PieceKind
from workbench.model.ids import new_cell_id, new_sandbox_id
from workbench.wire import host as wire
from workbench.wire import kernels

KERNEL = "main"


async def make_kernel(host: HostConnection, epoch: int = 1, **sandbox_fields: object) -> str:
    """A sandbox with a kernel; its id."""
    sandbox = new_sandbox_id()
    create = wire.CreateSandbox(sandbox=sandbox, kernel=True, **sandbox_fields)  # type: ignore[arg-type]
    await host.ask(create, wire.SandboxReport)
    await host.ask(kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=epoch), kernels.KernelReport)
    return sandbox


def cell(sandbox: str, code: str, limit_s: float = WAIT_S, wait_s: float = WAIT_S) -> kernels.RunCell:
    """A request under an id that nobody has."""
    return kernels.RunCell(
        sandbox=sandbox, kernel=KERNEL, cell=new_cell_id(), code=code, limit_s=limit_s, wait_s=wait_s
    )


async def run(host: HostConnection, sandbox: str, code: str, limit_s: float = WAIT_S) -> CellResult:
    """To its end."""
    return await result_of(host, cell(sandbox, code, limit_s))


async def result_of(host: HostConnection, request: kernels.RunCell) -> CellResult:
    """To its end, however long that takes within bounds."""
    report = await host.ask(request, kernels.CellReport)
    if report.result is None:
        waiting = kernels.WaitCell(sandbox=request.sandbox, cell=request.cell, wait_s=WAIT_S)
        report = await host.ask(waiting, kernels.CellReport)
    assert report.result is not None, report.state
    return report.result


async def begin(host: HostConnection, sandbox: str, code: str) -> kernels.RunCell:
    """Send it, and return once it has printed something."""
    request = cell(sandbox, code, wait_s=0.0)
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
