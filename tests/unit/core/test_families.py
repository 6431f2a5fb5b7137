"""Sessions that share a sandbox: they leave one by one, change together, and move together."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from tests.unit.core.standins import HOST_ENDED, World

from workbench.core import requests
from workbench.errors import Conflict, HostUnavailable, NotFound, QuotaExceeded
from workbench.model.execution import MemoryState, Outcome
from workbench.model.ids import SandboxId, SessionId
from workbench.model.session import Session
from workbench.model.tier import LARGE, MEDIUM, STANDARD, Tier

ROOT, CHILD, GRANDCHILD = FAMILY = (SessionId("root"), SessionId("child"), SessionId("grandchild"))


@pytest.fixture
async def world() -> World:
    """With a session, its branch, and a branch of that."""
    made = World()
    await made.bench().create_session(requests.CreateSession(session=ROOT, eager=True))
    await made.bench().branch(requests.BranchSession(session=ROOT, branch=CHILD))
    await made.bench().branch(requests.BranchSession(session=CHILD, branch=GRANDCHILD))
    return made


async def records(world: World) -> list[Session]:
    return [one.session for one in (await world.bench().list_sessions(requests.ListSessions())).sessions]


async def delete(world: World, name: SessionId) -> None:
    await world.bench().delete_session(requests.DeleteSession(session=name))


async def run(world: World, name: SessionId, code: str = "x=1") -> MemoryState:
    return (await world.bench().run_cell(requests.RunCell(session=name, code=code))).receipt.state


@pytest.mark.parametrize("order", list(itertools.permutations(FAMILY)))
async def test_in_whatever_order_they_leave_the_last_closes_up(world: World, order: tuple[SessionId, ...]) -> None:
    for gone, name in enumerate(order):
        (sandbox,) = world.host.sandboxes.values()
        assert (len(sandbox.kernels), world.mounts.removed) == (3 - gone, [])
        assert [await run(world, left) for left in order[gone:]] == [MemoryState.INTACT] * (3 - gone)
        await delete(world, name)
    assert (world.host.sandboxes, world.mounts.removed, await records(world)) == ({}, ["root"], [])


async def test_those_who_leave_at_once_leave_nothing_and_nobody_is_hindered(world: World) -> None:
    await asyncio.gather(*(delete(world, name) for name in FAMILY))
    assert (world.host.sandboxes, world.mounts.removed, await records(world)) == ({}, ["root"], [])


@pytest.mark.parametrize("stays", FAMILY)
async def test_of_those_who_leave_at_once_none_takes_the_files_of_who_stays(world: World, stays: SessionId) -> None:
    await asyncio.gather(*(delete(world, name) for name in FAMILY if name != stays))
    assert (world.mounts.removed, [one.spec.id for one in await records(world)]) == ([], [stays])
    assert await run(world, stays) is MemoryState.INTACT


async def test_the_same_one_deleted_twice_at_once_is_deleted(world: World) -> None:
    ended = await asyncio.gather(*(delete(world, CHILD) for _ in range(3)), return_exceptions=True)
    assert all(one is None or isinstance(one, NotFound) for one in ended)
    assert [one.spec.id for one in await records(world)] == ["grandchild", "root"]
    assert world.mounts.removed == []


async def test_a_delete_that_was_interrupted_can_be_repeated_and_blocks_nobody(world: World) -> None:
    world.host.fail["end kernel"] = HostUnavailable("no word")
    with pytest.raises(HostUnavailable):
        await delete(world, ROOT)
    with pytest.raises(Conflict, match="being deleted"):
        await run(world, ROOT)
    assert await run(world, CHILD) is MemoryState.INTACT
    world.host.die()
    assert await run(world, CHILD) is MemoryState.LOST
    world.host.fail.clear()
    await delete(world, CHILD)
    await delete(world, GRANDCHILD)
    assert world.mounts.removed == []
    await delete(world, ROOT)
    assert (world.host.sandboxes, world.mounts.removed, await records(world)) == ({}, ["root"], [])


async def test_the_last_closes_the_sandbox_that_the_others_moved_to_meanwhile(world: World) -> None:
    async def move_and_leave() -> None:
        world.host.die()
        await run(world, CHILD)
        await delete(world, CHILD)
        await delete(world, GRANDCHILD)

    world.host.meanwhile["end kernel"] = move_and_leave
    await delete(world, ROOT)
    assert (world.host.sandboxes, world.mounts.removed, await records(world)) == ({}, ["root"], [])


async def test_without_a_host_they_can_be_deleted(world: World) -> None:
    world.host.die()
    for name in FAMILY:
        await delete(world, name)
    assert (world.mounts.removed, await records(world)) == (["root"], [])


async def test_a_name_is_free_again_when_its_files_are(world: World) -> None:
    await delete(world, ROOT)
    with pytest.raises(Conflict, match="still those of its branches"):
        await world.bench().create_session(requests.CreateSession(session=ROOT))
    await delete(world, CHILD)
    await delete(world, GRANDCHILD)
    await world.bench().create_session(requests.CreateSession(session=ROOT))


async def test_a_branch_of_a_branch_goes_on_when_those_before_it_are_deleted(world: World) -> None:
    await delete(world, ROOT)
    await delete(world, CHILD)
    made = await world.bench().branch(requests.BranchSession(session=GRANDCHILD, branch=SessionId("late")))
    session = made.described.session
    assert (session.mount, session.principal, session.parent) == ("root", "root", "grandchild")
    world.host.die()
    assert await run(world, SessionId("late")) is MemoryState.LOST
    assert world.host.made[-1].mount == "root"
    assert await run(world, GRANDCHILD) is MemoryState.LOST
    assert len(world.host.sandboxes) == 1


async def test_a_cell_under_which_its_branch_is_deleted_still_has_a_result(world: World) -> None:
    running = asyncio.create_task(world.bench().run_cell(requests.RunCell(session=CHILD, code="hang")))
    while "accepted" not in world.host.asked:
        await asyncio.sleep(0)
    await delete(world, CHILD)
    assert (await running).outcome is Outcome.LOST
    assert await run(world, ROOT) is MemoryState.INTACT


@pytest.mark.parametrize("late", [False, True])
async def test_one_deleted_while_its_kernel_is_made_takes_only_that_along(world: World, late: bool) -> None:
    world.host.die()
    await run(world, ROOT)
    (world.host.afterwards if late else world.host.meanwhile)["start"] = lambda: delete(world, CHILD)
    with pytest.raises(NotFound):
        await run(world, CHILD)
    (sandbox,) = world.host.sandboxes.values()
    assert (list(sandbox.kernels), world.mounts.removed) == (["main"], [])
    assert await run(world, ROOT) is MemoryState.INTACT


async def test_all_deleted_while_one_is_made_leave_nothing(world: World) -> None:
    world.host.die()
    await run(world, ROOT)

    async def delete_all() -> None:
        for name in FAMILY:
            await delete(world, name)

    world.host.meanwhile["create"] = delete_all
    with pytest.raises(NotFound):
        await run(world, CHILD)
    assert (world.host.sandboxes, await records(world)) == ({}, [])
    assert set(world.mounts.removed) == {"root"}


async def test_a_tier_changes_once_and_all_have_it(world: World) -> None:
    world.host.asked.clear()
    await world.bench().change_tier(requests.ChangeTier(session=GRANDCHILD, tier=LARGE))
    assert world.host.asked.count("tier") == 1
    assert [one.spec.tier for one in await records(world)] == [LARGE] * 3
    world.host.die()
    for name in FAMILY:
        await run(world, name)
    assert world.host.made[-1].tier == LARGE
    assert len(world.host.made) == 2


async def test_a_tier_that_is_refused_changes_for_nobody(world: World) -> None:
    world.host.fail["tier"] = QuotaExceeded("it uses more than that")
    with pytest.raises(QuotaExceeded):
        await world.bench().change_tier(requests.ChangeTier(session=CHILD, tier=LARGE))
    assert [one.spec.tier for one in await records(world)] == [STANDARD] * 3


async def test_a_tier_changed_by_one_who_has_not_begun_reaches_the_sandbox_that_another_has(world: World) -> None:
    world.host.die()
    await run(world, ROOT)
    await world.bench().change_tier(requests.ChangeTier(session=CHILD, tier=MEDIUM))
    (sandbox,) = world.host.sandboxes.values()
    assert sandbox.tier == MEDIUM
    assert await run(world, CHILD) is MemoryState.LOST
    assert len(world.host.sandboxes) == 1


async def test_a_tier_changed_while_another_begins_reaches_its_sandbox(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.host.die()
    world.host.fail["create"] = HostUnavailable("no word")
    with pytest.raises(HostUnavailable):
        await run(world, ROOT)
    world.host.fail.clear()
    assert not any(one.begun for one in await records(world))
    real = world.store.change_tier

    async def begun_first(sandbox: SandboxId, tier: Tier, *, cold: bool) -> bool:
        monkeypatch.undo()
        await run(world, ROOT)
        return await real(sandbox, tier, cold=cold)

    monkeypatch.setattr(world.store, "change_tier", begun_first)
    await world.bench().change_tier(requests.ChangeTier(session=CHILD, tier=MEDIUM))
    (sandbox,) = world.host.sandboxes.values()
    assert (sandbox.tier, sandbox.order.sandbox) == (MEDIUM, (await world.store.get(ROOT)).sandbox)


async def test_a_loss_moves_all_to_one_new_sandbox_and_each_is_told_once(world: World) -> None:
    world.host.die()
    states = [await run(world, name) for name in (CHILD, ROOT, GRANDCHILD)]
    assert states == [MemoryState.LOST] * 3
    assert [await run(world, name) for name in FAMILY] == [MemoryState.INTACT] * 3
    assert ([order.lost_before for order in world.host.started[1:]], len(world.host.sandboxes)) == ([HOST_ENDED] * 3, 1)
    assert [(one.epoch, one.sandbox) for one in await records(world)] == [(2, world.host.made[-1].sandbox)] * 3


async def test_a_loss_that_all_notice_at_once_moves_them_once(world: World) -> None:
    world.host.end(world.host.made[-1].sandbox, "disk full")
    await asyncio.gather(*(run(world, name, "say hi") for name in FAMILY * 3))
    assert (len(world.host.made), len(world.host.sandboxes)) == (2, 1)
    assert {(one.epoch, one.sandbox) for one in await records(world)} == {(2, world.host.made[-1].sandbox)}


async def test_a_second_loss_before_one_was_used_again_is_told_as_the_first(world: World) -> None:
    world.host.die()
    await run(world, ROOT)
    world.host.end((await world.store.get(ROOT)).sandbox, "disk full")
    await run(world, ROOT)
    result = await world.bench().run_cell(requests.RunCell(session=CHILD, code="x=1"))
    assert (result.receipt.epoch, result.receipt.reason) == (3, HOST_ENDED)


async def test_a_cell_that_takes_the_sandbox_along_is_a_loss_for_all(world: World) -> None:
    result = await world.bench().run_cell(requests.RunCell(session=CHILD, code="die"))
    assert (result.outcome, result.receipt.epoch) == (Outcome.LOST, 2)
    assert await run(world, CHILD) is MemoryState.INTACT
    assert await run(world, ROOT) is MemoryState.LOST
    assert len(world.host.sandboxes) == 1


async def test_a_loss_is_noticed_by_one_who_had_nothing_in_it_before_it_is_made_anew(world: World) -> None:
    world.host.die()
    await run(world, ROOT)
    world.host.die()
    assert await run(world, CHILD) is MemoryState.LOST
    assert await run(world, ROOT) is MemoryState.LOST
    assert [one.epoch for one in await records(world)] == [3, 3, 3]
    assert len(world.host.sandboxes) == 1


async def test_a_loss_in_the_middle_of_the_making_is_noticed_as_well(world: World) -> None:
    world.host.die()
    await run(world, ROOT)

    async def end() -> None:
        world.host.die()

    world.host.meanwhile["create"] = end
    assert await run(world, CHILD) is MemoryState.LOST
    assert await run(world, ROOT) is MemoryState.LOST
    assert len(world.host.sandboxes) == 1


async def test_one_that_is_deleted_meanwhile_is_not_taken_for_a_loss(world: World) -> None:
    world.host.die()
    await run(world, ROOT)
    await run(world, GRANDCHILD)
    world.host.meanwhile["describe kernel"] = lambda: delete(world, GRANDCHILD)
    assert await run(world, CHILD) is MemoryState.LOST
    assert await run(world, ROOT) is MemoryState.INTACT


async def test_a_sandbox_made_anew_while_others_move_on_does_not_stand_in_their_way(world: World) -> None:
    world.host.die()
    await run(world, ROOT)

    async def move_on() -> None:
        world.host.die()
        await run(world, ROOT)
        world.host.die()

    world.host.meanwhile["create"] = move_on
    assert await run(world, CHILD) is MemoryState.LOST
    assert await run(world, ROOT) is MemoryState.LOST
    assert len(world.host.sandboxes) == 1


async def test_one_who_looks_for_its_memory_in_a_sandbox_made_anew_is_told_of_the_loss(world: World) -> None:
    world.host.die()
    await run(world, ROOT)

    async def made_anew_and_used() -> None:
        async def use() -> None:
            assert await run(world, ROOT) is MemoryState.LOST

        world.host.die()
        world.host.meanwhile["describe kernel"] = use

    world.host.meanwhile["create"] = made_anew_and_used
    assert await run(world, CHILD) is MemoryState.LOST
    assert [await run(world, name) for name in (ROOT, CHILD)] == [MemoryState.INTACT] * 2
    assert len(world.host.sandboxes) == 1


async def test_a_cell_for_a_kernel_that_was_ended_with_its_session_tells_that(world: World) -> None:
    world.host.meanwhile["run"] = lambda: delete(world, CHILD)
    with pytest.raises(NotFound, match="sessions ls"):
        await run(world, CHILD)
    assert world.host.ran == []
