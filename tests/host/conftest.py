"""Real hosts in folders of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.host.support import eventually, host_pids, run_folders

from workbench.guest_trees import remove_tree
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.settings import Settings
from workbench.wire import host as wire


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


@pytest.fixture(scope="module")
def shared_settings() -> Iterator[Settings]:
    """A data folder with one host for all tests of a module that only use sandboxes of their own."""
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    mine = replace(Settings.from_env(os.environ), data_dir=folder / "data", pool_size=2)
    try:
        yield mine
        for pid in host_pids(mine):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        eventually(lambda: not run_folders(mine), "the host has left")
    finally:
        assert remove_tree(folder)


@pytest.fixture
async def shared_host(shared_settings: Settings) -> AsyncIterator[HostConnection]:
    """A connection to the module's host; sandboxes that a test leaves are closed."""
    async with await connect_or_start(shared_settings, os.environ) as connection:
        yield connection
        for report in (await connection.ask(wire.ListSandboxes(), wire.SandboxList)).sandboxes:
            await connection.ask(wire.CloseSandbox(sandbox=report.sandbox), wire.Done)
