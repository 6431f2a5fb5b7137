"""Sessions: made, described, changed and deleted, by several processes and with hosts that come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.standins import HOST_ENDED, World

from workbench.core import requests
from workbench.errors import Conflict, HostUnavailable, InvalidRequest, KernelUnavailable, NotFound, QuotaExceeded
from workbench.model.ids import DEFAULT_PROJECT, CellId, ProjectId, SessionId, users_own_session
from workbench.model.session import Session
from workbench.model.tier import LARGE, STANDARD

ONE = SessionId("one")


@pytest.fixture
def world() -> World:
    return World()


def _with_tier(session: Session) -> Session:
    return replace(session, spec=replace(session.spec, tier=LARGE))


async def make(world: World, *, eager: bool = False, name: str = "one") -> None:
    await world.bench().create_session(requests.CreateSession(session=SessionId(name), eager=eager))


async def test_a_session_is_only_a_record_until_it_is_used(world: World) -> None:
    described = await world.bench().create_session(requests.CreateSession(session=ONE))
    assert (described.state, world.host.asked) == ("cold", [])
    again = await world.bench().describe_session(requests.DescribeSession(session=ONE))
    assert (again, world.host.asked) == (described, [])


async def test_an_eager_one_has_its_kernel_when_it_is_told(world: World) -> None:
    described = await world.bench().create_session(requests.CreateSession(session=ONE, eager=True, start_up="x=1"))
    assert (described.state, described.memory_bytes, described.session.begun) == ("idle", 5, True)
    assert world.host.started[0].start_up == "x=1"


async def test_an_eager_one_that_fails_leaves_nothing_behind(world: World) -> None:
    world.host.fail["start"] = KernelUnavailable("no kernel survives the start-up code")
    with pytest.raises(KernelUnavailable):
        await make(world, eager=True)
    assert world.host.sandboxes == {}
    with pytest.raises(NotFound):
        await world.store.get(ONE)


async def test_a_name_that_is_taken_is_refused_with_the_next_step(world: World) -> None:
    await make(world)
    with pytest.raises(Conflict, match="use it, delete it first, or choose another name"):
        await make(world)


@pytest.mark.parametrize(
    "request_",
    [
        requests.CreateSession(session=SessionId("../up")),
        requests.CreateSession(session=SessionId("tmp-x")),
        requests.CreateSession(session=SessionId("x" * 41)),
        requests.CreateSession(env={"A=B": "c"}),
        requests.CreateSession(env={"A": "\0"}),
        requests.CreateSession(working_folder="here"),
        requests.CreateSession(start_up="\ud800"),
        requests.CreateSession(start_up="#" * (5 * 1024 * 1024)),
    ],
)
async def test_what_no_host_would_take_is_not_written_down(world: World, request_: requests.CreateSession) -> None:
    with pytest.raises(InvalidRequest):
        await world.bench().create_session(request_)
    assert (await world.bench().list_sessions(requests.ListSessions())).sessions == ()


async def test_the_session_that_a_user_gets_for_calls_without_one_cannot_be_taken_by_another(world: World) -> None:
    bench = world.bench()
    anns = users_own_session(DEFAULT_PROJECT, "ann")
    for name, user in ((anns, "bob"), (users_own_session(ProjectId("theirs"), "ann"), "ann")):
        with pytest.raises(InvalidRequest, match="choose another one"):
            await bench.create_session(requests.CreateSession(session=name, user=user))
    assert (await bench.create_session(requests.CreateSession(session=anns, user="ann"))).session.spec.user == "ann"


async def test_a_description_says_how_it_is_and_starts_nothing(world: World) -> None:
    bench = world.bench()
    await make(world, eager=True)
    sandbox = (await world.store.get(ONE)).sandbox
    world.host.sandboxes[sandbox].running[CellId("c-1")] = "hang"
    ask = requests.DescribeSession(session=ONE)
    busy = await bench.describe_session(ask)
    assert (busy.state, [one.cell for one in busy.queue]) == ("busy", ["c-1"])
    world.host.end(sandbox, "disk full")
    ended = await bench.describe_session(ask)
    assert (ended.state, ended.detail) == ("lost", "disk full")
    world.host.die()
    gone = await bench.describe_session(ask)
    assert (gone.state, gone.detail) == ("lost", HOST_ENDED)
    world.host.fail["describe"] = HostUnavailable("no word")
    silent = await bench.describe_session(ask)
    assert (silent.state, silent.detail) == ("unreachable", "no word")
    assert len(world.host.made) == 1


async def test_pages_follow_each_other_to_the_end(world: World) -> None:
    for name in "edcba":
        await make(world, name=name)
    bench, seen, after = world.bench(), [], None
    while True:
        page = await bench.list_sessions(requests.ListSessions(limit=2, after=after))
        seen.append([one.session.spec.id for one in page.sessions])
        after = page.next_after
        if after is None:
            break
    assert seen == [["a", "b"], ["c", "d"], ["e"]]
    with pytest.raises(InvalidRequest):
        await bench.list_sessions(requests.ListSessions(limit=0))


async def test_deleting_ends_the_sandbox_and_drops_files_and_record(world: World) -> None:
    bench = world.bench()
    await make(world, eager=True)
    await bench.delete_session(requests.DeleteSession(session=ONE))
    assert (world.host.sandboxes, world.mounts.removed) == ({}, ["one"])
    with pytest.raises(NotFound):
        await bench.delete_session(requests.DeleteSession(session=ONE))
    await make(world)


async def test_deleting_needs_no_host_and_what_was_interrupted_can_be_finished(world: World) -> None:
    bench = world.bench()
    await make(world, eager=True)
    world.host.fail["close"] = HostUnavailable("no word")
    with pytest.raises(Conflict, match="in use"):
        await bench.delete_session(requests.DeleteSession(session=ONE))
    with pytest.raises(Conflict, match="being deleted"):
        await bench.run_cell(requests.RunCell(session=ONE, code="x=1"))
    described = await bench.describe_session(requests.DescribeSession(session=ONE))
    assert described.state == "ending"
    world.host.die()
    await bench.delete_session(requests.DeleteSession(session=ONE))
    assert world.mounts.removed == ["one"]


async def test_a_tier_changes_at_once_where_it_lives_and_is_kept_for_later(world: World) -> None:
    bench, larger = world.bench(), requests.ChangeTier(session=ONE, tier=LARGE)
    await make(world)
    await bench.change_tier(larger)
    assert world.host.asked == []
    await bench.run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert world.host.made[0].tier == LARGE
    await bench.change_tier(requests.ChangeTier(session=ONE, tier=STANDARD))
    (sandbox,) = world.host.sandboxes.values()
    assert (sandbox.tier, (await world.store.get(ONE)).spec.tier) == (STANDARD, STANDARD)


async def test_a_tier_that_is_refused_changes_nothing(world: World) -> None:
    await make(world, eager=True)
    world.host.fail["tier"] = QuotaExceeded("it uses more than that")
    with pytest.raises(QuotaExceeded):
        await world.bench().change_tier(requests.ChangeTier(session=ONE, tier=LARGE))
    assert (await world.store.get(ONE)).spec.tier == STANDARD


async def test_a_tier_changed_while_the_sandbox_is_made_does_not_hinder_it(world: World) -> None:
    bench = world.bench()
    await make(world)

    def change_between(what: str) -> None:
        if what == "start" and world.host.made[-1].tier == STANDARD:
            world.host.before = None
            record = world.store._records[ONE]
            world.store._records[ONE] = _with_tier(record)

    world.host.before = change_between
    result = await bench.run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert (result.receipt.epoch, len(world.host.made)) == (1, 1)
    (sandbox,) = world.host.sandboxes.values()
    assert sandbox.tier == LARGE


async def test_a_restart_gives_a_new_epoch_which_is_kept(world: World) -> None:
    bench = world.bench()
    await make(world, eager=True)
    described = await bench.restart_kernel(requests.RestartKernel(session=ONE))
    assert (described.session.epoch, (await world.store.get(ONE)).epoch) == (2, 2)
    result = await bench.run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert (result.receipt.epoch, result.receipt.reason) == (2, "the kernel was restarted by request")


async def test_a_restart_of_what_has_no_memory_makes_one(world: World) -> None:
    bench, restart = world.bench(), requests.RestartKernel(session=ONE)
    await make(world)
    assert (await bench.restart_kernel(restart)).session.epoch == 1
    world.host.die()
    assert (await bench.restart_kernel(restart)).session.epoch == 2
    assert len(world.host.started) == 2


async def test_a_session_without_memory_has_no_variables_processes_or_cells(world: World) -> None:
    bench = world.bench()
    await make(world)
    for _ in range(2):
        assert await bench.list_variables(requests.ListVariables(session=ONE)) == ()
        assert await bench.list_processes(requests.ListProcesses(session=ONE)) == ()
        await bench.interrupt_kernel(requests.InterruptKernel(session=ONE))
        assert not await bench.stop_cell(requests.StopCell(session=ONE, cell=CellId("c-1")))
        assert not await bench.stop_command(requests.StopCommand(session=ONE, cell=CellId("c-1")))
        await bench.restart_kernel(requests.RestartKernel(session=ONE))
        world.host.die()
    assert world.host.interrupted == []


async def test_variables_and_processes_of_a_living_one_are_listed(world: World) -> None:
    bench = world.bench()
    await make(world)
    for code in ("b=2", "a=1"):
        await bench.run_cell(requests.RunCell(session=ONE, code=code))
    assert [one.name for one in await bench.list_variables(requests.ListVariables(session=ONE))] == ["a", "b"]
    assert [one.pid for one in await bench.list_processes(requests.ListProcesses(session=ONE))] == [7]


async def test_stopping_a_cell_touches_no_other(world: World) -> None:
    bench, mine, other = world.bench(), CellId("c-mine"), CellId("c-other")
    await make(world, eager=True)
    sandbox = world.host.sandboxes[(await world.store.get(ONE)).sandbox]
    sandbox.running[other], stop = "hang", requests.StopCell(session=ONE, cell=mine)
    sandbox.waiting.append(mine)
    assert await bench.stop_cell(stop)
    assert (sandbox.waiting, world.host.interrupted) == ([], [])
    assert not await bench.stop_cell(stop)
    assert world.host.interrupted == []
    assert await bench.stop_cell(requests.StopCell(session=ONE, cell=other))
    assert len(world.host.interrupted) == 1


async def test_a_cell_that_runs_cannot_be_cancelled(world: World) -> None:
    await make(world, eager=True)
    world.host.sandboxes[(await world.store.get(ONE)).sandbox].running[CellId("c-1")] = "hang"
    with pytest.raises(Conflict):
        await world.bench().cancel_cell(requests.CancelCell(session=ONE, cell=CellId("c-1")))


async def test_attaching_starts_what_is_needed(world: World) -> None:
    bench = world.bench()
    await make(world)
    first = await bench.attach_kernel(requests.AttachKernel(session=ONE))
    world.host.die()
    second = await bench.attach_kernel(requests.AttachKernel(session=ONE))
    assert first.connection_file != second.connection_file


async def test_use_is_noted(world: World) -> None:
    await make(world)
    before = (await world.store.get(ONE)).used_at
    await world.bench().describe_session(requests.DescribeSession(session=ONE))
    assert (await world.store.get(ONE)).used_at == before
    await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert (await world.store.get(ONE)).used_at > before
