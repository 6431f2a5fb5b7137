"""A live kernel in a real sandbox; one engine for all tests of a module."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.conftest import MakeEngineOptions
from tests.kernel.place import Live, Place, open_place

from workbench.engines.options import EngineOptions
from workbench.guest_trees import remove_tree


@pytest.fixture(scope="module")
def module_dir() -> Iterator[Path]:
    """A folder with a short path, for all tests of a module."""
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    yield folder
    assert remove_tree(folder)


@pytest.fixture(scope="module")
def engine_options(module_dir: Path, make_engine_options: MakeEngineOptions) -> EngineOptions:
    return make_engine_options(module_dir)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(engine_options: EngineOptions) -> AsyncIterator[Place]:
    """For tests that need kernels of their own."""
    async with open_place(engine_options) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(place: Place) -> Live:
    """A kernel that the tests of a module share; none of them may end it."""
    return await place.live()
