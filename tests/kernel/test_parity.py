"""Whatever works in a notebook on stock ipykernel works on ours, in the sandbox: the same client drives both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.kernel.feature import Feature
from tests.kernel.features_of_cells import ASYNC, ERRORS, LANGUAGE, MAGICS, SHELL
from tests.kernel.features_of_output import DISPLAY, PROCESSES
from tests.kernel.features_of_protocol import PROTOCOL
from tests.kernel.notebook import Notebook, open_notebook, stock_kernel
from tests.kernel.place import Live

from workbench.model.image import Image

pytestmark = pytest.mark.asyncio(loop_scope="module")

# What stock ipykernel 7.4 cannot do and ours can, and why.
BETTER: dict[str, str] = {}
FEATURES = [*LANGUAGE, *ASYNC, *MAGICS, *SHELL, *ERRORS, *DISPLAY, *PROCESSES, *PROTOCOL]


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
    except (AssertionError, TimeoutError, KeyError) as problem:
        return f"{type(problem).__name__}: {problem}"[:3000]
    return ""


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
async def test_what_works_on_stock_works_on_ours(feature: Feature, stock: Notebook, ours: Notebook) -> None:
    on_stock, on_ours = await asyncio.gather(_failure(feature, stock), _failure(feature, ours))
    assert not on_ours, f"stock {'fails too' if on_stock else 'can do it'}"
    assert bool(on_stock) == (feature.name in BETTER), on_stock or "stock can do it now: take it out of BETTER"


def test_there_are_enough_of_them_and_no_two_have_one_name() -> None:
    names = [feature.name for feature in FEATURES]
    assert len(names) == len(set(names)) >= 60
    assert BETTER.keys() <= set(names)
