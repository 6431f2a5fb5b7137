"""Running cells: what is asked how often, what survives which death, and what callers are told about it."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.core.standins import HOST_ENDED, World

from workbench.contracts.host import SandboxOrder, SandboxState
from workbench.core.requests import CreateSession, DeleteSession, Follower, RunCell, RunCommand
from workbench.errors import (
    Cancelled,
    Conflict,
    HostUnavailable,
    InvalidRequest,
    KernelUnavailable,
    NotFound,
    SandboxUnavailable,
)
from workbench.model.execution import MemoryState, Outcome, Piece
from workbench.model.ids import CellId, SessionId
from workbench.model.session import Session

ONE = SessionId("one")


@pytest.fixture
async def world() -> World:
    made = World()
    await made.bench().create_session(CreateSession(session=ONE, start_up="import this", env={"A": "b"}))
    return made


async def until(world: World, asked: str) -> None:
    while asked not in world.host.asked:
        await asyncio.sleep(0)


async def test_the_first_cell_makes_sandbox_and_kernel_and_the_second_costs_one_request(world: World) -> None:
    bench = world.bench()
    first = await bench.run_cell(RunCell(session=ONE, code="x=1"))
    assert (first.outcome, first.receipt.epoch, first.receipt.state) == (Outcome.OK, 1, MemoryState.INTACT)
    (sandbox,), (kernel,) = world.host.made, world.host.started
    assert (sandbox.mount, sandbox.env) == ("one", {"A": "b"})
    assert (kernel.epoch, kernel.start_up, kernel.lost_before) == (1, "import this", "")
    world.host.asked.clear()
    second = await bench.run_cell(RunCell(session=ONE, code="say more"))
    assert (second.receipt.epoch, second.receipt.execution_count) == (1, 2)
    assert world.host.asked == ["run", "accepted"]


@pytest.mark.parametrize(("code", "warm"), [("import torch", "torch"), ("import pandas", "")])
async def test_a_sandbox_is_made_for_what_its_first_cell_imports(world: World, code: str, warm: str) -> None:
    await world.bench().run_cell(RunCell(session=ONE, code=code))
    assert [order.warm for order in world.host.made] == [warm]


async def test_start_up_code_asks_as_well_also_for_a_command(world: World) -> None:
    two = SessionId("two")
    await world.bench().create_session(CreateSession(session=two, start_up="from torch import nn"))
    await world.bench().run_command(RunCommand(session=two, command="true"))
    assert [order.warm for order in world.host.made] == ["torch"]


async def test_processes_that_come_at_once_share_one_sandbox_and_one_memory(world: World) -> None:
    await asyncio.gather(*(world.bench().run_cell(RunCell(session=ONE, code=f"n{n}=1")) for n in range(8)))
    assert (len(world.host.made), len(world.host.started)) == (1, 1)
    (sandbox,) = world.host.sandboxes.values()
    assert sandbox.kernel is not None
    assert len(sandbox.kernel.names) == 8


async def test_who_finds_the_sandbox_being_made_waits_for_it(world: World) -> None:
    world.host.fail["create"] = Conflict("is being made; ask again", {"sandbox": "x"})
    world.clock.meanwhile = world.host.fail.clear
    assert (await world.bench().run_cell(RunCell(session=ONE, code="x=1"))).outcome is Outcome.OK
    assert world.clock.paused_s > 0


async def test_a_mount_that_stays_in_use_is_told_after_a_bounded_wait(world: World) -> None:
    world.host.fail["create"] = Conflict("mount one is in use", {"mount": "one"})
    with pytest.raises(Conflict, match="in use"):
        await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    assert 10 < world.clock.paused_s < 60


async def test_after_the_host_ended_a_new_sandbox_is_made_and_the_loss_is_told_once(world: World) -> None:
    bench = world.bench()
    await bench.run_cell(RunCell(session=ONE, code="x=1"))
    world.host.die()
    after = await bench.run_cell(RunCell(session=ONE, code="y=1"))
    assert (after.outcome, after.receipt.epoch) == (Outcome.OK, 2)
    assert (after.receipt.state, after.receipt.reason) == (MemoryState.LOST, HOST_ENDED)
    assert world.host.started[-1].lost_before == HOST_ENDED
    again = await bench.run_cell(RunCell(session=ONE, code="z=1"))
    assert (again.receipt.epoch, again.receipt.state) == (2, MemoryState.INTACT)
    assert (await world.store.get(ONE)).last_loss == ""


async def test_a_sandbox_that_ended_is_closed_before_the_next_is_made(world: World) -> None:
    bench = world.bench()
    await bench.run_cell(RunCell(session=ONE, code="x=1"))
    first = (await world.store.get(ONE)).sandbox
    world.host.end(first, "disk full")
    after = await bench.run_cell(RunCell(session=ONE, code="y=1"))
    assert (after.receipt.epoch, after.receipt.reason) == (2, "disk full")
    assert list(world.host.sandboxes) == [(await world.store.get(ONE)).sandbox] != [first]


async def test_processes_that_notice_a_loss_at_once_make_one_new_memory(world: World) -> None:
    await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    world.host.end((await world.store.get(ONE)).sandbox, "disk full")
    results = await asyncio.gather(*(world.bench().run_cell(RunCell(session=ONE, code="say hi")) for _ in range(6)))
    assert {result.receipt.epoch for result in results} == {2}
    assert [result.receipt.state for result in results].count(MemoryState.LOST) == 1
    assert len(world.host.started) == 2


async def test_a_session_that_never_had_a_memory_has_none_to_lose(world: World) -> None:
    world.host.fail["start"] = KernelUnavailable("none comes up")
    with pytest.raises(KernelUnavailable):
        await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    world.host.fail.clear()
    world.host.die()
    result = await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    assert (result.receipt.state, world.host.started[-1].lost_before) == (MemoryState.INTACT, "")


async def test_a_host_that_ends_under_a_cell_gives_a_lost_result_with_the_next_epoch(world: World) -> None:
    bench = world.bench()
    await bench.run_cell(RunCell(session=ONE, code="x=1"))
    world.host.asked.clear()
    running = asyncio.create_task(bench.run_cell(RunCell(session=ONE, code="hang")))
    await until(world, "accepted")
    world.host.die()
    result = await running
    assert (result.outcome, result.receipt.epoch, result.receipt.state) == (Outcome.LOST, 2, MemoryState.LOST)
    assert HOST_ENDED in result.explanation
    assert "run again what is needed" in result.explanation
    assert (await world.store.get(ONE)).epoch == 2
    after = await bench.run_cell(RunCell(session=ONE, code="y=1"))
    # It was told already, and the epoch that was told is that of the new memory.
    assert (after.receipt.epoch, after.receipt.state) == (2, MemoryState.INTACT)


async def test_a_cell_that_takes_its_sandbox_along_tells_the_epoch_of_the_next_one(world: World) -> None:
    bench = world.bench()
    result = await bench.run_cell(RunCell(session=ONE, code="die"))
    assert (result.outcome, result.receipt.epoch) == (Outcome.LOST, 2)
    assert result.receipt.reason == "the sandbox ended by itself"
    after = await bench.run_cell(RunCell(session=ONE, code="y=1"))
    assert (after.receipt.epoch, after.receipt.state) == (2, MemoryState.INTACT)
    assert [code for _, code in world.host.ran] == ["die", "y=1"]


async def test_a_kernel_that_was_replaced_by_the_host_keeps_the_sandbox(world: World) -> None:
    bench = world.bench()
    result = await bench.run_cell(RunCell(session=ONE, code="crash"))
    assert (result.outcome, result.receipt.epoch) == (Outcome.LOST, 2)
    assert (await world.store.get(ONE)).epoch == 2
    assert (await bench.run_cell(RunCell(session=ONE, code="y=1"))).receipt.epoch == 2
    assert len(world.host.made) == 1
    world.host.die()
    # Never one that was given before, although another process had not heard of it.
    assert (await bench.run_cell(RunCell(session=ONE, code="z=1"))).receipt.epoch == 3


async def test_an_epoch_is_in_the_store_before_a_caller_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    real = world.store.replace

    async def replace(seen: Session, new: Session) -> bool:
        done = await real(seen, new)
        kept.append(new.epoch)
        return done

    monkeypatch.setattr(world.store, "replace", replace)
    bench = world.bench()
    for code in ("x=1", "crash", "y=1", "die", "z=1", "crash"):
        told = (await bench.run_cell(RunCell(session=ONE, code=code))).receipt.epoch
        assert told <= max(kept, default=1)
        assert (await world.store.get(ONE)).epoch == told


async def test_a_lost_answer_is_asked_for_again_and_the_cell_runs_once(world: World) -> None:
    world.host.lose_answers_of = ["run"]
    result = await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    assert result.outcome is Outcome.OK
    assert [code for _, code in world.host.ran] == ["x=1"]


async def test_a_cell_whose_answer_was_lost_with_its_host_is_lost_and_not_run_again(world: World) -> None:
    world.host.lose_answers_of = ["run"]

    def die_before_the_second(what: str) -> None:
        if what == "run" and world.host.ran:
            world.host.die()

    world.host.before = die_before_the_second
    result = await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    assert (result.outcome, result.receipt.epoch) == (Outcome.LOST, 2)
    assert [code for _, code in world.host.ran] == ["x=1"]


async def test_a_host_that_was_never_reached_is_an_error_and_nothing_ran(world: World) -> None:
    bench = world.bench()
    await bench.run_cell(RunCell(session=ONE, code="x=1"))
    world.host.fail["run"] = HostUnavailable("it does not answer")
    with pytest.raises(HostUnavailable):
        await bench.run_cell(RunCell(session=ONE, code="y=1"))
    assert (await world.store.get(ONE)).epoch == 1


async def test_a_host_that_stops_answering_under_a_cell_is_told_without_guessing(world: World) -> None:
    bench = world.bench()
    running = asyncio.create_task(bench.run_cell(RunCell(session=ONE, code="hang")))
    await until(world, "accepted")
    world.host.stuck = True
    result = await running
    assert result.outcome is Outcome.LOST
    assert "not known" in result.explanation
    assert result.receipt.epoch == 1


async def test_sandboxes_that_never_stay_are_an_error_after_a_few(world: World) -> None:
    def end_all(what: str) -> None:
        if what == "start":
            for sandbox in world.host.sandboxes.values():
                sandbox.gone = "something kills them"

    world.host.before = end_all
    with pytest.raises(SandboxUnavailable, match="doctor"):
        await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    assert len(world.host.made) == 3


async def test_output_is_handed_on_piece_by_piece_before_the_result(world: World) -> None:
    said: list[str] = []

    async def on_piece(piece: Piece) -> None:
        said.append(piece.text)

    async def on_dropped(count: int) -> None:
        said.append(f"dropped {count}")

    follower = Follower(on_piece=on_piece, on_dropped=on_dropped)
    result = await world.bench().run_cell(RunCell(session=ONE, code="say 0123456789", follower=follower))
    assert said == ["0123", "4567", "89", "dropped 3"]
    assert result.stdout.text == "0123456789"


async def test_cancelling_the_caller_leaves_the_cell_running(world: World) -> None:
    bench, cell = world.bench(), CellId("c-mine")
    running = asyncio.create_task(bench.run_cell(RunCell(session=ONE, code="hang", cell=cell)))
    await until(world, "accepted")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    sandbox = (await world.store.get(ONE)).sandbox
    assert cell in world.host.sandboxes[sandbox].running
    assert world.host.interrupted == []
    again = asyncio.create_task(bench.run_cell(RunCell(session=ONE, code="hang", cell=cell)))
    await asyncio.sleep(0)
    world.host.finish(sandbox, cell)
    assert (await again).stdout.text == "in the end"
    assert len(world.host.ran) == 1


async def test_a_cancelled_cell_is_an_error_and_not_a_result(world: World) -> None:
    world.host.fail["run"] = Cancelled("it was taken out of the queue")
    with pytest.raises(Cancelled):
        await world.bench().run_cell(RunCell(session=ONE, code="x=1"))


@pytest.mark.parametrize(
    "request_",
    [RunCell(session=ONE, code="\ud800"), RunCell(session=ONE, code="1", limit_s=0),
     RunCell(session=ONE, code="1", limit_s=float("nan"))],
)  # fmt: skip
async def test_what_cannot_be_run_makes_no_sandbox(world: World, request_: RunCell) -> None:
    with pytest.raises(InvalidRequest):
        await world.bench().run_cell(request_)
    assert world.host.made == []


async def test_an_unknown_session_is_not_found(world: World) -> None:
    with pytest.raises(NotFound, match="sessions ls"):
        await world.bench().run_cell(RunCell(session=SessionId("none"), code="1"))


async def test_a_command_runs_without_a_kernel_that_comes_up(world: World) -> None:
    world.host.fail["start"] = KernelUnavailable("the start-up code kills it")
    result = await world.bench().run_command(RunCommand(session=ONE, command="ls"))
    assert (result.outcome, result.exit_code, result.receipt.epoch) == (Outcome.OK, 0, 1)


async def test_a_session_deleted_while_its_sandbox_is_made_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = world.host.create_sandbox

    async def create_late(order: SandboxOrder) -> SandboxState:
        await world.bench().delete_session(DeleteSession(session=ONE))
        return await real(order)

    monkeypatch.setattr(world.host, "create_sandbox", create_late)
    with pytest.raises(NotFound):
        await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    assert world.host.sandboxes == {}
    assert world.host.ran == []
    assert world.mounts.removed == ["one", "one"]


async def test_a_cell_under_which_its_session_is_deleted_still_has_a_result(world: World) -> None:
    running = asyncio.create_task(world.bench().run_cell(RunCell(session=ONE, code="hang")))
    await until(world, "accepted")
    await world.bench().delete_session(DeleteSession(session=ONE))
    assert (await running).outcome is Outcome.LOST


async def test_output_stays_at_the_host_for_followers_who_come_late(world: World) -> None:
    await world.bench().run_cell(RunCell(session=ONE, code="say " + "x" * 1_000_001))
    assert "forget" not in world.host.asked
