"""What a lane asks of a kernel besides cells: undo, a branch, a restart, snapshots on and off, its end."""

from __future__ import annotations

import asyncio
import re

from bench.soak.state.kernel import Gone, StateKernel
from bench.soak.state.model import Order
from workbench.errors import Cancelled, Conflict, KernelUnavailable, NotFound, SandboxUnavailable, WorkbenchError
from workbench.wire import host as wire
from workbench.wire import kernels

_GONE = (Cancelled, KernelUnavailable, NotFound, SandboxUnavailable)


def refused(kernel: StateKernel, what: str, problem: WorkbenchError) -> None:
    """Right only after a kill.

    Raises:
        Gone: the sandbox was killed.
    """
    place = kernel.place
    kernel.note(f"{what}: {type(problem).__name__}: {problem.message}")
    if place.is_doomed and isinstance(problem, _GONE):
        raise Gone
    if not isinstance(problem, KernelUnavailable) or not (place.is_rough or kernel.kills):
        kernel.fault(f"{what} was refused")
    place.tally.done[f"{what}: refused after a kill"] += 1


async def undo(kernel: StateKernel, cells: int) -> None:
    """The lane's own memory goes back the same way."""
    place = kernel.place
    request = kernels.UndoCells(sandbox=place.sandbox, kernel=kernel.name, cells=cells)
    try:
        report = (await place.ask(request, kernels.UndoReport)).kernel
    except Conflict as problem:
        _not_undone(kernel, cells, problem)
        return
    except WorkbenchError as problem:
        # What it was to go back to may have been woken for it.
        kernel.safe = None
        refused(kernel, "undo", problem)
        return
    kernel.note(f"undo {cells}: epoch {report.epoch}, count {report.execution_count}, {report.snapshots}")
    place.tally.done["undone cells"] += cells
    passed, count = report.epoch - kernel.epoch, kernel.now.count - cells
    if passed == 1:
        kernel.expect("count after an undo", report.execution_count, count)
        kernel.epoch = report.epoch
        # One that was killed before, and went before anybody noticed, costs nothing.
        kernel.kills -= kernel.is_dead
    elif passed < 1 or not (place.is_rough or kernel.kills):
        kernel.fault(f"epoch {report.epoch} after an undo")
    else:
        kernel.kills += 1
        kernel.is_unsure = True
    kernel.is_dead, kernel.safe = False, None
    kernel.history = {there: memory for there, memory in kernel.history.items() if there <= count}
    if count not in kernel.history and not kernel.is_unsure:
        kernel.fault(f"undone to count {count}, which there never was")
    # One that was killed before went back from where it was restored to, which may be further.
    kernel.now = kernel.history[max(kernel.history)]


def _not_undone(kernel: StateKernel, cells: int, problem: Conflict) -> None:
    kernel.note(f"undo {cells}: {problem.message}")
    kernel.place.tally.done["undo: not kept"] += 1
    offered = re.search(r"over ([\d or]+) cells", problem.message)
    if offered and str(cells) in offered[1].split(" or "):
        kernel.fault("an undo was refused, and the same one was offered")
    is_empty = cells == kernel.now.count and not kernel.place.has_start_up
    if is_empty and not (kernel.kills or kernel.place.is_rough):
        kernel.fault("an undo to nothing was refused")


async def branch(kernel: StateKernel) -> StateKernel | None:
    """A second kernel that goes its own way; sometimes asked for twice. None if a kill came between."""
    place, name = kernel.place, kernel.place.new_name()
    epoch = place.luck.randint(1, 9)
    request = kernels.BranchKernel(sandbox=place.sandbox, kernel=kernel.name, branch=name, epoch=epoch)
    asked = place.luck.choice((1, 1, 1, 2))
    answers = await asyncio.gather(
        *(place.ask(request, kernels.BranchReport) for _ in range(asked)), return_exceptions=True
    )
    reports = [answer.kernel for answer in answers if isinstance(answer, kernels.BranchReport)]
    for answer in answers:
        if isinstance(answer, WorkbenchError):
            refused(kernel, "branch", answer)
        elif isinstance(answer, BaseException):
            raise answer
    if not reports:
        await _is_not_there(kernel, name)
        return None
    place.tally.done["branches"] += 1
    place.tally.done["branches of branches"] += kernel.name.startswith("b")
    return _branched(kernel, name, epoch, reports[0])


def _branched(kernel: StateKernel, name: str, epoch: int, report: kernels.KernelReport) -> StateKernel:
    place = kernel.place
    told = f"branch {name}: epoch {report.epoch}, count {report.execution_count}"
    kernel.note(told)
    is_sure = not (place.is_rough or place.is_doomed or kernel.kills or kernel.is_unsure)
    if is_sure:
        kernel.expect("epoch of a branch", report.epoch, epoch)
        kernel.expect("count of a branch", report.execution_count, kernel.now.count)
        child = StateKernel(place, name, epoch, kernel.now, {})
    else:
        child = StateKernel(place, name, epoch, kernel.now, kernel.history)
        child.is_unsure, child.kills = True, kernel.kills
    child.trail.extend([*kernel.trail][-4:])
    place.kernels.append(child)
    return child


async def _is_not_there(kernel: StateKernel, name: str) -> None:
    place = kernel.place
    try:
        await place.ask(kernels.DescribeKernel(sandbox=place.sandbox, kernel=name), kernels.KernelReport)
    except (NotFound, SandboxUnavailable):
        return
    kernel.fault(f"a branch was refused, and is there: {name}")


async def switch(kernel: StateKernel) -> None:
    """Snapshots off or on."""
    place = kernel.place
    on = not kernel.keeps
    try:
        await place.ask(kernels.SetSnapshots(sandbox=place.sandbox, kernel=kernel.name, on=on), wire.Done)
    except WorkbenchError as problem:
        refused(kernel, "switch", problem)
        return
    kernel.note(f"snapshots {'on' if on else 'off'}")
    kernel.keeps = on
    kernel.safe = None
    place.tally.done["snapshots switched off or on"] += 1


async def restart(kernel: StateKernel) -> None:
    """A new memory by request."""
    place = kernel.place
    try:
        request = kernels.RestartKernel(sandbox=place.sandbox, kernel=kernel.name)
        report = await place.ask(request, kernels.KernelReport)
    except WorkbenchError as problem:
        kernel.kills += 1
        refused(kernel, "restart", problem)
        return
    kernel.note(f"restart: epoch {report.epoch}, count {report.execution_count}")
    kernel.kills += 1
    # A second death after it may be restored, to nothing.
    kernel.is_emptied = not place.is_rough
    kernel.is_unsure = place.is_rough
    kernel.history, kernel.now, kernel.safe = {0: kernel.history[0]}, kernel.history[0], None
    place.tally.done["restarts"] += 1


async def end(kernel: StateKernel) -> None:
    """For good; what it is asked then is refused."""
    place = kernel.place
    kernel.note("end")
    await place.ask(kernels.EndKernel(sandbox=place.sandbox, kernel=kernel.name), wire.Done)
    place.kernels.remove(kernel)
    order = Order("c += 1")
    try:
        await place.ask(kernel.request(order), kernels.CellReport)
    except (NotFound, SandboxUnavailable) as problem:
        if isinstance(problem, SandboxUnavailable) and not place.is_doomed:
            kernel.fault(f"a cell for an ended kernel: {problem.message}")
        place.never_began.add(order.cell)
        return
    kernel.fault("a cell ran in a kernel that was ended")
