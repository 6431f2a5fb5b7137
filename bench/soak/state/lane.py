"""One place of the soak from its first cell to its end: a driver for each kernel in it, all at the same time."""

from __future__ import annotations

import asyncio
import random
import time

from bench.soak.session import Hang
from bench.soak.state import moves, steps
from bench.soak.state.kernel import Gone, StateKernel
from bench.soak.state.model import Memory, Order, some_change
from bench.soak.state.place import Fault, Place
from bench.soak.state.processes import kill_zygotes
from bench.soak.tally import Tally
from workbench.data_folder import DataFolder
from workbench.errors import WorkbenchError
from workbench.host_client.find import connect
from workbench.settings import Settings

_STEPS_OF_THE_FIRST, _STEPS_OF_A_BRANCH = (8, 40), (2, 15)
_MOST_KERNELS = 4
_BETWEEN_ZYGOTES_S = (6.0, 25.0)


async def session(settings: Settings, tally: Tally, luck: random.Random, deadline: float) -> None:
    """One place. Faults are counted here, and end it alone."""
    place = Place(lambda: connect(settings), DataFolder(settings.data_dir).files, tally, f"{luck.getrandbits(48):x}")
    try:
        await place.open()
        await _lived(place, deadline)
        place.check_what_ran()
        await place.check_what_is_left()
    except Exception as problem:  # noqa: BLE001  whatever it is, the other places go on
        record(place, problem)
    finally:
        try:
            await place.close()
        except (Hang, WorkbenchError) as problem:
            record(place, problem)


def record(place: Place, problem: BaseException) -> None:
    """By its kind."""
    place.is_over = True
    match problem:
        case Fault():
            place.tally.wrong.append(str(problem))
        case Hang():
            place.tally.hangs.append(str(problem))
        case _:
            place.tally.wrong.append(f"{place.seed} {place.sandbox}: {type(problem).__name__}: {problem}")


async def _lived(place: Place, deadline: float) -> None:
    epoch = place.luck.randint(1, 9)
    report = await place.start("main", epoch)
    first = StateKernel(place, "main", epoch, Memory.new(start_up=place.has_start_up), {})
    first.expect("epoch of a new kernel", (report.epoch, report.start_up_error), (epoch, ""))
    place.kernels.append(first)
    async with asyncio.TaskGroup() as drivers:
        drivers.create_task(_drive(first, _STEPS_OF_THE_FIRST, deadline, drivers))


async def _drive(k: StateKernel, most: tuple[int, int], deadline: float, drivers: asyncio.TaskGroup) -> None:
    """Until it has done enough or its place is over. Never raises."""
    place = k.place
    luck = random.Random(f"{place.seed}-{k.name}")
    try:
        await _seen_from_outside(k, luck)
        for _ in range(luck.randint(*most)):
            if place.is_over or place.is_doomed or time.monotonic() >= deadline:
                break
            await asyncio.sleep(luck.choice((0.0, 0.0, 0.01, luck.random() * 0.2)))
            if luck.random() < 0.05 and len(place.kernels) < _MOST_KERNELS:
                if (child := await moves.branch(k)) is not None:
                    drivers.create_task(_drive(child, _STEPS_OF_A_BRANCH, deadline, drivers))
                continue
            step = luck.choices([one for one, _ in steps.STEPS], [weight for _, weight in steps.STEPS])[0]
            k.note(f"- {step.__name__}")
            await step(k, luck)
        await _end(k, luck)
    except Gone:
        place.tally.done["kernels told to be gone with their sandbox"] += 1
    except Exception as problem:  # noqa: BLE001  recorded; a bug of the soak's own as well
        record(place, problem)


async def _seen_from_outside(k: StateKernel, luck: random.Random) -> None:
    if (result := await k.run(Order(some_change(luck)))) is not None and k.place.processes is None:
        await k.place.see(int(result.stdout.text.split()[1]))


async def _end(k: StateKernel, luck: random.Random) -> None:
    if k.place.is_doomed or k.place.is_over:
        return
    if luck.random() < 0.2:
        await steps.ended_running(k, luck)
    if k in k.place.kernels:
        await moves.end(k)


async def kill_zygotes_at_times(host: int, tally: Tally, luck: random.Random, deadline: float) -> None:
    """Beside the lanes."""
    while (left_s := deadline - time.monotonic()) > 0:
        await asyncio.sleep(min(left_s, luck.uniform(*_BETWEEN_ZYGOTES_S)))
        tally.done["zygotes killed"] += kill_zygotes(host)
