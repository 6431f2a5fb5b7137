"""A cell or a command on its way: how it is checked, sent, waited for, and told if nobody saw its end."""

from __future__ import annotations

import hashlib
import json
import math

from workbench.contracts.host import CellAddress, CellOrder, CommandOrder, KernelAddress, SandboxHost
from workbench.core.requests import RunCell, RunCommand
from workbench.errors import InvalidRequest
from workbench.model.execution import Cell, CellResult, Command, CommandResult, Outcome, Receipt
from workbench.model.ids import SandboxId, cell_id
from workbench.model.records import CellKind, CellRecord
from workbench.model.session import Session

Run = RunCell | RunCommand
Asked = Cell | Command
End = CellResult | CommandResult

# The most that a host waits for one request.
WAIT_S = 60.0
# Where a cell is that surely never began in its sandbox, until it is sent to the next: nothing can be concluded for it
# from the end of either.
NOWHERE = SandboxId("sb-nowhere")
_MOST_KEY = 255


def asked_for(request: Run) -> Asked:
    """What the host is to run.

    Raises:
        InvalidRequest: it cannot be run, or could not be found again.
    """
    if len(request.idempotency_key) > _MOST_KEY or not request.idempotency_key.isprintable():
        raise InvalidRequest(f"an idempotency key is one line of at most {_MOST_KEY} characters")
    said = request.progress
    try:
        "".join((said.thought, said.current_step, said.current_step_metric)).encode()
    except UnicodeEncodeError as problem:
        raise InvalidRequest(f"thought or step is not text in UTF-8: {problem.reason}") from None
    name = cell_id(request.cell)
    if isinstance(request, RunCell):
        return Cell(id=name, code=request.code, limit_s=request.limit_s, store_history=request.store_history).checked(
            math.inf
        )
    return Command(id=name, command=request.command, limit_s=request.limit_s, cwd=request.cwd).checked(math.inf)


def digest_of(asked: Asked) -> str:
    """By which two requests are known to be the same; not of what they say about themselves."""
    told: list[str | float | bool] = [asked.limit_s]
    if isinstance(asked, Cell):
        told += [CellKind.CELL, asked.code, asked.store_history]
    else:
        told += [CellKind.COMMAND, asked.command, asked.cwd]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def record_of(request: Run, asked: Asked, session: Session, at: str) -> CellRecord:
    """As it is written down before it is sent."""
    is_cell = isinstance(asked, Cell)
    return CellRecord(
        id=asked.id,
        session=session.spec.id,
        kind=CellKind.CELL if is_cell else CellKind.COMMAND,
        code=asked.code if isinstance(asked, Cell) else asked.command,
        limit_s=asked.limit_s,
        progress=request.progress,
        idempotency_key=request.idempotency_key,
        digest=digest_of(asked),
        sandbox=session.sandbox,
        created_at=at,
    )


def address_of(record: CellRecord) -> CellAddress:
    """Where it was sent, and where its output is."""
    return CellAddress(sandbox=record.sandbox, cell=record.id)


def kernel_of(session: Session) -> KernelAddress:
    """Where its kernel is."""
    return KernelAddress(sandbox=session.sandbox, kernel=session.kernel)


async def send(host: SandboxHost, session: Session, asked: Asked, wait_s: float) -> End | None:
    """To the session's sandbox; its end if that comes within `wait_s`."""
    at = kernel_of(session)
    if isinstance(asked, Cell):
        return await host.run_cell(CellOrder(at=at, cell=asked, wait_s=wait_s))
    return await host.run_command(CommandOrder(at=at, command=asked, epoch=session.epoch, wait_s=wait_s))


async def wait(host: SandboxHost, record: CellRecord, wait_s: float) -> End | None:
    """Its end if that comes within `wait_s`."""
    at, bounded_s = address_of(record), min(wait_s, WAIT_S)
    if record.kind is CellKind.CELL:
        return await host.wait_cell(at, bounded_s)
    return await host.wait_command(at, bounded_s)


def lost(record: CellRecord, explanation: str, receipt: Receipt) -> End:
    """The result of something whose end nobody saw."""
    if record.kind is CellKind.CELL:
        return CellResult(cell=record.id, outcome=Outcome.LOST, explanation=explanation, receipt=receipt)
    return CommandResult(
        command=record.id, outcome=Outcome.LOST, exit_code=None, explanation=explanation, receipt=receipt
    )
