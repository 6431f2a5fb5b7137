"""What happens in a kernel of the soak, one step at a time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from bench.soak.state import moves
from bench.soak.state.kernel import WAIT_S, StateKernel
from bench.soak.state.model import CRASHES, Ending, Order, some_change
from bench.soak.state.processes import Processes
from workbench.errors import Cancelled, KernelUnavailable, NotFound, SandboxUnavailable, WorkbenchError
from workbench.model.execution import Outcome
from workbench.wire import host as wire
from workbench.wire import kernels

Step = Callable[[StateKernel, random.Random], Awaitable[None]]
# A moment in which a snapshot is being made or woken.
_MOMENT_S = 0.02
_DYING_S = 20.0


async def changes(k: StateKernel, luck: random.Random) -> None:
    """An ordinary cell."""
    await k.run(Order(some_change(luck)))


async def raises(k: StateKernel, luck: random.Random) -> None:
    """One that changes something and then fails."""
    await k.run(Order(some_change(luck), Ending.RAISES))


async def crashes(k: StateKernel, luck: random.Random) -> None:
    """From inside."""
    ending = luck.choice(CRASHES)
    await k.run(Order(some_change(luck), ending))
    k.place.tally.done[f"crashes: {ending.name.lower().replace('_', ' ')}"] += 1


async def queued(k: StateKernel, luck: random.Random) -> None:
    """Several at once; one of them may crash."""
    if k.kills:
        return
    endings = luck.choices((Ending.RETURNS, Ending.RAISES, luck.choice(CRASHES)), (8, 1, 2), k=luck.randint(2, 4))
    orders = [Order(some_change(luck), ending) for ending in endings]
    asked = (k.place.ask(k.request(order), kernels.CellReport) for order in orders)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for order, answer in zip(orders, answers, strict=True):
        match answer:
            case WorkbenchError():
                k.refused(order, answer)
            case BaseException():
                raise answer
            case kernels.CellReport():
                k.take(order, answer)


async def bomb(k: StateKernel, luck: random.Random) -> None:
    """All of the sandbox's memory: whose process goes is the system's choice, and snapshots may be given up."""
    k.place.is_rough = True
    result = await k.run(Order(some_change(luck), Ending.BOMB))
    if result is not None:
        k.place.tally.done[f"memory bombs: {result.outcome}, {result.receipt.state}"] += 1


async def stubborn(k: StateKernel, luck: random.Random) -> None:
    """Takes no interrupt at its limit."""
    await k.run(Order(some_change(luck), Ending.STUBBORN, limit_s=1.0))
    k.place.tally.done["cells that took no interrupt"] += 1


async def past_its_limit(k: StateKernel, luck: random.Random) -> None:
    """Takes one: what it has changed stays."""
    await k.run(Order(some_change(luck), Ending.WAITS, limit_s=1.0))
    k.place.tally.done["cells past their limit"] += 1


async def interrupted(k: StateKernel, luck: random.Random) -> None:
    """The same by request."""
    order = Order(some_change(luck), Ending.WAITS)
    if await k.begin(order):
        try:
            await k.place.ask(kernels.InterruptKernel(sandbox=k.place.sandbox, kernel=k.name), wire.Done)
        except WorkbenchError as problem:
            moves.refused(k, "interrupt", problem)
        k.place.tally.done["interrupts"] += 1
    await k.end_of(order)


async def killed_running(k: StateKernel, luck: random.Random) -> None:
    """From outside, in the middle of a cell."""
    processes = await _seen(k, luck)
    order = Order(some_change(luck), Ending.WAITS)
    if processes is not None and await k.begin(order):
        k.is_shot = await _kill_kernel(k, processes)
    elif processes is None:
        return
    await k.end_of(order)


async def killed_waiting(k: StateKernel, luck: random.Random) -> None:
    """Between two cells, often while its snapshot is being made."""
    processes = await _seen(k, luck)
    if processes is None:
        return
    await asyncio.sleep(luck.choice((0.0, 0.0, luck.random() * _MOMENT_S, luck.random())))
    if await _kill_kernel(k, processes):
        k.kills += 1
        k.is_dead = True
    await asyncio.sleep(luck.choice((0.0, luck.random() * _MOMENT_S, luck.random() / 2)))


async def _seen(k: StateKernel, luck: random.Random) -> Processes | None:
    """After a cell that tells which process it is."""
    result = await k.run(Order(some_change(luck)))
    if result is None or result.outcome is not Outcome.OK:
        return None
    return await k.place.see(int(result.stdout.text.split()[1]))


async def _kill_kernel(k: StateKernel, processes: Processes) -> bool:
    pid = await asyncio.to_thread(processes.kernel, k.pid)
    is_killed = pid is not None and processes.kill(pid)
    k.note(f"kill of the kernel, {k.pid} inside: {is_killed}")
    if not (is_killed or k.place.is_rough or k.place.is_doomed):
        k.fault("the kernel's process is gone, and nobody killed it")
    k.place.tally.done["kernels killed from outside"] += is_killed
    return is_killed and not k.place.is_rough


async def undone(k: StateKernel, luck: random.Random) -> None:
    """One or two cells back; sometimes more than are kept."""
    await asyncio.sleep(luck.choice((0.0, _MOMENT_S, 0.1)))
    await moves.undo(k, luck.choice((1, 1, 1, 2, 2, luck.randint(1, 6))))


async def switched(k: StateKernel, luck: random.Random) -> None:
    """Snapshots off, a while, and on again."""
    await moves.switch(k)
    for _ in range(luck.randint(0, 3)):
        await luck.choice((changes, changes, crashes))(k, luck)
    if not k.keeps:
        await moves.switch(k)


async def restarted(k: StateKernel, _luck: random.Random) -> None:
    """By request."""
    await moves.restart(k)


async def described(k: StateKernel, _luck: random.Random) -> None:
    """As it is, between cells."""
    try:
        request = kernels.DescribeKernel(sandbox=k.place.sandbox, kernel=k.name)
        report = await k.place.ask(request, kernels.KernelReport)
    except WorkbenchError as problem:
        moves.refused(k, "describe", problem)
        return
    if not (k.kills or k.is_unsure or k.place.is_rough or k.place.is_doomed):
        k.expect("epoch as described", report.epoch, k.epoch)
        k.expect("count as described", report.execution_count, k.now.count)
        k.expect("queue as described", report.queue, ())


async def burst(k: StateKernel, luck: random.Random) -> None:
    """Snapshots, or anything, killed one after the other while a cell crashes or ends and its snapshot is made."""
    processes = k.place.processes
    if not k.place.is_rough or processes is None:
        return
    ending = luck.choice((Ending.RETURNS, luck.choice(CRASHES)))
    running = asyncio.create_task(k.run(Order(some_change(luck), ending)))
    killing = asyncio.create_task(kill_some(k, processes, luck))
    await asyncio.wait((running, killing))
    await killing
    await running


async def kill_some(k: StateKernel, processes: Processes, luck: random.Random) -> None:
    """A few."""
    for _ in range(luck.randint(1, 8)):
        await asyncio.sleep(luck.random() * _MOMENT_S)
        is_snapshot = luck.random() < 0.7
        found = processes.dormant() if is_snapshot else processes.any()
        if found and processes.kill(luck.choice(found)):
            k.note(f"kill of {'a snapshot' if is_snapshot else 'something'}")
            k.place.tally.done["snapshots killed" if is_snapshot else "processes killed at random"] += 1


async def doomed(k: StateKernel, luck: random.Random) -> None:
    """Pid 1 is killed, and everything with it; sometimes under a cell."""
    place = k.place
    if place.processes is None or place.is_doomed:
        return
    order = Order(some_change(luck), Ending.WAITS)
    is_running = luck.random() < 0.5 and await k.begin(order)
    place.is_doomed = True
    k.note("kill of pid 1")
    place.tally.done["sandboxes killed"] += place.processes.kill(place.processes.first)
    if is_running:
        await k.end_of(order)
        k.fault("a cell had an end in a sandbox that was killed")
    await asyncio.sleep(luck.choice((0.0, _MOMENT_S, 0.5)))
    # On a busy machine the others live for a moment longer than pid 1.
    deadline = time.monotonic() + _DYING_S
    while time.monotonic() < deadline:
        await k.run(Order(some_change(luck)))
    k.fault("cells go on in a sandbox that was killed")


async def ended_running(k: StateKernel, luck: random.Random) -> None:
    """The kernel's end under its cell."""
    order = Order(some_change(luck), Ending.WAITS)
    if not await k.begin(order):
        await k.end_of(order)
        return
    wait = kernels.WaitCell(sandbox=k.place.sandbox, cell=order.cell, wait_s=WAIT_S)
    answers = await asyncio.gather(k.place.ask(wait, kernels.CellReport), moves.end(k), return_exceptions=True)
    match answers[0]:
        case kernels.CellReport(result=result) if result is not None:
            k.expect("outcome of a cell in an ended kernel", result.outcome, Outcome.LOST)
            k.expect("state of an ended kernel", result.receipt.state, "lost")
        case Cancelled() | SandboxUnavailable() | KernelUnavailable() | NotFound():
            pass
        case other:
            k.fault(f"a cell in an ended kernel: {other}")
    if isinstance(answers[1], BaseException):
        raise answers[1]
    k.place.tally.done["kernels ended under a cell"] += 1


# How often each is taken.
STEPS: tuple[tuple[Step, float], ...] = (
    (changes, 30), (raises, 3), (queued, 6), (crashes, 8), (killed_waiting, 6), (killed_running, 4), (undone, 8),
    (burst, 8), (interrupted, 2), (past_its_limit, 1), (switched, 2), (restarted, 1), (described, 3), (stubborn, 0.4),
    (bomb, 0.4), (doomed, 0.4),
)  # fmt: skip
