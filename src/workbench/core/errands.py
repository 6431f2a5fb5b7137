"""Commands of our own in a session's sandbox: they leave no record, no output behind, and nothing in any history.

What they print was printed inside, by programs that the guest may have bent: it is data to be checked, never believed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from workbench.contracts.host import CellAddress, CommandOrder, SandboxHost, answer_lost, gone_reason, sandbox_gone
from workbench.core.places import ATTEMPTS, Places, never_stays
from workbench.core.work import WAIT_S, kernel_of
from workbench.errors import HostUnavailable, SandboxUnavailable, WorkbenchError
from workbench.model.execution import Command, CommandResult, Outcome
from workbench.model.ids import SessionId, new_cell_id
from workbench.model.session import Session

R = TypeVar("R")
# For one of them; they do little each.
LIMIT_S = 30.0
_STOP_S = 5.0
# For all that belong together: programs that the guest has bent could make each of hundreds take as long as it may.
MOST_S = 120.0
# Not those of the guest's own folders, which come first for its own commands. What is printed is checked all the same.
# `$all` is for the one that must be the kernel's own.
_OUR_PROGRAMS = "all=$PATH; PATH=/usr/bin:/bin; "


class Shell:
    """Runs command lines in the sandbox that a session has at this moment."""

    def __init__(self, host: SandboxHost, session: Session) -> None:
        self._host = host
        self._session = session
        self._spent_s = 0.0

    async def run(self, script: str, limit_s: float = LIMIT_S) -> CommandResult:
        """To its end, whatever that is.

        Raises:
            SandboxUnavailable: with a `gone_reason` if the sandbox was gone before; without, if this took too long.
        """
        if self._spent_s > MOST_S:
            raise self._too_slow(f"it took {self._spent_s:.0f} s so far")
        command = Command(id=new_cell_id(), command=_OUR_PROGRAMS + script, limit_s=limit_s).checked(limit_s)
        at = CellAddress(sandbox=self._session.sandbox, cell=command.id)
        try:
            end = await self._end_of(command, at)
        except Exception:
            raise
        except BaseException:
            # Called off. What clears up after it must not meet it still at work.
            with contextlib.suppress(WorkbenchError):
                await self._host.interrupt_command(at)
                await self._host.wait_command(at, _STOP_S)
            raise
        finally:
            with contextlib.suppress(WorkbenchError):
                await self._host.forget_cell(at)
        self._spent_s += end.receipt.wall_s
        if end.outcome is Outcome.LOST:
            raise _Died(sandbox_gone(self._session.sandbox, end.receipt.reason or "it ended"))
        if end.outcome in (Outcome.TIMED_OUT, Outcome.INTERRUPTED):
            raise self._too_slow(f"one step was ended after {end.receipt.wall_s:.0f} s")
        return end

    def _too_slow(self, why: str) -> SandboxUnavailable:
        session = self._session.spec.id
        return SandboxUnavailable(
            f"the sandbox of session {session!r} is too slow for this just now: {why}; ask again when less runs in it",
            {"session": session},
        )

    async def _end_of(self, command: Command, at: CellAddress) -> CommandResult:
        order = CommandOrder(at=kernel_of(self._session), command=command, epoch=self._session.epoch, wait_s=WAIT_S)
        try:
            end = await self._host.run_command(order)
        except HostUnavailable as problem:
            if not answer_lost(problem):
                raise
            # The same one again never runs twice.
            end = await self._host.run_command(order)
        for _ in range(ATTEMPTS):
            if end is not None:
                return end
            end = await self._host.wait_command(at, WAIT_S)
        raise HostUnavailable("the workbench host does not end a command of its own in time; ask again")


class Errands:
    """Finds or makes the sandbox for them."""

    def __init__(self, host: SandboxHost, places: Places) -> None:
        self._host = host
        self._places = places

    async def run(self, session: SessionId, work: Callable[[Shell], Awaitable[R]]) -> R:
        """`work`, with a shell in the session's sandbox. It is begun anew only if the sandbox was gone before.

        Raises:
            NotFound: no such session.
            SandboxUnavailable: with a `gone_reason` if the sandbox ended under it.
        """
        used = await self._places.enter(session)
        for _ in range(ATTEMPTS):
            used = await self._places.ready(used, kernel=False)
            try:
                return await work(Shell(self._host, used))
            except _Died as died:
                # Not again: it may be what ended the sandbox.
                raise died.problem from None
            except SandboxUnavailable as problem:
                if (reason := gone_reason(problem)) is None:
                    raise
                used = await self._places.lost(used, reason)
        raise never_stays(used)


class _Died(Exception):
    """The sandbox ended under a command."""

    def __init__(self, problem: SandboxUnavailable) -> None:
        super().__init__(problem.message)
        self.problem = problem


def last_words(end: CommandResult) -> str:
    """Why a program says that it failed: what its last line has after the last colon."""
    lines = end.stderr.text.strip().splitlines()
    return lines[-1].rsplit(": ", 1)[-1].strip() if lines else f"exit code {end.exit_code}"
