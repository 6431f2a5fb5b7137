"""Saves in the background: once for many calls, again after a failure, and bounded at the end."""

from __future__ import annotations

import asyncio

from workbench.errors import StoreUnavailable
from workbench.model.ids import MountId
from workbench.storage.objects.saving import BackgroundSaves

MINE = MountId("mine")


class Saver:
    def __init__(self) -> None:
        self.saved = 0
        self.running = 0
        self.most_running = 0
        self.unsaved = 0
        self.problem: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()

    async def save(self, mount: MountId) -> bool:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.go.wait()
            if self.problem is not None:
                raise self.problem
            self.saved += 1
            return self.unsaved > 0
        finally:
            self.running -= 1


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_many_calls_during_a_save_are_one_more_save() -> None:
    saver = Saver()
    saver.go.clear()
    saves = BackgroundSaves(saver.save)
    saves.soon(MINE)
    await until(lambda: saver.running)
    for _ in range(100):
        saves.soon(MINE)
    saver.go.set()
    await saves.aclose(5.0, lambda: None)
    assert (saver.saved, saver.most_running) == (2, 1)


async def test_what_failed_is_told_once_and_tried_again_until_nothing_is_left() -> None:
    saver = Saver()
    saver.problem = StoreUnavailable("it is away")
    saves = BackgroundSaves(saver.save)
    saves.soon(MINE)
    await until(lambda: saves._problems)
    assert saves.again() == ("files of mine: it is away",)
    saver.problem = None
    saver.unsaved = 1
    await until(lambda: saver.saved == 1)
    saver.unsaved = 0
    assert saves.again() == ()
    await until(lambda: saver.saved == 2)
    await until(lambda: not saves._left)
    saves.again()
    await saves.aclose(5.0, lambda: None)
    assert saver.saved == 2


async def test_the_end_waits_for_what_is_asked_for_and_not_for_ever() -> None:
    saver = Saver()
    saves = BackgroundSaves(saver.save)
    saves.soon(MINE)
    await saves.aclose(5.0, lambda: None)
    assert saver.saved == 1
    hanging = Saver()
    hanging.go.clear()
    saves = BackgroundSaves(hanging.save)
    saves.soon(MINE)
    stopped: list[bool] = []
    async with asyncio.timeout(5):
        await saves.aclose(0.01, lambda: stopped.append(True))
    assert (hanging.saved, stopped) == (0, [True])
    saves.soon(MINE)
    assert not saves._tasks


async def test_a_problem_of_any_kind_is_told_and_the_mount_is_saved_again() -> None:
    saver = Saver()
    saver.problem = OSError(5, "Input/output error")
    saves = BackgroundSaves(saver.save)
    saves.soon(MINE)
    await until(lambda: saves._problems)
    saver.problem = None
    assert saves.again() == ("files of mine: OSError: [Errno 5] Input/output error",)
    await until(lambda: saver.saved == 1)
    await saves.aclose(5.0, lambda: None)
