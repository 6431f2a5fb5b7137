"""Who may freeze a sandbox, and who comes first."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.host.stand_ins import StandInSandbox

from workbench.errors import Conflict
from workbench.host.freezing import Freezer


class SlowSandbox(StandInSandbox):
    """Takes its time to stand still."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def freeze(self) -> bool:
        await self.gate.wait()
        return await super().freeze()


async def test_it_is_frozen_while_nobody_needs_it_and_thawed_for_who_does() -> None:
    sandbox = StandInSandbox()
    freezer = Freezer(sandbox, lambda: False)
    assert await freezer.freeze()
    freezer.check_frozen()
    async with freezer.in_use():
        assert not sandbox.frozen
        assert not await freezer.freeze()
        async with freezer.in_use():
            pass
        assert not await freezer.freeze(), "one of the two still uses it"
    assert await freezer.freeze()


async def test_what_goes_on_by_itself_keeps_it_thawed() -> None:
    busy = [True]
    freezer = Freezer(StandInSandbox(), lambda: busy[0])
    assert not await freezer.freeze()
    busy[0] = False
    assert await freezer.freeze()


async def test_what_was_begun_while_it_froze_is_let_go_on() -> None:
    sandbox, busy = SlowSandbox(), [False]
    freezer = Freezer(sandbox, lambda: busy[0])
    freezing = asyncio.create_task(freezer.freeze())
    await asyncio.sleep(0)
    async with freezer.in_use():
        busy[0] = True
    sandbox.gate.set()
    assert not await freezing
    assert not sandbox.frozen


async def test_who_has_asked_for_it_already_comes_before_its_end() -> None:
    sandbox = StandInSandbox()
    freezer = Freezer(sandbox, lambda: False)
    with pytest.raises(Conflict, match="sandbox sb is not frozen"):
        freezer.check_frozen()
    await freezer.freeze()
    async with freezer.in_use():
        # As if the thaw had not come through yet.
        sandbox.frozen = True
        with pytest.raises(Conflict):
            freezer.check_frozen()


async def test_one_that_gives_up_waiting_uses_it_no_longer() -> None:
    sandbox = StandInSandbox()
    freezer = Freezer(sandbox, lambda: False)

    async def use() -> None:
        async with freezer.in_use():
            await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await asyncio.sleep(0)
    assert not await freezer.freeze()
    using.cancel()
    await asyncio.wait([using])
    assert await freezer.freeze()
