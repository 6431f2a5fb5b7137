"""Threads that are waited for, whoever is cancelled and however often."""

from __future__ import annotations

import asyncio
import threading

import pytest

from workbench.threads import to_its_end


async def test_who_is_cancelled_twice_waits_for_the_thread_all_the_same() -> None:
    begun, may_end, undone = threading.Event(), threading.Event(), list[str]()

    def work(word: str) -> str:
        begun.set()
        assert may_end.wait(10)
        return word

    task = asyncio.create_task(to_its_end(work, "made", undo=undone.append))
    assert await asyncio.to_thread(begun.wait, 10)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert undone == ["made"]


async def test_work_that_waits_is_asked_to_leave() -> None:
    leaving = threading.Event()
    task = asyncio.create_task(to_its_end(leaving.wait, 10, leave=leaving.set))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


async def test_what_the_work_raises_is_raised_and_lost_only_by_who_is_cancelled() -> None:
    with pytest.raises(ZeroDivisionError):
        await to_its_end(divmod, 1, 0)
    leaving = threading.Event()

    def fails() -> None:
        leaving.wait(10)
        raise ValueError

    task = asyncio.create_task(to_its_end(fails, leave=leaving.set))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
