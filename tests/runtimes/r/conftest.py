"""One kernel for the tests of a file, as starting it is the longest part of most of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtimes.r.talking import RKernel, kernel

from workbench_guest.r.embedded import HOMES


@pytest.fixture(autouse=True, scope="session")
def needs_r() -> None:
    """`make test` brings it where it can; a row of SKIPS.md says where it cannot."""
    if not any(Path(home, "lib", "libR.so").exists() for home in HOMES):
        pytest.skip("no R on this machine")


@pytest.fixture(scope="module")
def r() -> Iterator[RKernel]:
    with tempfile.TemporaryDirectory(prefix="r-") as folder, kernel(Path(folder)) as made:
        yield made
