"""A workbench that answers, and a mount that is a folder of the test's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.workbench_guest.helpers.answering import Answering, Behaviour, answering

from workbench_guest.helpers import calling, paths, retrying

Serve = Callable[[Behaviour], Answering]


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a machine may have under the usual name, and no long waits between two tries."""
    monkeypatch.setenv(calling.ADDRESS_VARIABLE, "@workbench-test-nobody")
    monkeypatch.setitem(retrying.DEFAULTS, "delay_ms", 10)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Called with a behaviour: somebody who answers so, at the address that calls go to."""
    with contextlib.ExitStack() as stack:

        def begin(behaviour: Behaviour) -> Answering:
            server = stack.enter_context(answering(behaviour))
            monkeypatch.setenv(calling.ADDRESS_VARIABLE, server.address)
            return server

        yield begin


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mount; the working folder is beside it."""
    folder, home = tmp_path / "files", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.setenv(paths.MOUNT_VARIABLE, str(folder))
    monkeypatch.chdir(home)
    return folder
