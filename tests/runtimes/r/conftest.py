"""One kernel for the tests of a file, as starting it is the longest part of most of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtimes.r.talking import RKernel, kernel


@pytest.fixture(scope="module")
def r() -> Iterator[RKernel]:
    with tempfile.TemporaryDirectory(prefix="r-") as folder, kernel(Path(folder)) as made:
        yield made
