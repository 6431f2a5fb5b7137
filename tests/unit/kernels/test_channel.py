"""One zmq socket on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq

from workbench.kernels.audience import Audience
from workbench.kernels.channel import ZmqChannel, make_socket

PATIENCE_S = 20.0


@pytest.fixture
def context() -> Iterator[zmq.Context[Any]]:
    made: zmq.Context[Any] = zmq.Context()
    yield made
    made.destroy(0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_message_that_cannot_be_handled_does_not_stop_those_behind_it(context: zmq.Context[Any]) -> None:
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, facts: told.append(str(facts["exception"])))
    taken: list[bytes] = []

    def take(frames: list[bytes]) -> None:
        if frames == [b"bad"]:
            raise ValueError("cannot be handled")
        taken.append(frames[0])

    pull = make_socket(context, zmq.PULL, LINGER=0)
    pull.bind("inproc://channel")
    push = make_socket(context, zmq.PUSH, LINGER=0)
    push.connect("inproc://channel")
    for word in (b"one", b"bad", b"two", b"bad", b"three"):
        push.send(word)
    channel = ZmqChannel(pull, take)
    await until(lambda: len(taken) == 3)
    channel.close()
    push.close()
    assert taken == [b"one", b"two", b"three"]
    assert told == ["cannot be handled"] * 2


async def test_a_channel_paused_by_two_goes_on_when_both_let_it(context: zmq.Context[Any]) -> None:
    taken: list[list[bytes]] = []
    pull = make_socket(context, zmq.PULL, LINGER=0)
    pull.bind("inproc://paused")
    push = make_socket(context, zmq.PUSH, LINGER=0)
    push.connect("inproc://paused")
    channel = ZmqChannel(pull, taken.append)
    channel.pause("one")
    channel.pause("other")
    push.send(b"x")
    channel.resume("one")
    for _ in range(10):
        await asyncio.sleep(0)
    assert not taken
    channel.resume("other")
    await until(lambda: bool(taken))
    channel.close()
    push.close()


async def test_a_visitor_that_is_slow_is_waited_for_and_gets_everything(context: zmq.Context[Any]) -> None:
    held: list[bool] = []
    greeted: list[list[bytes]] = []
    audience = Audience(context, "inproc://slow", greeted.append)
    audience.hold = held.append
    visitor = make_socket(context, zmq.SUB, LINGER=0, RCVHWM=1)
    visitor.setsockopt(zmq.SUBSCRIBE, b"")
    visitor.connect("inproc://slow")
    await until(lambda: bool(greeted))
    for number in range(3000):
        audience.send([str(number).encode()])
    assert held == [True]
    got: list[int] = []

    def read() -> bool:
        while visitor.poll(0):
            got.append(int(visitor.recv()))
        return len(got) == 3000

    await until(read)
    await until(lambda: held == [True, False])
    audience.close()
    visitor.close()
    assert got == list(range(3000))


async def test_a_look_takes_in_what_the_loop_has_not_got_to(context: zmq.Context[Any]) -> None:
    taken: list[list[bytes]] = []
    pull = make_socket(context, zmq.PULL, LINGER=0)
    pull.bind("inproc://look")
    push = make_socket(context, zmq.PUSH, LINGER=0)
    push.connect("inproc://look")
    channel = ZmqChannel(pull, taken.append)
    assert not channel.look()
    push.send(b"one")
    assert channel.look()
    assert taken == [[b"one"]]
    channel.pause("somebody")
    push.send(b"two")
    assert channel.look(), "there may be something, which may not be taken"
    assert len(taken) == 1
    channel.close()
    push.close()
