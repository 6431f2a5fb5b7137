"""What the engine contract says about freezing: nothing runs, nothing is lost, and it can always be ended."""

from __future__ import annotations

import asyncio
import time

import pytest

from workbench.contracts.engine import Process, Sandbox
from workbench.errors import SandboxUnavailable
from workbench.testing.driving import PATIENCE_S, MakeSandbox, Reading, code, eventually, finish, run, shell

_TICKING = "import sys, time\nwhile True:\n    print(end='.', flush=True)\n    time.sleep(0.001)"
_FORKING = "while :; do /bin/true; done"
_STANDS_S = 0.3
# For what was on its way when everything stopped.
_SETTLES_S = 0.1


async def _frozen(sandbox: Sandbox) -> None:
    """What is short of time may need a second call."""
    await eventually(sandbox.freeze, "everything inside stands still")
    assert sandbox.frozen


class _Ticks:
    """Counts what a process prints, as it comes."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.count = 0
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for chunk in self._process.output():
            self.count += len(chunk.data)

    async def until_beyond(self, count: int) -> None:
        """Until more than that came."""

        async def is_beyond() -> bool:
            return self.count > count

        await eventually(is_beyond, f"more than {count} ticks")


class FreezingContract:
    """Part of EngineContract, which has the fixtures. Every engine of ours can; one that cannot says False."""

    async def test_nothing_runs_while_frozen_and_everything_goes_on_afterwards(self, sandbox: Sandbox) -> None:
        """Not one tick comes, and no CPU is used; may be called twice."""
        ticks = _Ticks(await sandbox.start(code(_TICKING)))
        try:
            await ticks.until_beyond(0)
            await _frozen(sandbox)
            assert await sandbox.freeze()
            await asyncio.sleep(_SETTLES_S)
            seen, spent = ticks.count, (await sandbox.usage()).cpu_s
            await asyncio.sleep(_STANDS_S)
            assert (ticks.count, (await sandbox.usage()).cpu_s) == (seen, spent)
            await sandbox.thaw()
            await sandbox.thaw()
            assert not sandbox.frozen
            await ticks.until_beyond(seen)
        finally:
            ticks.reading.cancel()
            await asyncio.wait([ticks.reading])

    async def test_starting_something_thaws(self, sandbox: Sandbox) -> None:
        """A program and an entry."""
        for spec in (shell("echo here"), code("print('here')")):
            await _frozen(sandbox)
            assert (await run(sandbox, spec)).stdout == b"here\n"
            assert not sandbox.frozen

    async def test_what_forks_all_the_time_stands_still_too(self, sandbox: Sandbox) -> None:
        """None of its children is overlooked."""
        for _ in range(3):
            await sandbox.start(shell(_FORKING))
        await _frozen(sandbox)
        spent = (await sandbox.usage()).cpu_s
        await asyncio.sleep(_STANDS_S)
        assert (await sandbox.usage()).cpu_s == spent

    async def test_a_thaw_goes_before_a_freeze_that_is_under_way(self, sandbox: Sandbox) -> None:
        """Whoever needs it is not made to wait, and both end."""
        await sandbox.start(shell(_FORKING))
        for _ in range(20):
            async with asyncio.timeout(PATIENCE_S):
                freezing = asyncio.ensure_future(sandbox.freeze())
                await asyncio.sleep(0)
                await sandbox.thaw()
                await freezing
                await sandbox.thaw()
            assert not sandbox.frozen

    async def test_a_frozen_sandbox_can_be_ended(self, make_sandbox: MakeSandbox) -> None:
        """Quickly, with what it had printed, and what ran is told as lost."""
        sandbox = await make_sandbox()
        process = await sandbox.start(shell("echo printed; sleep 1000"))
        async with Reading(process) as reading:
            await reading.until(b"printed\n")
        await _frozen(sandbox)
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE_S):
            await sandbox.aclose()
            assert (await process.wait()).lost
        assert time.monotonic() - began < PATIENCE_S / 4
        assert not sandbox.frozen
        with pytest.raises(SandboxUnavailable, match="gone"):
            await sandbox.freeze()
        await sandbox.thaw()

    async def test_a_signal_reaches_a_process_when_it_is_thawed(self, sandbox: Sandbox) -> None:
        """It is not lost."""
        process = await sandbox.start(code(_TICKING))
        await _frozen(sandbox)
        await process.signal(15)
        await sandbox.thaw()
        assert (await finish(process)).exit.signal == 15
