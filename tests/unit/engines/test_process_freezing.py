"""The engine that isolates nothing: what does not stand still holds up neither the host nor who needs the sandbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from workbench.contracts.engine import SandboxSpec
from workbench.engines.process import ProcessSandbox
from workbench.errors import SandboxUnavailable
from workbench.model.ids import new_sandbox_id
from workbench.model.image import Image
from workbench.model.tier import STANDARD


class Restless:
    """Never stands still, unless it is told to."""

    def __init__(self) -> None:
        self.still = False
        self.stopped = False

    def stop(self) -> bool:
        self.stopped = True
        return self.still

    def go_on(self) -> None:
        self.stopped = False


@pytest.fixture
async def sandbox(short_dir: Path) -> AsyncIterator[tuple[ProcessSandbox, Restless]]:
    files, folder = short_dir / "files", short_dir / "run"
    files.mkdir()
    folder.mkdir()
    image = Image(name="none", digest="", python="/bin/false", roots=(), preload=())
    made, restless = ProcessSandbox(_spec(files), folder, image, lambda _: None), Restless()
    made._stopper = restless  # type: ignore[assignment]
    yield made, restless
    await made.aclose()


def _spec(files: Path) -> SandboxSpec:
    return SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files)


async def test_others_have_their_turn_while_it_is_tried(sandbox: tuple[ProcessSandbox, Restless]) -> None:
    made, restless = sandbox
    freezing, longest, before = asyncio.create_task(made.freeze()), 0.0, time.monotonic()
    turns = 0
    while not freezing.done():
        await asyncio.sleep(0.001)
        turns, now = turns + 1, time.monotonic()
        longest, before = max(longest, now - before), now
    assert not await freezing
    assert turns > 10
    assert longest < 0.3
    assert not restless.stopped, "everything runs as before"


async def test_who_thaws_it_meanwhile_comes_first(sandbox: tuple[ProcessSandbox, Restless]) -> None:
    made, restless = sandbox
    freezing = asyncio.create_task(made.freeze())
    await asyncio.sleep(0.01)
    await made.thaw()
    restless.still = True
    assert not await freezing
    assert not made.frozen
    assert not restless.stopped
    assert await made.freeze()


async def test_one_that_is_closed_meanwhile_is_gone(sandbox: tuple[ProcessSandbox, Restless]) -> None:
    made, restless = sandbox
    freezing = asyncio.create_task(made.freeze())
    await asyncio.sleep(0.01)
    await made.aclose()
    with pytest.raises(SandboxUnavailable, match="gone"):
        await freezing
    assert not restless.stopped
