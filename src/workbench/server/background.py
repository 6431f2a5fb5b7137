"""What the server does by itself: it finishes what killed processes left, has the caretaker look around, and sweeps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from workbench.core.guest_calls import CallDone
from workbench.errors import WorkbenchError
from workbench.server.door import Door
from workbench.server.heartbeat import STOP_GRACE_S
from workbench.server.sweeping import sweep

_LOOK_EVERY_S = 15.0
# After a defect.
_AGAIN_S = 1.0
# What is swept was unused for days.
_FIRST_SWEEP_S, _SWEEP_EVERY_S = 5.0, 3600.0
# So that several servers of one store do not look at the same moment.
_JITTER = 0.2


async def keep_house(door: Door) -> None:
    """Until it is cancelled. A round that fails is told, and the next one comes all the same."""
    await _round(door, _settle, "settle")
    # Beside it: to delete many takes longer than others are to wait for a look.
    door.kept.start(_keep_sweeping(door), "sweeping")
    while True:
        await _pause(_LOOK_EVERY_S)
        await _round(door, _look, "look")


async def count_down(door: Door) -> None:
    """From when the server is told to leave to when it has no more time for anything."""
    await door.stopping.wait()
    await asyncio.sleep(STOP_GRACE_S)
    door.leaving.set()


async def answer_calls(door: Door) -> None:
    """Until it is cancelled: what code in sandboxes asks of the workbench."""

    def tell(done: CallDone) -> None:
        door.metrics.call(done)
        if not done.written_down:
            door.log.event("error", "audit.lost", outcome=done.outcome, action=f"helper.{done.operation}")

    while True:
        try:
            await door.service.answer_calls(address=door.options.links_url or door.options.url, tell=tell)
        except Exception as problem:  # noqa: BLE001  (callers wait for the next try)
            door.log.defect("calls", problem)
            await _pause(_AGAIN_S)


async def _keep_sweeping(door: Door) -> None:
    await _pause(_FIRST_SWEEP_S)
    while True:
        await _round(door, sweep, "sweep")
        await _round(door, _drop_links, "links")
        await _pause(_SWEEP_EVERY_S)


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311


async def _drop_links(door: Door) -> int:
    """Those by which accounts are connected, whose time is over."""
    await door.service.connections.sweep()
    return 0


async def _settle(door: Door) -> int:
    settled = await door.service.caretaker.settle_pending()
    door.log.event("info", "caretaker.settle", finished=settled.finished, pending=len(settled.pending))
    return len(settled.problems)


async def _look(door: Door) -> int:
    done = await door.service.caretaker.look()
    door.metrics.cared(done)
    if done.frozen or done.ended:
        door.log.event("info", "caretaker.look", frozen=done.frozen, ended=done.ended, settled=done.settled)
    return len(done.problems)


async def _round(door: Door, work: Callable[[Door], Awaitable[int]], what: str) -> None:
    try:
        problems = await work(door)
    except WorkbenchError as problem:
        outcome = problem.code
        door.log.event("warning", f"caretaker.{what}", outcome=outcome)
    except Exception as problem:  # noqa: BLE001  (a defect here must not end the house)
        outcome = "internal_error"
        door.log.defect(f"caretaker.{what}", problem)
    else:
        outcome = "problems" if problems else "ok"
        if problems:
            door.log.event("warning", f"caretaker.{what}", outcome=outcome, problems=problems)
    door.metrics.look(what, outcome)
