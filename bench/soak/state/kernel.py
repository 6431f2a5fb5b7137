"""One kernel of the soak and what it must hold: every receipt is checked against the lane's own memories."""

from __future__ import annotations

import re
from collections import deque
from typing import NoReturn

from bench.soak.session import Hang
from bench.soak.state.model import CRASHES, Ending, Memory, Order
from bench.soak.state.place import Fault, Place
from bench.soak.tally import CELLS
from workbench.errors import Cancelled, KernelUnavailable, NotFound, SandboxUnavailable, WorkbenchError
from workbench.model.execution import CellResult, MemoryState, Outcome, Receipt
from workbench.wire import kernels

WAIT_S = 60.0
# No cell of ours should take so long, also on a machine that has much else to do.
SLOW_S = 25.0
_TRAIL = 14
_DEADLY = (*CRASHES, Ending.BOMB, Ending.STUBBORN)
_FINISHED: dict[Ending, tuple[Outcome, ...]] = {
    Ending.RETURNS: (Outcome.OK,),
    Ending.RAISES: (Outcome.RAISED,),
    Ending.WAITS: (Outcome.INTERRUPTED, Outcome.TIMED_OUT),
    # On a busy machine its limit may come before it has begun to be stubborn.
    Ending.STUBBORN: (Outcome.TIMED_OUT,),
    # By a MemoryError, if the system says no before the limit is met.
    Ending.BOMB: (Outcome.RAISED,),
}
_LINES = 3
_TWICE_INTERRUPTED = "Unexpected exception formatting exception"


class Gone(Exception):
    """Nothing more can be said of this kernel: its sandbox was killed, and it was told."""


class StateKernel:
    """Driven by one lane at a time."""

    def __init__(self, place: Place, name: str, epoch: int, now: Memory, history: dict[int, Memory]) -> None:
        self.place = place
        self.name = name
        self.epoch = epoch
        self.now = now
        self.history = {0: Memory.new(start_up=place.has_start_up), **history, now.count: now}
        """by count: what a restore may go back to"""
        self.kills = 0
        """deaths that no receipt has told yet, at most"""
        self.is_dead = False
        """it was killed for certain: the next receipt must tell of a loss"""
        self.is_shot = False
        """the same for the cell that runs"""
        self.is_emptied = False
        """by request: the next receipt must tell that all is lost"""
        self.is_unsure = False
        """a kill and an undo or a branch may have met: the next receipt's count tells which memory it is"""
        self.keeps = True
        """snapshots are on"""
        self.safe: int | None = None
        """the count of a memory that is kept, as the last receipt had it"""
        self.pid = 0
        """inside"""
        self.trail: deque[str] = deque(maxlen=_TRAIL)

    def note(self, line: str) -> None:
        """For whoever reads of a fault."""
        self.trail.append(line)

    def fault(self, what: str) -> NoReturn:
        """What cannot be."""
        raise Fault(self.story(what))

    def story(self, what: str) -> str:
        """With what was before."""
        now = f"expected epoch {self.epoch}, count {self.now.count}, kills {self.kills}, keeps {self.keeps}"
        about = f"start-up {self.place.has_start_up}, rough {self.place.is_rough}, unsure {self.is_unsure}"
        trail = "".join(f"\n      {line}" for line in self.trail)
        return f"{self.place.seed} {self.place.sandbox} {self.name}: {what}\n    {now}, {about}; before:{trail}"

    def expect(self, what: str, seen: object, right: object) -> None:
        """Or it is a fault."""
        if seen != right:
            self.fault(f"{what}: {seen!r} instead of {right!r}")

    # Cells

    def request(self, order: Order, wait_s: float = WAIT_S) -> kernels.RunCell:
        """On the wire."""
        self.place.sent.add(order.cell)
        return kernels.RunCell(
            sandbox=self.place.sandbox,
            kernel=self.name,
            cell=order.cell,
            code=order.code,
            limit_s=order.limit_s,
            wait_s=wait_s,
        )

    async def run(self, order: Order) -> CellResult | None:
        """To its end, checked; None if it was refused because of a kill."""
        try:
            report = await self.place.ask(self.request(order, SLOW_S), kernels.CellReport)
        except WorkbenchError as problem:
            self.refused(order, problem)
            return None
        if report.result is None:
            self.note(f"{order}: {report.state} after {SLOW_S:g} s: {self._processes()}")
            await self.end_of(order)
            raise Hang(self.story(f"{order} took longer than {SLOW_S:g} s"))
        return self.take(order, report)

    async def begin(self, order: Order) -> bool:
        """Until it has said all that it will; False if it never will."""
        try:
            await self.place.ask(self.request(order, wait_s=0), kernels.CellReport)
            text, offset, ended = "", 0, False
            while text.count("\n") < _LINES and not ended:
                read = kernels.ReadCell(sandbox=self.place.sandbox, cell=order.cell, offset=offset, wait_s=WAIT_S)
                page = await self.place.ask(read, kernels.CellOutput)
                text += "".join(piece.text for piece in page.pieces)
                offset, ended = page.next_offset, page.ended
        except WorkbenchError as problem:
            self.refused(order, problem)
            return False
        if not ended:
            self.pid = int(text.split()[0])
        return not ended

    async def end_of(self, order: Order) -> CellResult | None:
        """Of one that was sent before."""
        wait = kernels.WaitCell(sandbox=self.place.sandbox, cell=order.cell, wait_s=WAIT_S)
        try:
            return self.take(order, await self.place.ask(wait, kernels.CellReport))
        except WorkbenchError as problem:
            self.refused(order, problem)
            return None

    def refused(self, order: Order, problem: WorkbenchError) -> None:
        """Right only after a kill; it must not have run then."""
        self.note(f"{order}: {type(problem).__name__}: {problem.message}")
        if self.place.is_doomed and isinstance(problem, Cancelled | KernelUnavailable | SandboxUnavailable | NotFound):
            raise Gone
        if not isinstance(problem, KernelUnavailable) or not (self.place.is_rough or self.kills):
            self.fault(f"{order} was refused")
        self.place.never_began.add(order.cell)
        self.place.tally.done["cells refused after a kill"] += 1

    def take(self, order: Order, report: kernels.CellReport) -> CellResult:
        """Against the model, which follows.

        Raises:
            Hang: it has no result although it was waited for longer than its limit.
            Gone: the sandbox ended under it.
        """
        result = report.result
        if result is None:
            raise Hang(self.story(f"{order} is still {report.state} after {WAIT_S:g} s: {self._processes()}"))
        receipt = result.receipt
        self.note(
            f"{order}: {result.outcome}, {receipt.state}, epoch {receipt.epoch}, count {receipt.execution_count}, "
            f"{receipt.snapshot}, {receipt.reason!r}"
        )
        self.place.tally.done[CELLS] += 1
        self.place.tally.done[f"receipts: {receipt.state}"] += 1
        # A cell that came to an end of its own has one; one that its kernel was lost under has none.
        is_lost = not receipt.working_folder
        self._check_epoch(order, receipt, is_lost=is_lost)
        if not self.keeps:
            self.expect("snapshots of a kernel that keeps none", receipt.snapshot.kept, 0)
        if is_lost:
            self._lost(order, result)
        else:
            self._finished(order, result)
        self.kills = max(0, self.kills - (receipt.epoch - self.epoch))
        self.epoch = receipt.epoch
        self.is_dead = self.is_shot = self.is_emptied = self.is_unsure = False
        return result

    def _processes(self) -> str:
        return self.place.processes.told() if self.place.processes else "nobody knows its processes"

    def _check_epoch(self, order: Order, receipt: Receipt, *, is_lost: bool) -> None:
        passed = receipt.epoch - self.epoch
        most = self.kills + (order.ending in _DEADLY) + self.is_shot + self.place.is_doomed
        least = max(is_lost, self.is_dead, self.is_shot, self.is_emptied)
        if passed < least or (passed > most and not self.place.is_rough):
            self.fault(f"epoch {receipt.epoch}, which is not {least} to {most} more than {self.epoch}")

    def _finished(self, order: Order, result: CellResult) -> None:
        receipt = result.receipt
        self.expect("whether it can end so", result.outcome in _FINISHED.get(order.ending, ()), True)
        base = self._base(receipt)
        after = base.after(order)
        self.expect("execution count", receipt.execution_count, after.count)
        lines = result.stdout.text.splitlines()
        if order.ending in (Ending.WAITS, Ending.STUBBORN) and len(lines) < _LINES:
            # The machine was so busy that its limit came before it was done.
            self._check_cut(lines)
            after = Memory(after.count, base.names)
        else:
            # A second interrupt may meet IPython while it formats the first, and it says so.
            said = [line for line in lines[1:] if not line.startswith(_TWICE_INTERRUPTED)]
            self.expect("values before and after", said, [str(base), str(after)])
            self.pid = int(lines[0].split()[0])
            self.place.finished.add(order.cell)
        self._follow(base)
        self.now = self.history[after.count] = after
        self.safe = base.count if receipt.snapshot.current else None
        self.place.tally.done["cells whose memory was not kept"] += self.keeps and not receipt.snapshot.current

    def _check_cut(self, lines: list[str]) -> None:
        """Of a cell that was cut: nobody knows whether it has changed the memory once it has said that it will.

        Raises:
            Gone: so it is, and nothing more can be checked here.
        """
        self.place.tally.done["cells cut before they were done"] += 1
        if len(lines) > 1:
            raise Gone

    def _base(self, receipt: Receipt) -> Memory:
        """What a cell that ended must have begun with."""
        if receipt.epoch == self.epoch and not self.is_unsure:
            self.expect("state with the same epoch", receipt.state, MemoryState.INTACT)
            return self.now
        if receipt.state is MemoryState.LOST:
            if self.safe is not None and self._is_exact(receipt) and not self.is_emptied:
                self.fault(f"all is lost, although the memory of count {self.safe} was kept")
            return Memory.new(start_up=self.place.has_start_up)
        if receipt.state is MemoryState.INTACT:
            self.expect("whether it may be intact with another epoch", self.is_unsure, True)
        self.expect("whether it may be restored", self.is_emptied, False)
        base = self._back_to(receipt.execution_count - 1)
        if self._is_exact(receipt):
            if self.safe is not None and base.count < self.safe:
                self.fault(f"restored to count {base.count}, although that of {self.safe} was kept")
            self._check_reason(receipt, base)
        return base

    def _lost(self, order: Order, result: CellResult) -> None:
        receipt = result.receipt
        self.expect("whether it can be lost so", self._may_be_lost(order, result.outcome), True)
        if receipt.state is MemoryState.INTACT:
            self.fault("a cell lost its kernel, and the memory is told to be intact")
        self.expect("whether a loss is explained", bool(receipt.reason and result.explanation), True)
        if self.place.is_doomed and receipt.state is MemoryState.LOST:
            raise Gone
        self._check_words(order, result)
        base = self._after_loss(receipt)
        self._follow(base)
        self.now = base
        self.safe = None

    def _may_be_lost(self, order: Order, outcome: Outcome) -> bool:
        if order.ending is Ending.STUBBORN and outcome is Outcome.TIMED_OUT:
            return True
        return outcome is Outcome.LOST or (self.place.is_rough and outcome is Outcome.TIMED_OUT)

    def _after_loss(self, receipt: Receipt) -> Memory:
        kept = receipt.snapshot
        if receipt.state is MemoryState.LOST:
            if kept.kept and self._is_exact(receipt):
                self.fault("all is lost, although there was a snapshot")
            return Memory.new(start_up=self.place.has_start_up)
        base = self._back_to(receipt.execution_count)
        if self._is_exact(receipt) and not self.kills:
            if kept.current:
                self.expect("the count of a restored memory that was current", base.count, self.now.count)
            self._check_reason(receipt, base)
        return base

    def _is_exact(self, receipt: Receipt) -> bool:
        """Nothing else was killed, so that it is known what must be there."""
        return not (self.place.is_rough or self.place.is_doomed or self.is_unsure) and receipt.epoch == self.epoch + 1

    def _check_reason(self, receipt: Receipt, base: Memory) -> None:
        told = re.search(r"without the last (?:(\d+) cells|cell) before it", receipt.reason)
        lost = int(told[1] or 1) if told else 0
        self.expect("cells that are told to be lost too", lost, self.now.count - base.count)

    def _back_to(self, count: int) -> Memory:
        if count not in self.history:
            self.fault(f"restored to count {count}, which there never was")
        return self.history[count]

    def _check_words(self, order: Order, result: CellResult) -> None:
        """What a lost cell had printed is there, and right."""
        lines = result.stdout.text.splitlines()[1:]
        if self.kills or self.is_unsure or self.place.is_rough:
            whole = [[str(base), str(base.after(order))] for base in self.history.values()]
            if not any(one[: len(lines)] == lines for one in whole):
                self.fault(f"a lost cell printed what no memory has: {lines}")
        else:
            self.expect("values before and after", lines, [str(self.now), str(self.now.after(order))])

    def _follow(self, base: Memory) -> None:
        """Later memories are no more."""
        self.history = {count: memory for count, memory in self.history.items() if count < base.count}
        self.history |= {0: Memory.new(start_up=self.place.has_start_up), base.count: base}
