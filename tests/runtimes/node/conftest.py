from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtimes.node.driving import Driven, driven


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: those of sockets are bounded."""
    with tempfile.TemporaryDirectory(prefix="wb-") as made:
        yield Path(made).resolve()


@pytest.fixture
def kernel(folder: Path) -> Iterator[Driven]:
    with driven(folder) as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[Driven]:
    """One for tests that leave nothing behind that another one would see."""
    with tempfile.TemporaryDirectory(prefix="wb-") as made, driven(Path(made).resolve()) as kernel:
        yield kernel
