"""The desk: each call to one client, once, and the truth to whoever asked."""

from __future__ import annotations

import asyncio

import pytest

from workbench.errors import Conflict, HostUnavailable, InvalidRequest
from workbench.host.calls.desk import Call, CallDesk
from workbench.model.calls import CallAnswer, Caller
from workbench.model.ids import SandboxId

SOON_S = 5.0


def a_call(body: bytes = b"{}") -> Call:
    return Call(Caller(sandbox=SandboxId("sb")), body)


async def asked(desk: CallDesk, call: Call) -> asyncio.Task[CallAnswer]:
    """It lies on the desk."""
    task = asyncio.create_task(desk.ask(call))
    await asyncio.sleep(0)
    return task


async def test_a_call_is_handed_out_once() -> None:
    desk = CallDesk()
    call = a_call()
    asking = await asked(desk, call)
    assert (await desk.take("one", rank=0, wait_s=0))[0] == [call]
    assert (await desk.take("two", rank=0, wait_s=0))[0] == []
    desk.answer("one", call.id, CallAnswer(body=b"1"))
    assert (await asking).body == b"1"


async def test_another_client_cannot_answer_for_it() -> None:
    desk = CallDesk()
    call = a_call()
    asking = await asked(desk, call)
    await desk.take("one", rank=0, wait_s=0)
    with pytest.raises(Conflict, match="taken by another"):
        desk.answer("two", call.id, CallAnswer(body=b"forged"))
    desk.answer("one", call.id, CallAnswer(body=b"true"))
    assert (await asking).body == b"true"


async def test_what_nobody_takes_was_not_done() -> None:
    desk = CallDesk(taken_within_s=0.01)
    with pytest.raises(HostUnavailable, match="nothing was done"):
        await desk.ask(a_call())
    assert (await desk.take("one", rank=0, wait_s=0))[0] == []


async def test_a_client_that_leaves_leaves_its_calls_to_nobody_else() -> None:
    desk = CallDesk()
    asking = await asked(desk, a_call())
    await desk.take("one", rank=0, wait_s=0)
    desk.left("one")
    with pytest.raises(HostUnavailable, match="whether it was carried out is not known"):
        await asking
    assert (await desk.take("two", rank=0, wait_s=0))[0] == []


async def test_who_waits_for_calls_is_woken() -> None:
    desk = CallDesk()
    taking = asyncio.create_task(desk.take("one", rank=0, wait_s=SOON_S))
    await asyncio.sleep(0)
    call = a_call()
    asking = await asked(desk, call)
    async with asyncio.timeout(SOON_S):
        assert (await taking)[0] == [call]
    desk.answer("one", call.id, CallAnswer(body=b""))
    await asking


async def test_a_higher_rank_waits_for_the_lower_to_leave() -> None:
    desk = CallDesk()
    await desk.take("server", rank=0, wait_s=0)
    call = a_call()
    asking = await asked(desk, call)
    taking = asyncio.create_task(desk.take("command", rank=1, wait_s=SOON_S))
    await asyncio.sleep(0)
    assert not taking.done()
    desk.left("server")
    async with asyncio.timeout(SOON_S):
        assert (await taking)[0] == [call]
    desk.answer("command", call.id, CallAnswer(body=b""))
    await asking


async def test_a_caller_that_gives_up_is_told_to_its_client_once() -> None:
    desk = CallDesk()
    call = a_call()
    asking = await asked(desk, call)
    await desk.take("one", rank=0, wait_s=0)
    asking.cancel()
    await asyncio.wait([asking])
    assert (await desk.take("one", rank=0, wait_s=0))[1] == [call.id]
    assert (await desk.take("one", rank=0, wait_s=0))[1] == []
    desk.answer("one", call.id, CallAnswer(body=b"late"))


async def test_large_calls_come_in_pages() -> None:
    desk = CallDesk()
    calls = [a_call(b"x" * 5 * 2**20) for _ in range(3)]
    asking = [await asked(desk, call) for call in calls]
    pages = [(await desk.take("one", rank=0, wait_s=0))[0] for _ in range(3)]
    assert pages == [[call] for call in calls]
    desk.left("one")
    await asyncio.wait(asking)
    assert all(isinstance(task.exception(), HostUnavailable) for task in asking)


async def test_a_rank_below_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        await CallDesk().take("one", rank=-1, wait_s=0)
