"""What arrives beside a server: by a process of its own, that ends with it and is never waited for."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from workbench.cli import late_beside as module
from workbench.images.late import LateState
from workbench.settings import Settings

# In place of our interpreter: says what it was asked, at which priority, and then never ends by itself.
_STAND_IN = """#!/bin/sh
echo "$@" $(nice) > "$WORKBENCH_DATA_DIR/asked.new"
echo $$ >> "$WORKBENCH_DATA_DIR/asked.new"
mv "$WORKBENCH_DATA_DIR/asked.new" "$WORKBENCH_DATA_DIR/asked"
exec sleep 300
"""


class _Chosen:
    def __init__(self, *_: object) -> None:
        pass

    def find(self) -> None:
        pass


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    stand_in = tmp_path / "python"
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    monkeypatch.setattr(module, "ChosenImage", _Chosen)
    return Settings.from_env({"WORKBENCH_DATA_DIR": str(tmp_path)})


async def test_it_is_brought_with_the_least_priority_and_ends_with_the_server(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "late_state", lambda *_: LateState())
    ours = os.nice(0)
    asked = settings.data_dir / "asked"
    async with asyncio.timeout(30), module.late_beside(settings):
        while not asked.exists():
            await asyncio.sleep(0.01)
        words, pid = asked.read_text().splitlines()
        assert words == "-m workbench image build --late 19"
        assert os.nice(0) == ours
        os.kill(int(pid), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.parametrize("state", [None, LateState(version="2.0")])
async def test_nothing_is_started_for_what_is_there(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, state: LateState | None
) -> None:
    monkeypatch.setattr(module, "late_state", lambda *_: state)
    async with module.late_beside(settings):
        pass
    assert not (settings.data_dir / "asked").exists()
