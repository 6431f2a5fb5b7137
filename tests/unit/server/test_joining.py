"""Calls of the same mark are one while the first is under way, and nothing is remembered after it."""

from __future__ import annotations

import asyncio

import pytest

from workbench.errors import NotFound
from workbench.model.access import Caller
from workbench.model.ids import KeyId, ProjectId, SessionId
from workbench.server.joining import Joining, mark_of
from workbench.server.kept import Kept
from workbench.server.logs import Log

KEY = Caller(project=ProjectId("p"), key=KeyId("k"))


class Work:
    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.count = 0

    async def __call__(self) -> int:
        self.count += 1
        await self.gate.wait()
        return self.count


@pytest.fixture
def joining() -> Joining:
    return Joining(Kept(Log("error", lambda _: None)))


async def test_the_second_gets_the_end_of_the_first_and_the_third_is_new(joining: Joining) -> None:
    work = Work()
    first, second = joining.start("a", work, "x"), joining.start("a", work, "x")
    other = joining.start("b", work, "x")
    assert first is second
    assert other is not first
    work.gate.set()
    assert [await first, await second, await other] == [1, 1, 2]
    await asyncio.sleep(0)
    assert joining._tasks == {}
    assert await joining.start("a", work, "x") == 3


async def test_a_failure_is_told_to_both_and_not_remembered(joining: Joining) -> None:
    async def fails() -> None:
        raise NotFound("none")

    first, second = joining.start("a", fails, "x"), joining.start("a", fails, "x")
    for task in (first, second):
        with pytest.raises(NotFound):
            await task
    await asyncio.sleep(0)
    assert joining._tasks == {}


async def test_who_stops_waiting_ends_nothing_for_the_other(joining: Joining) -> None:
    work = Work()
    task = joining.start("a", work, "x")
    waiting = asyncio.create_task(asyncio.wait((task,)))
    await asyncio.sleep(0)
    waiting.cancel()
    assert joining.start("a", work, "x") is task
    work.gate.set()
    assert await task == 1


def test_calls_that_differ_in_anything_have_other_marks() -> None:
    same = mark_of(KEY, "execute", "one", {"a": 1, "b": 2})
    assert same == mark_of(KEY, "execute", "one", {"b": 2, "a": 1})
    others = {
        mark_of(Caller(project=ProjectId("p"), key=KeyId("l")), "execute", "one", {"a": 1, "b": 2}),
        mark_of(
            Caller(project=ProjectId("p"), key=KeyId("k"), session=SessionId("one")), "execute", "one", {"a": 1, "b": 2}
        ),
        mark_of(Caller(project=ProjectId("q"), key=KeyId("k")), "execute", "one", {"a": 1, "b": 2}),
        mark_of(KEY, "execute_meta", "one", {"a": 1, "b": 2}),
        mark_of(KEY, "execute", "two", {"a": 1, "b": 2}),
        mark_of(KEY, "execute", "one", {"a": 1, "b": 3}),
        mark_of(KEY, "execute", "one", {"a": 1, "b": 2}, "chosen"),
    }
    assert len(others | {same}) == 8
