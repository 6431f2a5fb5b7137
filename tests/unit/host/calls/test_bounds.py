"""Pace and room: what one sandbox may have of the host, and what all may have together."""

from __future__ import annotations

import asyncio
import time

from workbench.host.calls.pace import Pace
from workbench.host.calls.room import AllRoom, Room

MIB = 2**20


async def test_after_a_rest_some_go_at_once_and_the_others_at_their_pace() -> None:
    pace = Pace(a_second=100, at_once=50)
    began = time.monotonic()
    for _ in range(50):
        await pace.take(1)
    assert time.monotonic() - began < 0.2
    for _ in range(30):
        await pace.take(1)
    assert time.monotonic() - began >= 0.25


async def test_those_who_wait_together_wait_in_turn() -> None:
    pace = Pace(a_second=100, at_once=0.001)
    order: list[int] = []

    async def one(number: int) -> None:
        await pace.take(1)
        order.append(number)

    await asyncio.gather(*(one(number) for number in range(10)))
    assert order == list(range(10))


def test_a_sandbox_has_its_room_and_gives_it_back() -> None:
    room = Room(AllRoom(100 * MIB), 10 * MIB)
    with room.held() as more:
        assert more(9 * MIB)
        assert not more(2 * MIB)
        assert more(1 * MIB)
    with room.held() as more:
        assert more(10 * MIB)


def test_many_sandboxes_together_have_no_more_than_the_host_can_hold_and_small_calls_go_on() -> None:
    everyone = AllRoom(20 * MIB)
    first, second, third = (Room(everyone, 15 * MIB) for _ in range(3))
    with first.held() as more, second.held() as more_of_second, third.held() as more_of_third:
        assert more(15 * MIB)
        assert more_of_second(5 * MIB)
        assert not more_of_third(1 * MIB)
        assert more_of_third(1000)
    assert everyone.left == 20 * MIB
