"""One server and one host for most tests here; those that end theirs have their own."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from tests.host.support import eventually, host_pids, run_folders
from tests.server.running import Running, running

from workbench.guest_trees import remove_tree
from workbench.settings import Settings


@contextlib.contextmanager
def _own_settings() -> Iterator[Settings]:
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    settings = replace(Settings.from_env(os.environ), data_dir=folder / "data", pool_size=2, max_body_mib=1)
    try:
        yield settings
        for pid in host_pids(settings):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        eventually(lambda: not run_folders(settings), "the host has left")
    finally:
        assert remove_tree(folder)


@pytest.fixture
def settings() -> Iterator[Settings]:
    """A data folder of its own."""
    with _own_settings() as settings:
        yield settings


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """The one that most tests share."""
    with _own_settings() as settings, running(settings) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[httpx2.Client]:
    """With the key of everything."""
    with server.client() as client:
        yield client


@pytest.fixture
def session(client: httpx2.Client) -> Iterator[str]:
    """A session of the test's own."""
    name = f"t-{secrets.token_hex(4)}"
    answer = client.post("/v1/sessions", json={"id": name, "user_id": "tester", "sandbox": {"snapshots": False}})
    assert answer.status_code == 201, answer.text
    yield name
    assert client.delete(f"/v1/sessions/{name}").status_code in {204, 404}
