"""Undo, branches and copies: what they need, what they give, and what is left of one that failed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.core.standins import HOST_ENDED, FakeKernel, FakeSandbox, World

from workbench.core import requests
from workbench.errors import Conflict, HostUnavailable, InvalidRequest, KernelUnavailable, NotFound
from workbench.model.execution import MemoryState, Outcome
from workbench.model.ids import SessionId
from workbench.model.session import Session
from workbench.model.tier import LARGE

ONE, TWO = SessionId("one"), SessionId("two")


@pytest.fixture
async def world() -> World:
    """With a session that has x=1 and then x=2."""
    made = World()
    await made.bench().create_session(requests.CreateSession(session=ONE, start_up="import this", env={"A": "b"}))
    for code in ("x=1", "x=2"):
        await made.bench().run_cell(requests.RunCell(session=ONE, code=code))
    return made


async def branch(world: World, of: SessionId = ONE, name: SessionId = TWO) -> requests.Branched:
    made = await world.bench().branch(requests.BranchSession(session=of, branch=name))
    assert isinstance(made, requests.Branched)
    return made


async def copy(world: World, name: SessionId = TWO) -> requests.CopiedSession:
    made = await world.bench().branch(requests.BranchSession(session=ONE, branch=name, copy=True))
    assert isinstance(made, requests.CopiedSession)
    return made


async def kernel(world: World, name: SessionId) -> FakeKernel:
    record = await world.store.get(name)
    return world.host.sandboxes[record.sandbox].kernels[record.kernel]


def only_sandbox(world: World) -> FakeSandbox:
    (sandbox,) = world.host.sandboxes.values()
    return sandbox


async def nothing_is_left_of(world: World, name: SessionId) -> None:
    with pytest.raises(NotFound):
        await world.store.get(name)
    sandbox = only_sandbox(world)
    assert (sandbox.order.mount, list(sandbox.kernels)) == ("one", ["main"])


@pytest.mark.parametrize("name", [f"user-{'a' * 24}", f"mcp-{'a' * 12}"])
async def test_a_branch_takes_no_name_that_is_kept_for_other_sessions(world: World, name: str) -> None:
    for make in (branch, copy):
        with pytest.raises(InvalidRequest, match="choose another one"):
            await make(world, name=SessionId(name))


async def test_an_undo_gives_the_earlier_memory_and_an_epoch_that_is_kept(world: World) -> None:
    undone = await world.bench().undo(requests.UndoCells(session=ONE))
    assert (undone.described.session.epoch, undone.not_carried) == (2, "a thread")
    assert (await world.store.get(ONE)).epoch == 2
    assert (await kernel(world, ONE)).names == {"x": "1"}
    assert undone.described.snapshots.kept == 1
    result = await world.bench().run_cell(requests.RunCell(session=ONE, code="y=1"))
    assert (result.receipt.epoch, result.receipt.state) == (2, MemoryState.INTACT)


async def test_several_cells_are_undone_at_once_but_no_more_than_are_kept(world: World) -> None:
    with pytest.raises(Conflict, match="2 are kept"):
        await world.bench().undo(requests.UndoCells(session=ONE, cells=3))
    assert (await world.store.get(ONE)).epoch == 1
    await world.bench().undo(requests.UndoCells(session=ONE, cells=2))
    assert (await kernel(world, ONE)).names == {}


@pytest.mark.parametrize("cells", [0, -1, 10**30])
async def test_what_is_no_number_of_cells_is_refused(world: World, cells: int) -> None:
    with pytest.raises(InvalidRequest, match="cells can be undone"):
        await world.bench().undo(requests.UndoCells(session=ONE, cells=cells))
    assert "undo" not in world.host.asked


async def _each_is_refused(world: World, why: str) -> None:
    asked = world.bench()
    for question in (
        asked.undo(requests.UndoCells(session=ONE)),
        asked.branch(requests.BranchSession(session=ONE, branch=TWO)),
        asked.branch(requests.BranchSession(session=ONE, branch=TWO, copy=True)),
    ):
        with pytest.raises(Conflict, match=f"{why}.*run in it what is needed"):
            await question
    with pytest.raises(NotFound):
        await world.store.get(TWO)


async def test_a_cold_session_has_nothing_to_go_back_to_or_to_branch_from() -> None:
    world = World()
    await world.bench().create_session(requests.CreateSession(session=ONE))
    await _each_is_refused(world, "nothing was run in it yet")
    assert world.host.asked == []


async def test_a_session_whose_sandbox_is_gone_is_told_so(world: World) -> None:
    world.host.end((await world.store.get(ONE)).sandbox, "disk full")
    await _each_is_refused(world, "its sandbox is gone: disk full")
    world.host.die()
    await _each_is_refused(world, f"its sandbox is gone: {HOST_ENDED}")
    assert world.host.sandboxes == {}
    assert (await world.store.get(ONE)).epoch == 1


async def test_a_branch_is_in_the_same_sandbox_and_has_the_same_names(world: World) -> None:
    made = await branch(world)
    parent, record = await world.store.get(ONE), made.described.session
    assert (record.sandbox, record.mount, record.principal, record.parent) == (parent.sandbox, "one", "one", "one")
    assert record.kernel != parent.kernel
    assert (record.spec, record.begun, record.unfinished) == (replace(parent.spec, id=TWO), True, False)
    assert (made.described.state, made.described.shared_with, made.not_carried) == ("idle", ("one",), "a thread")
    await world.bench().run_cell(requests.RunCell(session=TWO, code="x=9"))
    assert ((await kernel(world, ONE)).names, (await kernel(world, TWO)).names) == ({"x": "2"}, {"x": "9"})
    told = await world.bench().describe_session(requests.DescribeSession(session=ONE))
    assert told.shared_with == ("two",)


async def test_a_branch_of_a_branch_is_of_the_same_family(world: World) -> None:
    await branch(world)
    record = (await branch(world, TWO, SessionId("three"))).described.session
    assert (record.mount, record.principal, record.parent) == ("one", "one", "two")
    assert len(only_sandbox(world).kernels) == 3


async def test_branches_made_at_once_are_all_there(world: World) -> None:
    names = [SessionId(f"b{n}") for n in range(6)]
    await asyncio.gather(*(branch(world, name=name) for name in names))
    assert [one.spec.id for one in await world.store.family((await world.store.get(ONE)).mount)] == [*names, "one"]
    assert len(only_sandbox(world).kernels) == 7


async def test_of_two_who_want_the_same_name_one_gets_it_and_leaves_the_other_alone(world: World) -> None:
    made = await asyncio.gather(branch(world), branch(world), return_exceptions=True)
    assert sorted(type(one).__name__ for one in made) == ["Branched", "Conflict"]
    assert len(only_sandbox(world).kernels) == 2
    assert (await kernel(world, TWO)).names == {"x": "2"}


@pytest.mark.parametrize("name", ["../up", "tmp-x", "x" * 41, ""])
async def test_a_branch_needs_a_name_that_a_session_may_have(world: World, name: str) -> None:
    for wants_copy in (False, True):
        with pytest.raises(InvalidRequest):
            await world.bench().branch(requests.BranchSession(session=ONE, branch=SessionId(name), copy=wants_copy))


async def test_nobody_uses_a_branch_before_its_memory_is_there(world: World) -> None:
    async def use_it() -> None:
        described = await world.bench().describe_session(requests.DescribeSession(session=TWO))
        assert described.state == "unfinished"
        with pytest.raises(Conflict, match="is being branched from 'one'"):
            await world.bench().run_cell(requests.RunCell(session=TWO, code="x=1"))

    world.host.meanwhile["branch"] = world.host.afterwards["branch"] = use_it
    await branch(world)
    assert (world.host.meanwhile, world.host.afterwards) == ({}, {})
    assert (await world.bench().run_cell(requests.RunCell(session=TWO, code="y=1"))).outcome is Outcome.OK


@pytest.mark.parametrize("problem", [Conflict("it has threads"), HostUnavailable("no word"), asyncio.CancelledError()])
async def test_a_branch_that_fails_leaves_nothing_behind(world: World, problem: BaseException) -> None:
    world.host.fail["branch"] = problem
    with pytest.raises(type(problem)):
        await branch(world)
    await nothing_is_left_of(world, TWO)
    assert world.mounts.removed == []
    world.host.fail.clear()
    await branch(world)


async def test_a_branch_whose_answer_is_lost_leaves_no_kernel_behind(world: World) -> None:
    world.host.lose_answers_of = ["branch"]
    with pytest.raises(HostUnavailable):
        await branch(world)
    await nothing_is_left_of(world, TWO)


async def test_an_unfinished_branch_of_a_maker_that_was_killed_can_be_deleted(world: World) -> None:
    made = (await branch(world)).described.session
    assert await world.store.replace(made, replace(made, unfinished=True, begun=False))
    await world.bench().delete_session(requests.DeleteSession(session=TWO))
    await nothing_is_left_of(world, TWO)


async def test_a_branch_that_is_deleted_while_it_is_made_leaves_nothing(world: World) -> None:
    delete = requests.DeleteSession(session=TWO)
    world.host.meanwhile["branch"] = lambda: world.bench().delete_session(delete)
    with pytest.raises(NotFound):
        await branch(world)
    await nothing_is_left_of(world, TWO)


async def test_a_branch_that_is_deleted_and_made_anew_by_another_is_left_to_that_one(world: World) -> None:
    async def replaced() -> None:
        await world.bench().delete_session(requests.DeleteSession(session=TWO))
        await world.bench().create_session(requests.CreateSession(session=TWO))

    world.host.meanwhile["branch"] = replaced
    with pytest.raises(NotFound):
        await branch(world)
    assert (await world.store.get(TWO)).parent is None
    assert list(only_sandbox(world).kernels) == ["main"]


async def test_a_parent_that_is_deleted_while_it_is_branched_takes_everything_along(world: World) -> None:
    delete = requests.DeleteSession(session=ONE)
    world.host.meanwhile["branch"] = lambda: world.bench().delete_session(delete)
    with pytest.raises(NotFound):
        await branch(world)
    assert (world.host.sandboxes, world.mounts.removed) == ({}, ["one"])
    assert (await world.bench().list_sessions(requests.ListSessions())).sessions == ()


async def test_a_sandbox_lost_while_a_branch_is_made_leaves_no_branch(world: World) -> None:
    async def lost() -> None:
        world.host.die()
        await world.bench().run_cell(requests.RunCell(session=ONE, code="z=1"))

    world.host.afterwards["branch"] = lost
    with pytest.raises(Conflict, match="lost while it was made"):
        await branch(world)
    await nothing_is_left_of(world, TWO)
    assert (await kernel(world, ONE)).names == {"z": "1"}


async def test_a_tier_changed_while_a_branch_is_made_is_that_of_the_branch(world: World) -> None:
    change = requests.ChangeTier(session=ONE, tier=LARGE)
    world.host.meanwhile["branch"] = lambda: world.bench().change_tier(change)
    made = await branch(world)
    assert made.described.session.spec.tier == LARGE


async def test_a_parent_that_changes_while_it_is_branched_is_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = world.store.add_branch

    async def restarted_first(branch: Session, seen: Session) -> bool:
        monkeypatch.undo()
        await world.bench().restart_kernel(requests.RestartKernel(session=ONE))
        return await real(branch, seen)

    monkeypatch.setattr(world.store, "add_branch", restarted_first)
    assert (await branch(world)).described.state == "idle"
    assert (await kernel(world, TWO)).names == {}


async def test_a_copy_has_a_sandbox_files_and_principal_of_its_own(world: World) -> None:
    await world.bench().run_cell(requests.RunCell(session=ONE, code="log=open"))
    made = await copy(world)
    record = made.described.session
    assert (record.mount, record.principal, record.parent, record.kernel) == ("two", "two", "one", "main")
    assert (made.carried, made.not_carried, made.files_note) == (("x",), {"log": "an open file"}, "one was left out")
    assert (made.described.state, made.described.shared_with) == ("idle", ())
    assert (await kernel(world, TWO)).names == {"x": "2"}
    assert (world.host.started[-1].start_up, world.host.made[-1].env) == ("import this", {"A": "b"})
    await world.bench().delete_session(requests.DeleteSession(session=ONE))
    assert (only_sandbox(world).order.mount, world.mounts.removed) == ("two", ["one"])


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("create", HostUnavailable("no word")),
        ("start", KernelUnavailable("none comes up")),
        ("copy", Conflict("a cell runs for too long")),
        ("copy", asyncio.CancelledError()),
    ],
)
async def test_a_copy_that_fails_leaves_nothing_behind(world: World, where: str, problem: BaseException) -> None:
    world.host.fail[where] = problem
    with pytest.raises(type(problem)):
        await copy(world)
    await nothing_is_left_of(world, TWO)
    assert world.mounts.removed == ["two"]


async def test_a_copy_into_a_host_that_does_not_know_the_parent_is_told_with_the_way_out(world: World) -> None:
    def elsewhere(what: str) -> None:
        if what == "copy":
            target = next(name for name, one in world.host.sandboxes.items() if one.order.mount == "two")
            del world.host.sandboxes[target]

    world.host.before = elsewhere
    with pytest.raises(Conflict, match="branch it without a copy"):
        await copy(world)
    await nothing_is_left_of(world, TWO)


async def test_snapshots_are_switched_at_once_and_for_later(world: World) -> None:
    bench = world.bench()
    described = await bench.set_snapshots(requests.SetSnapshots(session=ONE, on=False))
    assert (described.session.spec.snapshots, described.snapshots.kept) == (False, 0)
    assert not (await kernel(world, ONE)).snapshots
    world.host.die()
    await bench.run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert not world.host.started[-1].snapshots
    await bench.set_snapshots(requests.SetSnapshots(session=ONE, on=True))
    assert (await kernel(world, ONE)).snapshots


async def test_snapshots_of_a_cold_session_are_only_written_down() -> None:
    world = World()
    await world.bench().create_session(requests.CreateSession(session=ONE, snapshots=False))
    assert not (await world.store.get(ONE)).spec.snapshots
    await world.bench().set_snapshots(requests.SetSnapshots(session=ONE, on=True))
    assert world.host.asked == []
    await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert world.host.started[0].snapshots


async def test_snapshots_switched_while_the_kernel_is_started_are_as_said_last(world: World) -> None:
    world.host.die()
    switch = requests.SetSnapshots(session=ONE, on=False)
    world.host.afterwards["start"] = lambda: world.bench().set_snapshots(switch)
    result = await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert result.outcome is Outcome.OK
    assert not (await kernel(world, ONE)).snapshots
    assert len(world.host.started) == 2
