"""One engine of each kind for all tests of a module."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.conftest import MakeEngineOptions
from tests.runtimes.programs.hosted import House, open_house

from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.process import ProcessEngine
from workbench.guest_trees import remove_tree

ENGINES = {"namespace": NamespaceEngine, "process": ProcessEngine}


@pytest.fixture(scope="module")
def module_dir() -> Iterator[Path]:
    """A folder with a short path, for all tests of a module."""
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    yield folder
    assert remove_tree(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["namespace", "process"])
async def house(
    request: pytest.FixtureRequest, module_dir: Path, make_engine_options: MakeEngineOptions
) -> AsyncIterator[House]:
    """On both engines, one after the other."""
    folder = module_dir / request.param
    folder.mkdir()
    async with open_house(ENGINES[request.param], make_engine_options(folder), folder) as opened:
        yield opened
