"""Whatever works in a notebook on stock ipykernel works on ours, in the sandbox: the same client drives both."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.kernel.feature import Feature
from tests.kernel.features_of_cells import ASYNC, ERRORS, LANGUAGE, MAGICS, RESET, SHELL
from tests.kernel.features_of_output import DISPLAY, PROCESSES
from tests.kernel.features_of_protocol import PROTOCOL
from tests.kernel.notebook import Notebook, open_notebook, stock_kernel
from tests.kernel.place import Live

from workbench.model.image import Image

# What stock ipykernel 7.4 cannot do and ours can, and why.
BETTER = {
    "sys.stdout has a descriptor": "stock gives the number of the stream that it replaced, which no notebook shows",
    "subprocess into sys.stdout": "the same: a child that is given sys.stdout writes to nobody",
    "sys.exit(0) ends the cell": "on stock it is an error; here it is a success unless it says otherwise",
    "a pool of spawned processes after %reset": "stock's %reset takes away a name that children are started by",
}
# What stock does or does not, as it happens: what is written to a descriptor is read by a thread of its own, sometimes
# after the cell, and displays are dropped when their reader is slow. Its handler of interrupts does not wake the loop
# (ipykernel #881), so that an await ends only if something else does, and after `!cmd` it goes on with the next line
# unless the interrupt comes between.
SOMETIMES = {
    "interrupt of an await",
    "interrupt of !cmd",
    "os.system in its order",
    "subprocess with nothing said",
    "a process that prints",
    "print in a fork",
    "descriptor 1",
    "descriptor 2",
    "C code that prints",
    "3000 displays",
}
FEATURES = [*LANGUAGE, *ASYNC, *MAGICS, *SHELL, *ERRORS, *DISPLAY, *PROCESSES, *PROTOCOL, *RESET]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ours(live: Live) -> AsyncIterator[Notebook]:
    async with open_notebook(await live.attach()) as notebook:
        yield notebook


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stock(image: Image, module_dir: Path) -> AsyncIterator[Notebook]:
    async with stock_kernel(image, module_dir / "stock") as connection, open_notebook(connection) as notebook:
        yield notebook


async def _failure(feature: Feature, notebook: Notebook) -> str:
    try:
        await feature.play(notebook)
    except (AssertionError, TimeoutError, KeyError):
        return f"{traceback.format_exc(limit=-1)}"[:4000]
    return ""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
async def test_what_works_on_stock_works_on_ours(feature: Feature, stock: Notebook, ours: Notebook) -> None:
    on_stock, on_ours = await asyncio.gather(_failure(feature, stock), _failure(feature, ours))
    assert not on_ours, f"stock {'fails too' if on_stock else 'can do it'}"
    if feature.name in SOMETIMES:
        return
    assert bool(on_stock) == (feature.name in BETTER), on_stock or "stock can do it now: take it out of BETTER"


def test_there_are_enough_of_them_and_no_two_have_one_name() -> None:
    names = [feature.name for feature in FEATURES]
    assert len(names) == len(set(names)) >= 60
    assert BETTER.keys() | SOMETIMES <= set(names)
