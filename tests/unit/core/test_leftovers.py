"""What processes that were killed on their way leave behind: sessions in the making or being deleted, and sandboxes."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

import pytest
from tests.unit.core.standins import World
from tests.unit.core.test_caretaker import HOUR, MINUTE, ONE, TWO, later, state, used

from workbench.core import requests
from workbench.core.caretaker import Caretaker
from workbench.errors import KernelUnavailable, NotFound
from workbench.model.execution import MemoryState


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def caretaker(world: World) -> Caretaker:
    return world.caretaker()


class Killed(BaseException):
    pass


async def killed(world: World, working: Awaitable[object], *steps: str) -> None:
    """At the first of these steps, without a chance to clear up."""
    for step in steps:
        world.host.fail[step] = Killed()
    with pytest.raises(Killed):
        await working
    world.host.fail.clear()


async def test_a_branch_whose_maker_was_killed_is_deleted_and_its_family_cared_for(
    world: World, caretaker: Caretaker
) -> None:
    await used(world)
    await killed(world, world.bench().branch(requests.BranchSession(session=ONE, branch=TWO)), "branch", "end kernel")
    later(world, 5 * MINUTE)
    await caretaker.look()
    assert {one.spec.id for one in await world.store.family((await world.store.get(ONE)).mount)} == {ONE, TWO}
    later(world, 13 * HOUR)
    assert (await caretaker.look()).ended == 1
    assert [one.spec.id for one in await world.store.family((await world.store.get(ONE)).mount)] == [ONE]
    assert world.host.sandboxes == {}


async def test_one_whose_deleter_was_killed_is_deleted(world: World, caretaker: Caretaker) -> None:
    await used(world)
    await killed(world, world.bench().delete_session(requests.DeleteSession(session=ONE)), "close")
    later(world, 11 * MINUTE)
    assert (await caretaker.look()).problems == ()
    assert (world.host.sandboxes, world.mounts.removed) == ({}, ["one"])
    with pytest.raises(NotFound):
        await world.store.get(ONE)


async def test_one_that_cannot_be_deleted_is_told_and_keeps_it_from_nothing(world: World, caretaker: Caretaker) -> None:
    await used(world)
    await killed(world, world.bench().delete_session(requests.DeleteSession(session=ONE)), "close")
    await used(world, TWO)
    later(world, 16 * MINUTE)
    world.host.fail["close"] = KernelUnavailable("stuck")
    done = await caretaker.look()
    assert (done.frozen, done.problems) == (1, ("session one, which was not deleted to its end: stuck",))


async def test_a_sandbox_in_which_nothing_ever_began_is_ended(world: World, caretaker: Caretaker) -> None:
    await world.bench().create_session(requests.CreateSession(session=ONE))
    await killed(world, world.bench().run_cell(requests.RunCell(session=ONE, code="x=1")), "start")
    later(world, 5 * MINUTE)
    assert ((await caretaker.look()).ended, len(world.host.sandboxes)) == (0, 1)
    later(world, 11 * MINUTE)
    assert ((await caretaker.look()).ended, len(world.host.sandboxes)) == (1, 0)
    after = await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    # There was nothing to lose.
    assert after.receipt.state is MemoryState.INTACT


async def test_who_begins_in_it_just_then_keeps_it(world: World, caretaker: Caretaker) -> None:
    await world.bench().create_session(requests.CreateSession(session=ONE))
    await killed(world, world.bench().run_cell(requests.RunCell(session=ONE, code="x=1")), "start")
    later(world, HOUR)

    async def somebody_comes() -> None:
        await world.bench().run_cell(requests.RunCell(session=ONE, code="y=1"))

    world.host.afterwards["freeze"] = somebody_comes
    assert (await caretaker.look()).ended == 0
    assert (await state(world), (await world.store.get(ONE)).epoch) == ("idle", 1)


async def test_a_branch_that_has_not_begun_is_no_reason_to_end_what_its_family_lives_in(
    world: World, caretaker: Caretaker
) -> None:
    await used(world)
    await world.bench().branch(requests.BranchSession(session=ONE, branch=TWO))
    cold = await world.store.get(TWO)
    assert await world.store.replace(cold, replace(cold, begun=False))
    later(world, 14 * MINUTE)
    assert ((await caretaker.look()).ended, len(world.host.sandboxes)) == (0, 1)
