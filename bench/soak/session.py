"""One session of the soak and a model of it: what it must answer is known before it is asked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bench.sessions import KERNEL, WHO, outside_pid
from bench.soak.tally import CELLS, COMMANDS, SESSIONS, Tally
from workbench.host_client.connection import HostConnection
from workbench.model.execution import CellResult, CommandResult, MemoryState, Outcome
from workbench.model.ids import new_cell_id, new_sandbox_id
from workbench.wire import host as wire
from workbench.wire import kernels
from workbench.wire.values import Value

# What a request waits for at the host, and what it may take in all: beyond that it hangs.
WAIT_S, BOUND_S = 60.0, 90.0
_START_UP = "seed = 7"

A = TypeVar("A", bound=Value)


class Hang(Exception):
    """A request went beyond its bound."""


@dataclass(slots=True)
class Memory:
    """What the kernel must hold now."""

    epoch: int
    base: dict[str, object]
    """what start-up code makes in every memory"""
    names: dict[str, object] = field(default_factory=dict)
    """a name means another object if its value here differs"""
    count: int = 0
    is_told: bool = True
    """nothing was lost, or a receipt has said so"""
    is_dying: bool = False
    """it was killed from outside; the host may or may not have noticed"""

    def lose(self, *, told: bool) -> None:
        """There is a new one."""
        self.epoch += 1
        self.count = 0
        self.names = dict(self.base)
        self.is_told, self.is_dying = told, False


class SoakSession:
    """Opened and closed by a lane. Every method checks what comes back."""

    def __init__(self, connect: Callable[[], Awaitable[HostConnection]], tally: Tally, luck: random.Random) -> None:
        self._connect = connect
        self._connection: HostConnection | None = None
        self.tally = tally
        self.luck = luck
        self.sandbox = new_sandbox_id()
        start_up = luck.random() < 0.3
        base: dict[str, object] = {"seed": 7} if start_up else {}
        self.memory = Memory(luck.randint(1, 9), base, dict(base))
        self.files: dict[str, str] = {}
        self.is_closed = False
        self._start_up = _START_UP if start_up else ""

    async def open(self) -> None:
        """A sandbox and its kernel."""
        await self.ask(wire.CreateSandbox(sandbox=self.sandbox, kernel=self.luck.random() < 0.8), wire.SandboxReport)
        # Nothing is kept here, and every loss is a loss; the soak of what is kept is in `state`.
        start = kernels.StartKernel(
            sandbox=self.sandbox, kernel=KERNEL, epoch=self.memory.epoch, start_up=self._start_up, snapshots=False
        )
        report = await self.ask(start, kernels.KernelReport)
        self.expect("epoch of a new kernel", report.epoch, self.memory.epoch)
        self.expect("error of its start-up", report.start_up_error, "")
        self.tally.done[SESSIONS] += 1

    async def close(self) -> None:
        """End the sandbox. May be called twice."""
        if not self.is_closed:
            self.is_closed = True
            await self.ask(wire.CloseSandbox(sandbox=self.sandbox), wire.Done)

    async def leave(self) -> None:
        """As a client that goes away; the next request comes from another one. May be called twice."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    async def ask(self, request: wire.AnyRequest, answer: type[A]) -> A:
        """Within bounds."""
        try:
            async with asyncio.timeout(BOUND_S):
                if self._connection is None:
                    self._connection = await self._connect()
                return await self._connection.ask(request, answer)
        except TimeoutError:
            raise Hang(f"{type(request).__name__} took longer than {BOUND_S:g} s: {request}") from None

    def expect(self, what: str, seen: object, right: object) -> None:
        """Count it if it is not so."""
        if seen != right:
            self.tally.wrong.append(f"{self.sandbox}: {what}: {seen!r} instead of {right!r}"[:600])

    # Cells

    def cell_request(self, code: str, limit_s: float = WAIT_S, wait_s: float = WAIT_S) -> kernels.RunCell:
        """A new cell."""
        return kernels.RunCell(
            sandbox=self.sandbox, kernel=KERNEL, cell=new_cell_id(), code=code, limit_s=limit_s, wait_s=wait_s
        )

    async def cell(
        self,
        code: str,
        assigns: dict[str, object] | None = None,
        *,
        outcome: Outcome = Outcome.OK,
        limit_s: float = WAIT_S,
    ) -> CellResult:
        """Run one that ends by itself, or at its limit, with the memory intact; its result, checked."""
        for _ in range(2):
            request = self.cell_request(code, limit_s)
            result = self.ended(await self.ask(request, kernels.CellReport))
            if not self.memory.is_dying:
                break
            if result.outcome is not Outcome.LOST:
                self.memory.lose(told=False)
                break
            # The kill was later than the beginning of this very cell.
            self.lost(result)
        self.check(code, result, assigns or {}, outcome)
        return result

    def ended(self, report: kernels.CellReport) -> CellResult:
        """The result of a cell that has one.

        Raises:
            Hang: it has none although it was waited for longer than its limit.
        """
        if report.result is None:
            raise Hang(f"a cell is still {report.state} after {WAIT_S:g} s: {report.cell}")
        self.tally.done[CELLS] += 1
        return report.result

    def lost(self, result: CellResult, outcome: Outcome = Outcome.LOST) -> None:
        """It took the memory with it, and says so."""
        receipt = result.receipt
        self.expect("outcome of a cell that lost its kernel", result.outcome, outcome)
        self.expect("epoch after a loss", receipt.epoch, self.memory.epoch + 1)
        self.expect("state after a loss", receipt.state, MemoryState.LOST)
        self.expect("a loss has a reason", bool(receipt.reason and result.explanation), True)
        self.memory.lose(told=True)

    def check(self, code: str, result: CellResult, assigns: dict[str, object], outcome: Outcome) -> None:
        """Against the model, which follows."""
        memory, receipt = self.memory, result.receipt
        memory.count += 1
        state = MemoryState.INTACT if memory.is_told else MemoryState.LOST
        memory.is_told = True
        added = tuple(sorted(name for name in assigns if name not in memory.names))
        rebound = tuple(sorted(n for n, value in assigns.items() if n in memory.names and memory.names[n] != value))
        memory.names |= assigns
        about = f"of {code[:80]!r} ({result.error.name if result.error else ''} {result.explanation})"
        self.expect(f"outcome {about}", result.outcome, outcome)
        self.expect(f"epoch {about}", receipt.epoch, memory.epoch)
        self.expect(f"execution count {about}", receipt.execution_count, memory.count)
        self.expect(f"state {about}", receipt.state, state)
        self.expect(f"added names {about}", receipt.added, added)
        self.expect(f"rebound names {about}", receipt.rebound, rebound)
        self.expect(f"removed names {about}", receipt.removed, ())

    async def begun(self, request: kernels.RunCell) -> None:
        """Have it in the queue and wait until its code has printed something: from there on it surely runs."""
        await self.ask(request, kernels.CellReport)
        read = kernels.ReadCell(sandbox=self.sandbox, cell=request.cell, wait_s=WAIT_S)
        page = await self.ask(read, kernels.CellOutput)
        self.expect("first output of a cell", "".join(piece.text for piece in page.pieces)[:5], "begun")

    async def end_of(self, request: kernels.RunCell) -> CellResult:
        """Of one that was begun."""
        wait = kernels.WaitCell(sandbox=self.sandbox, cell=request.cell, wait_s=WAIT_S)
        return self.ended(await self.ask(wait, kernels.CellReport))

    async def command(self, line: str) -> CommandResult:
        """By bash."""
        request = kernels.RunCommand(
            sandbox=self.sandbox, cell=new_cell_id(), command=line, limit_s=WAIT_S, wait_s=WAIT_S
        )
        report = await self.ask(request, kernels.CellReport)
        if report.command_result is None:
            raise Hang(f"a command is still {report.state} after {WAIT_S:g} s: {line}")
        self.tally.done[COMMANDS] += 1
        if not self.memory.is_dying:
            self.expect("epoch of a command", report.command_result.receipt.epoch, self.memory.epoch)
        return report.command_result

    async def kernel_pid(self) -> int | None:
        """As the machine counts."""
        result = await self.cell(WHO, {"os": "module"})
        inside, namespace = (int(number) for number in result.results.text.strip("()").split(","))
        return await asyncio.to_thread(outside_pid, inside, namespace)
