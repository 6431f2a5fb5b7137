"""When what may be wanted ahead is started, put off, given up and ended."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from workbench.contracts.engine import HeadStart
from workbench.engines.namespace import ahead as ahead_module
from workbench.engines.namespace.ahead import AheadSlots
from workbench.engines.namespace.channel import HostChannel
from workbench.engines.namespace.limits.rlimits import RlimitGroup
from workbench.engines.namespace.slot import Slot
from workbench.engines.namespace.warm import LEAST_FREE_BYTES
from workbench.engines.namespace.zygote import Zygote
from workbench.errors import SandboxUnavailable
from workbench.testing.driving import eventually
from workbench_guest.messages import Prepare, decode


@dataclass(frozen=True, slots=True)
class Wish:
    """What is begun ahead."""

    name: str

    def begin(self) -> HeadStart:
        return HeadStart(entry="kernel", payload=b"p", env={"A": self.name}, passed=(), close=lambda: None, made=None)


class Slots:
    """Real processes and channels, without a zygote: mocked at the edge of the engine's processes."""

    def __init__(self) -> None:
        self.zygote = self.new_zygote()
        self.made: list[Slot] = []
        self.far: list[socket.socket] = []
        self.asked = 0
        self.fails = False
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    @staticmethod
    def new_zygote() -> Zygote:
        return cast("Zygote", SimpleNamespace(alive=False, grown_from=None, check=lambda: True))

    async def prepare(self) -> Slot:
        self.asked += 1
        await self.may_go_on.wait()
        if self.fails:
            raise SandboxUnavailable("no more of them")
        # First: for a moment it has what we have, and the far end would not be closed with ours.
        child = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
        channel, theirs = HostChannel.pair()
        slot = Slot("s", child, os.pidfd_open(child), channel, RlimitGroup("s", 0, {0: 0}), self.zygote, [], {}, None)
        self.made.append(slot)
        self.far.append(theirs)
        return slot

    def ahead(self, **options: Any) -> AheadSlots:
        return AheadSlots(
            self.prepare, lambda _, begun: begun.env, **{"free_bytes": lambda: LEAST_FREE_BYTES, **options}
        )

    @property
    def living(self) -> list[Slot]:
        return [slot for slot in self.made if slot.pidfd >= 0]


@pytest.fixture
async def slots(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Slots]:
    monkeypatch.setattr(ahead_module, "_DELAY_S", 0.0)
    made = Slots()
    yield made
    left = made.living
    for slot in left:
        await slot.end()
    for far in made.far:
        far.close()
    assert left == [], "whoever has one ends it"


async def until(condition: Callable[[], bool], what: str) -> None:
    async def met() -> bool:
        return condition()

    await eventually(met, what)


async def filled(ahead: AheadSlots) -> None:
    """Whatever a fill has to do is done."""
    ahead.fill_soon()
    if ahead._filling is not None:
        await ahead._filling


async def test_nobody_gets_what_was_not_asked_for_and_equal_wishes_are_one(slots: Slots) -> None:
    ahead = slots.ahead()
    await filled(ahead)
    assert await ahead.get(None) is None
    assert await ahead.get(Wish("a")) is None
    assert await ahead.get(Wish("a")) is None
    await filled(ahead)
    await filled(ahead)
    assert (slots.asked, len(ahead.pids)) == (1, 1)
    order = decode(slots.far[0].recv(1 << 20))
    assert isinstance(order, Prepare)
    assert (order.entry, order.env) == ("kernel", {"A": "a"})
    assert await ahead.get(Wish("b")) is None
    taken = await ahead.get(Wish("a"))
    assert taken is slots.made[0]
    assert ahead.pids == ()
    await taken.end()
    await ahead.aclose()


async def test_one_that_has_said_something_while_it_waited_is_given_to_nobody(slots: Slots) -> None:
    ahead = slots.ahead()
    await ahead.get(Wish("a"))
    await filled(ahead)
    slots.far[0].send(b"it has ended")
    assert await ahead.get(Wish("a")) is None
    assert slots.living == []
    await ahead.aclose()


async def test_what_ends_while_it_waits_is_made_anew_each_time_later(slots: Slots) -> None:
    ahead = slots.ahead()
    await ahead.get(Wish("a"))
    (wanted,) = ahead._wanted.values()
    pauses = []
    for count in range(1, 12):
        wanted.not_before = 0.0
        await filled(ahead)
        assert slots.asked == count
        slots.far[-1].close()
        pauses.append(wanted.pause_s)
        await ahead.retire(slots.zygote)
        assert ahead._filling is None or ahead._filling.done(), "not before its time"
        assert slots.living == []
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    await ahead.aclose()


async def test_what_cannot_be_made_is_put_off_and_does_not_keep_others_from_being_made(slots: Slots) -> None:
    ahead = slots.ahead()
    await ahead.get(Wish("a"))
    slots.fails = True
    await filled(ahead)
    await filled(ahead)
    assert slots.asked == 1
    slots.fails = False
    await ahead.get(Wish("b"))
    await filled(ahead)
    assert (slots.asked, len(ahead.pids)) == (2, 1)
    await ahead.aclose()


async def test_what_nobody_asks_for_any_more_is_ended_and_not_made_again(slots: Slots) -> None:
    ahead = slots.ahead(idle_s=0.0)
    await ahead.get(Wish("a"))
    await filled(ahead)
    assert len(ahead.pids) == 1
    await ahead.retire(slots.zygote)
    await filled(ahead)
    assert (slots.living, ahead._wanted, slots.asked) == ([], {}, 1)


async def test_what_is_given_up_while_it_is_made_is_ended_then(slots: Slots) -> None:
    ahead = slots.ahead(idle_s=0.0)
    await ahead.get(Wish("a"))
    slots.may_go_on.clear()
    ahead.fill_soon()
    await until(lambda: slots.asked == 1, "one is on its way")
    await ahead.retire(slots.zygote)
    slots.may_go_on.set()
    await filled(ahead)
    assert (len(slots.made), slots.living, ahead.pids) == (1, [], ())


async def test_with_little_memory_none_is_made_or_kept_until_there_is_more(slots: Slots) -> None:
    free = [LEAST_FREE_BYTES]
    ahead = slots.ahead(free_bytes=lambda: free[0])
    await ahead.get(Wish("a"))
    await filled(ahead)
    free[0] -= 1
    await ahead.retire(slots.zygote)
    await filled(ahead)
    assert (slots.living, slots.asked) == ([], 1)
    free[0] += 1
    await ahead.retire(slots.zygote)
    await filled(ahead)
    assert (len(slots.living), slots.asked) == (1, 2)
    await ahead.aclose()


async def test_those_of_a_zygote_that_was_replaced_are_made_anew(slots: Slots) -> None:
    ahead = slots.ahead()
    await ahead.get(Wish("a"))
    await filled(ahead)
    slots.zygote = slots.new_zygote()
    await ahead.retire(slots.zygote)
    await filled(ahead)
    assert [slot.zygote for slot in slots.living] == [slots.zygote]
    await ahead.aclose()


async def test_an_end_waits_for_what_is_being_made_and_ends_it(slots: Slots) -> None:
    ahead = slots.ahead()
    await ahead.get(Wish("a"))
    slots.may_go_on.clear()
    ahead.fill_soon()
    await until(lambda: slots.asked == 1, "one is on its way")
    closing = asyncio.create_task(ahead.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    slots.may_go_on.set()
    await closing
    assert (len(slots.made), slots.living) == (1, [])
    ahead.fill_soon()
    assert slots.asked == 1
