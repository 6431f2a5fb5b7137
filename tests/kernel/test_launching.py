"""Kernels that do not come up, or that nobody wants any more while they do, leave nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest
from tests.kernel.place import Live, Place, text

from workbench.contracts.kernel import KernelStart
from workbench.engines.options import EngineOptions
from workbench.errors import KernelUnavailable
from workbench.model.execution import Cell, PieceKind
from workbench.model.ids import KernelId, new_cell_id
from workbench.model.runtime import FORKED, Runtime

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.isolation]
NO_FOLDER = "/proc/nowhere"
STOCK = Runtime(
    name="stock",
    title="Stock IPython",
    language="python",
    kernelspec="python3",
    file_extension=".py",
    argv=("python", "-m", "ipykernel_launcher", "-f", "{connection_file}"),
    interrupt_by_message=True,
)


def start(generation: int, folder: str = "/home/user", runtime: Runtime = FORKED) -> KernelStart:
    return KernelStart(id=KernelId("other"), generation=generation, working_folder=folder, runtime=runtime)


def held(options: EngineOptions, live: Live) -> tuple[int, list[str]]:
    """Descriptors of ours, and folders of kernels but the one that lives."""
    mine = f"{live.sandbox.description.id}.main"
    folders = [name for name in os.listdir(options.run_dir / "kernels") if not name.startswith(mine)]
    return len(os.listdir("/proc/self/fd")), sorted(folders)


async def without_home(live: Live) -> None:
    """With nowhere to stand, no kernel starts there any more."""
    await live.run("import os\nos.chmod('/home/user', 0)")


async def test_a_kernel_that_cannot_start_says_why(place: Place) -> None:
    live = await place.live()
    await without_home(live)
    with pytest.raises(KernelUnavailable, match="/home/user"):
        await live.launcher.start(live.sandbox, start(1, NO_FOLDER))


async def test_a_working_folder_that_cannot_be_used_is_told_and_costs_no_kernel(place: Place) -> None:
    live = await place.live()
    kernel = await live.launcher.start(live.sandbox, start(1, NO_FOLDER))
    try:
        events = [event async for event in kernel.execute(Cell(id=new_cell_id(), code="import os\nprint(os.getcwd())"))]
    finally:
        await kernel.aclose()
    assert text(events) == "/home/user\n"
    assert "'/proc/nowhere' cannot be used: " in text(events, PieceKind.STDERR)


@pytest.mark.parametrize("folder", ["/home/user", NO_FOLDER])
async def test_a_start_that_is_given_up_at_any_moment_leaves_nothing(
    place: Place, engine_options: EngineOptions, folder: str
) -> None:
    live = await place.live()
    # What is made once, with the first, and the pool that is filled up behind us.
    await (await live.launcher.start(live.sandbox, start(1000))).aclose()
    await place.until_pooled()
    if folder == NO_FOLDER:
        await without_home(live)
    before = held(engine_options, live)
    for number in range(40):
        starting = asyncio.create_task(live.launcher.start(live.sandbox, start(number, folder)))
        # Not the time that matters but that it is another one each time, from before the fork to after the answer.
        await asyncio.sleep(number * 0.002)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, KernelUnavailable):
            await (await starting).aclose()
    await until_held(engine_options, live, before)


async def test_an_interrupt_while_a_kernel_is_closed_leaves_nothing(
    place: Place, engine_options: EngineOptions
) -> None:
    live = await place.live()
    await (await live.launcher.start(live.sandbox, start(1, runtime=STOCK))).aclose()
    await place.until_pooled()
    before = held(engine_options, live)
    kernel = await live.launcher.start(live.sandbox, start(2, runtime=STOCK))
    closing = asyncio.create_task(kernel.aclose())
    # Until it waits for the end of the process.
    for _ in range(5):
        await asyncio.sleep(0)
    assert not closing.done()
    await kernel.interrupt()
    await closing
    await until_held(engine_options, live, before)


async def until_held(options: EngineOptions, live: Live, before: tuple[int, list[str]]) -> None:
    """Not more than before; fails if that does not come."""
    for _ in range(200):
        descriptors, folders = held(options, live)
        if descriptors <= before[0] and folders == before[1]:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{before} before, {held(options, live)} after")
