"""Real hosts in folders of their own."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.host.support import eventually, host_pids, run_folders

from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.settings import Settings


@pytest.fixture
def settings(short_dir: Path) -> Iterator[Settings]:
    """Settings for a data folder of its own; whatever host runs in it at the end is killed and swept."""
    base = Settings.from_env(os.environ)
    mine = replace(base, data_dir=short_dir / "data", pool_size=1)
    yield mine
    for pid in host_pids(mine):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: not run_folders(mine), "the guardian swept up")


@pytest.fixture
async def host(settings: Settings) -> AsyncIterator[HostConnection]:
    """A connection to a running host."""
    async with await connect_or_start(settings, os.environ) as connection:
        yield connection
