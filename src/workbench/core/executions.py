"""Running one cell or command: submit it, hand on what it says, and give its end, also when the place ended under it.

If it began there is a result. It is submitted under an id that we chose, so that a lost answer is asked for again, and
nothing ever runs twice; it goes into a second sandbox only if the first surely never took it.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from workbench.contracts.host import (
    CellAddress,
    CellOrder,
    CommandOrder,
    SandboxHost,
    answer_lost,
    gone_reason,
    never_began,
)
from workbench.core.places import ATTEMPTS, Places, kernel_of, never_stays
from workbench.core.requests import Follower, RunCell, RunCommand
from workbench.errors import HostUnavailable, NotFound, SandboxUnavailable, WorkbenchError
from workbench.model.execution import Cell, CellResult, Command, CommandResult, MemoryState, Outcome, Receipt
from workbench.model.ids import CellId, SessionId
from workbench.model.session import Session

# The most that a host waits for one request.
_WAIT_S = 60.0
# The host keeps what ended for who asks late, and makes room by itself; only what is large is dropped at once.
_KEPT_CHARACTERS = 1_000_000

R = TypeVar("R", CellResult, CommandResult)
R_co = TypeVar("R_co", CellResult, CommandResult, covariant=True)


class _Work(Protocol[R_co]):
    """A cell or a command, on its way."""

    @property
    def id(self) -> CellId: ...
    @property
    def needs_kernel(self) -> bool: ...
    async def submit(self, session: Session, wait_s: float) -> R_co | None: ...
    async def wait(self, at: CellAddress) -> R_co | None: ...
    def lost(self, explanation: str, receipt: Receipt) -> R_co: ...


class Executions:
    """Runs cells and commands."""

    def __init__(self, host: SandboxHost, places: Places) -> None:
        self._host = host
        self._places = places

    async def run_cell(self, request: RunCell) -> CellResult:
        """To its end."""
        cell = Cell(
            id=request.cell, code=request.code, limit_s=request.limit_s, store_history=request.store_history
        ).checked(math.inf)
        return await self._run(request.session, _CellWork(self._host, cell), request.follower)

    async def run_command(self, request: RunCommand) -> CommandResult:
        """To its end."""
        command = Command(id=request.cell, command=request.command, limit_s=request.limit_s, cwd=request.cwd).checked(
            math.inf
        )
        return await self._run(request.session, _CommandWork(self._host, command), request.follower)

    async def _run(self, name: SessionId, work: _Work[R], follower: Follower | None) -> R:
        session = await self._places.use(name)
        for _ in range(ATTEMPTS):
            session = await self._places.ready(session, kernel=work.needs_kernel)
            try:
                result = await self._submit(session, work, 0.0 if follower is not None else _WAIT_S)
                return await self._finish(session, work, result, follower)
            except SandboxUnavailable as problem:
                # Nothing ran: what may have run has a result.
                if (reason := gone_reason(problem)) is None:
                    raise
                session = await self._places.lost(session, reason)
            except NotFound:
                # Nor here: there is no such kernel.
                session = await self._places.without_kernel(session)
        raise never_stays(session)

    async def _submit(self, session: Session, work: _Work[R], wait_s: float) -> R | None:
        try:
            return await work.submit(session, wait_s)
        except HostUnavailable as problem:
            if not answer_lost(problem):
                raise
        try:
            return await work.submit(session, wait_s)
        except WorkbenchError as problem:
            if not (_place_failed(problem) or isinstance(problem, NotFound)):
                raise
            return await self._lost(session, work, problem)

    async def _finish(self, session: Session, work: _Work[R], result: R | None, follower: Follower | None) -> R:
        at = CellAddress(sandbox=session.sandbox, cell=work.id)
        try:
            if follower is not None:
                await self._follow(at, follower)
            while result is None:
                result = await work.wait(at)
        except WorkbenchError as problem:
            if not (_place_failed(problem) or isinstance(problem, NotFound)):
                raise
            # What it ended with may be known although its output is not there any more.
            result = result or await self._lost(session, work, problem)
        settled = await self._settled(session, result)
        if result.stdout.characters + result.stderr.characters > _KEPT_CHARACTERS:
            with contextlib.suppress(WorkbenchError):
                await self._host.forget_cell(at)
        return settled

    async def _follow(self, at: CellAddress, follower: Follower) -> None:
        offset, ended = 0, False
        while not ended:
            page = await self._host.read_output(at, offset, _WAIT_S)
            for piece in page.pieces:
                await follower.on_piece(piece)
            offset, ended = page.next_offset, page.ended
            if ended and page.dropped_bytes:
                await follower.on_dropped(page.dropped_bytes)

    async def _settled(self, session: Session, result: R) -> R:
        """What the receipt says is kept before the caller has it."""
        receipt = result.receipt
        if result.outcome is Outcome.LOST:
            reason = await self._places.gone(session)
            if reason is not None:
                moved = await self._places.lost(session, reason, told=receipt)
                told = replace(receipt, epoch=moved.epoch, state=MemoryState.LOST, reason=receipt.reason or reason)
                return replace(result, receipt=told)
        await self._places.settle(session, receipt)
        return result

    async def _lost(self, session: Session, work: _Work[R], problem: WorkbenchError) -> R:
        """The result of something whose end nobody saw."""
        reason = gone_reason(problem)
        if reason is None:
            # A host that does not answer may still be at it: nothing is written down about its memory.
            receipt = Receipt(epoch=session.epoch, state=MemoryState.LOST, reason=f"not known: {problem.message}")
            return work.lost(_UNKNOWN.format(problem.message), receipt)
        return work.lost(_ENDED.format(reason), Receipt(epoch=session.epoch, state=MemoryState.LOST, reason=reason))


_ENDED = (
    "The sandbox is gone: {}. Variables, background processes and files outside /mnt/files are lost, and what was "
    "printed last may be missing; /mnt/files is as it was left. Whether everything was done is not known: look at "
    "/mnt/files, then run again what is needed. The next call gets a new sandbox."
)
_UNKNOWN = (
    "The workbench host of this machine does not answer ({}), so how it ended, or whether it ended, is not known. "
    "`workbench host status` tells how the host is."
)


def _place_failed(problem: WorkbenchError) -> bool:
    """And took along what nobody can tell any more."""
    gone = gone_reason(problem) is not None and not never_began(problem)
    return gone or isinstance(problem, HostUnavailable)


@dataclass(frozen=True, slots=True)
class _CellWork:
    host: SandboxHost
    cell: Cell

    @property
    def id(self) -> CellId:
        return self.cell.id

    @property
    def needs_kernel(self) -> bool:
        return True

    async def submit(self, session: Session, wait_s: float) -> CellResult | None:
        return await self.host.run_cell(CellOrder(at=kernel_of(session), cell=self.cell, wait_s=wait_s))

    async def wait(self, at: CellAddress) -> CellResult | None:
        return await self.host.wait_cell(at, _WAIT_S)

    def lost(self, explanation: str, receipt: Receipt) -> CellResult:
        return CellResult(cell=self.id, outcome=Outcome.LOST, explanation=explanation, receipt=receipt)


@dataclass(frozen=True, slots=True)
class _CommandWork:
    host: SandboxHost
    command: Command

    @property
    def id(self) -> CellId:
        return self.command.id

    @property
    def needs_kernel(self) -> bool:
        return False

    async def submit(self, session: Session, wait_s: float) -> CommandResult | None:
        order = CommandOrder(at=kernel_of(session), command=self.command, epoch=session.epoch, wait_s=wait_s)
        return await self.host.run_command(order)

    async def wait(self, at: CellAddress) -> CommandResult | None:
        return await self.host.wait_command(at, _WAIT_S)

    def lost(self, explanation: str, receipt: Receipt) -> CommandResult:
        return CommandResult(
            command=self.id, outcome=Outcome.LOST, exit_code=None, explanation=explanation, receipt=receipt
        )
