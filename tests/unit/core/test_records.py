"""What is written down about cells: before they are sent, at their end, and by whoever comes after a killed process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.core.standins import HOST_ENDED, World

from workbench.contracts.host import sandbox_gone
from workbench.core.requests import (
    CancelCell,
    CreateSession,
    DeleteSession,
    Follower,
    GetCell,
    ReadOutput,
    RunCell,
    RunCommand,
    StopCell,
    StopCommand,
)
from workbench.errors import (
    Cancelled,
    Conflict,
    HostUnavailable,
    InvalidRequest,
    KernelUnavailable,
    NotFound,
    SandboxUnavailable,
    StoreUnavailable,
)
from workbench.model.execution import MemoryState, Outcome, Piece
from workbench.model.ids import CellId, ProjectId, SandboxId, SessionId
from workbench.model.records import CellKind, CellRecord, CellStatus, Problem, Progress

ONE, MINE = SessionId("one"), CellId("c-mine")


@pytest.fixture
async def world() -> World:
    made = World()
    await made.bench().create_session(CreateSession(session=ONE))
    return made


async def until(happens: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not happens():
            await asyncio.sleep(0)


async def begun(world: World) -> SandboxId:
    await world.bench().run_cell(RunCell(session=ONE, code="x=1"))
    return (await world.store.get(ONE)).sandbox


async def left_behind(world: World, code: str = "hang", key: str = "") -> CellRecord:
    """A cell whose process was killed right after it was sent."""
    return await world.bench().submit(RunCell(session=ONE, code=code, cell=MINE, idempotency_key=key))


async def never_sent(world: World, *, age_s: float = 60.0) -> CellRecord:
    """A cell whose process was killed right before it was sent."""
    sandbox = await begun(world)
    record = CellRecord(
        id=MINE,
        session=ONE,
        kind=CellKind.CELL,
        code="x=1",
        limit_s=9,
        sandbox=sandbox,
        created_at=world.clock.after(0),
    )
    await world.cells.add(record)
    world.clock.seconds += age_s
    return record


async def got(world: World, wait_s: float = 0.0) -> CellRecord:
    return await world.bench().get_cell(GetCell(session=ONE, cell=MINE, wait_s=wait_s))


# Written down


async def test_a_cell_is_written_down_before_it_is_sent_and_again_at_its_end(world: World) -> None:
    seen: list[CellRecord] = []

    async def look() -> None:
        seen.append(await world.cells.get(ONE, MINE))

    world.host.meanwhile["run"] = look
    said = Progress(thought="why", current_step="READ", current_step_metric="1/2")
    record = await world.bench().perform(RunCell(session=ONE, code="say hi", cell=MINE, limit_s=7, progress=said))
    session = await world.store.get(ONE)
    assert (seen[0].status, seen[0].sandbox, seen[0].result) == (CellStatus.PENDING, session.sandbox, None)
    assert (record.status, record.code, record.limit_s, record.progress) == (CellStatus.ENDED, "say hi", 7, said)
    assert record.result is not None
    assert record.result.stdout.text == "hi"
    assert record.ended_at > record.created_at
    assert await world.cells.get(ONE, MINE) == record


async def test_a_command_is_written_down_as_one(world: World) -> None:
    record = await world.bench().perform(RunCommand(session=ONE, command="ls", cell=MINE))
    assert (record.kind, record.code, record.status) == (CellKind.COMMAND, "ls", CellStatus.ENDED)


async def test_a_cell_without_an_idempotency_key_costs_the_store_three_steps(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(world)
    steps: list[str] = []
    watched: list[tuple[object, str]] = [(world.store, name) for name in ("use", "replace", "family")]
    watched += [(world.cells, name) for name in ("add", "get", "with_idempotency_key", "move", "finish")]
    for part, name in watched:
        real = getattr(part, name)

        async def noted(*given: object, _real: object = real, _name: str = name, **named: object) -> object:
            steps.append(_name)
            return await _real(*given, **named)  # type: ignore[operator]

        monkeypatch.setattr(part, name, noted)
    await world.bench().run_cell(RunCell(session=ONE, code="x=2"))
    assert steps == ["use", "add", "finish"]


async def test_what_the_host_refuses_is_kept_as_a_failure(world: World) -> None:
    world.host.fail["run"] = Cancelled("it was taken out of the queue", {"cell": MINE})
    with pytest.raises(Cancelled, match="taken out"):
        await world.bench().perform(RunCell(session=ONE, code="x=1", cell=MINE))
    record = await world.cells.get(ONE, MINE)
    assert (record.status, record.result) == (CellStatus.FAILED, None)
    assert record.problem is not None
    assert (record.problem.code, record.problem.context) == ("cancelled", {"cell": MINE})


async def test_what_had_no_place_to_run_in_is_kept_as_a_failure_and_its_key_can_be_used_again(world: World) -> None:
    world.host.fail["start"] = KernelUnavailable("none comes up")
    with pytest.raises(KernelUnavailable):
        await world.bench().perform(RunCell(session=ONE, code="x=1", cell=MINE, idempotency_key="k"))
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.FAILED
    world.host.fail.clear()
    again = await world.bench().perform(RunCell(session=ONE, code="x=1", idempotency_key="k"))
    assert again.status is CellStatus.ENDED


async def test_a_cell_that_moves_to_another_sandbox_is_written_down_there_before_it_is_sent(world: World) -> None:
    first = await begun(world)
    world.host.end(first, "disk full")
    record = await world.bench().perform(RunCell(session=ONE, code="y=1", cell=MINE))
    assert record.sandbox == (await world.store.get(ONE)).sandbox != first
    assert record.result is not None
    assert (record.result.outcome, record.result.receipt.epoch) == (Outcome.OK, 2)


async def test_a_cell_that_somebody_has_given_up_is_not_sent_to_another_sandbox(world: World) -> None:
    """Whoever reads the record while its sender looks for a second sandbox may have called it lost."""
    first = await begun(world)
    world.host.end(first, "disk full")

    async def give_up() -> None:
        record = await world.cells.get(ONE, MINE)
        lost = sandbox_gone(first, "disk full", began=False)
        world.clock.seconds += 60
        await world.cells.finish(ONE, MINE, world.clock.now_iso(), Problem.of(lost), sandbox=record.sandbox)

    world.host.meanwhile["create"] = give_up
    with pytest.raises(SandboxUnavailable, match="disk full"):
        await world.bench().perform(RunCell(session=ONE, code="y=1", cell=MINE))
    assert [code for _, code in world.host.ran] == ["x=1"]


async def test_a_store_that_fails_at_the_end_does_not_take_the_result_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = world.cells.finish

    async def fails(*_: object, **__: object) -> None:
        raise StoreUnavailable("disk full")

    monkeypatch.setattr(world.cells, "finish", fails)
    record = await world.bench().perform(RunCell(session=ONE, code="say hi", cell=MINE))
    assert record.result is not None
    assert record.status is CellStatus.ENDED
    monkeypatch.setattr(world.cells, "finish", real)
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.PENDING
    # Whoever asks next finds the end at the host, and writes it down.
    assert (await got(world)).result == record.result


@pytest.mark.parametrize("part", ["replace", "move", "pending_in"])
async def test_a_store_that_fails_before_the_end_is_written_does_not_take_the_result_away(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Neither an epoch nor a loss could be kept: the record stays open, for who comes when the store is back."""
    await begun(world)
    code = "crash" if part == "replace" else "die"

    async def fails(*_: object, **__: object) -> None:
        raise StoreUnavailable("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(world.cells if part == "pending_in" else world.store, part, fails)
        record = await world.bench().perform(RunCell(session=ONE, code=code, cell=MINE))
    assert record.result is not None
    assert record.result.outcome is Outcome.LOST
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.PENDING
    world.clock.seconds += 60
    again = await got(world)
    assert again.result is not None
    assert again.result.outcome is Outcome.LOST
    assert (await world.store.get(ONE)).epoch == 2


async def test_a_session_deleted_under_a_cell_leaves_no_record_and_still_a_result(world: World) -> None:
    await begun(world)
    running = asyncio.create_task(world.bench().perform(RunCell(session=ONE, code="hang", cell=MINE)))
    await until(lambda: any(MINE in one.running for one in world.host.sandboxes.values()))
    await world.bench().delete_session(DeleteSession(session=ONE))
    record = await running
    assert record.result is not None
    assert record.result.outcome is Outcome.LOST
    with pytest.raises(NotFound):
        await world.cells.get(ONE, MINE)


# Submitted, and asked for later


async def test_a_submitted_cell_is_pending_as_soon_as_the_host_has_it(world: World) -> None:
    record = await left_behind(world)
    assert (record.status, record.result) == (CellStatus.PENDING, None)
    assert MINE in world.host.sandboxes[record.sandbox].running
    assert (await got(world)).status is CellStatus.PENDING
    world.host.finish(record.sandbox, MINE)
    ended = await got(world)
    assert ended.result is not None
    assert (ended.status, ended.result.stdout.text) == (CellStatus.ENDED, "in the end")
    assert await world.cells.get(ONE, MINE) == ended


async def test_a_submitted_cell_that_ends_at_once_is_given_with_its_end(world: World) -> None:
    record = await world.bench().submit(RunCell(session=ONE, code="say hi", cell=MINE))
    assert record.status is CellStatus.ENDED


async def test_a_submitted_command_is_found_again(world: World) -> None:
    record = await world.bench().submit(RunCommand(session=ONE, command="hang", cell=MINE))
    assert (await got(world)).status is CellStatus.PENDING
    done = (await world.bench().run_command(RunCommand(session=ONE, command="ls"))).receipt
    sandbox = world.host.sandboxes[record.sandbox]
    finished = next(one for one in sandbox.commands.values() if one is not None)
    sandbox.commands[MINE] = replace(finished, command=MINE)
    ended = await got(world, wait_s=5.0)
    assert ended.result is not None
    assert (ended.result.outcome, ended.result.receipt.epoch) == (Outcome.OK, done.epoch)


async def test_a_wait_ends_with_the_cell(world: World) -> None:
    record = await left_behind(world)
    waiting = asyncio.create_task(got(world, wait_s=500.0))
    await until(lambda: "wait" in world.host.asked)
    world.host.finish(record.sandbox, MINE)
    assert (await waiting).status is CellStatus.ENDED


async def test_a_process_killed_while_it_waited_loses_nothing(world: World) -> None:
    running = asyncio.create_task(world.bench().perform(RunCell(session=ONE, code="hang", cell=MINE)))
    await until(lambda: "accepted" in world.host.asked)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    record = await world.cells.get(ONE, MINE)
    assert record.status is CellStatus.PENDING
    world.host.finish(record.sandbox, MINE)
    assert (await got(world)).status is CellStatus.ENDED


async def test_a_cell_taken_out_of_the_queue_without_its_process_is_failed(world: World) -> None:
    await left_behind(world)
    world.host.fail["wait"] = Cancelled("it was taken out of the queue")
    record = await got(world)
    assert record.problem is not None
    assert (record.status, record.problem.code) == (CellStatus.FAILED, "cancelled")


async def test_an_epoch_that_a_forgotten_cell_brought_is_kept_with_its_end(world: World) -> None:
    await begun(world)
    record = await left_behind(world, code="crash")
    assert record.result is not None
    assert record.result.receipt.epoch == 2
    assert (await world.store.get(ONE)).epoch == 2


# Nobody has it


async def test_a_cell_that_went_with_its_host_is_lost_and_the_next_memory_tells_it(world: World) -> None:
    await left_behind(world)
    world.host.die()
    # Its sender might be about to send it elsewhere.
    assert (await got(world)).status is CellStatus.PENDING
    world.clock.seconds += 60
    record = await got(world)
    assert record.result is not None
    assert (record.status, record.result.outcome) == (CellStatus.ENDED, Outcome.LOST)
    assert HOST_ENDED in record.result.explanation
    assert record.result.receipt.epoch == 2
    after = await world.bench().run_cell(RunCell(session=ONE, code="y=1"))
    # Nobody had the lost result in hand, so that the loss is told to who comes next as well.
    assert (after.receipt.epoch, after.receipt.state) == (2, MemoryState.LOST)


async def test_a_cell_that_was_lost_before_others_moved_on_says_the_epoch_they_have(world: World) -> None:
    await left_behind(world)
    world.host.die()
    await world.bench().run_cell(RunCell(session=ONE, code="y=1"))
    world.clock.seconds += 60
    record = await got(world)
    assert record.result is not None
    assert (record.result.outcome, record.result.receipt.epoch) == (Outcome.LOST, 2)
    assert (await world.store.get(ONE)).epoch == 2


async def test_a_cell_whose_sandbox_took_it_along_has_the_result_of_the_host(world: World) -> None:
    record = await left_behind(world)
    world.host.end(record.sandbox, "disk full")
    world.host.finish(record.sandbox, MINE)
    ended = await got(world)
    assert ended.result is not None
    assert ended.result.stdout.text == "in the end"


async def test_a_cell_that_waited_in_a_sandbox_that_ended_never_began(world: World) -> None:
    record = await left_behind(world)
    world.host.fail["wait"] = sandbox_gone(record.sandbox, "disk full", began=False)
    world.clock.seconds += 60
    failed = await got(world)
    assert failed.problem is not None
    assert (failed.status, failed.problem.code) == (CellStatus.FAILED, "sandbox_unavailable")


async def test_a_cell_that_ended_and_was_dropped_is_lost_and_not_failed(world: World) -> None:
    record = await left_behind(world)
    sandbox = world.host.sandboxes[record.sandbox]
    sandbox.running.clear()
    sandbox.dropped.add(MINE)
    ended = await got(world)
    assert ended.result is not None
    assert (ended.status, ended.result.outcome) == (CellStatus.ENDED, Outcome.LOST)
    assert "run again what is needed" in ended.result.explanation


async def test_a_cell_that_was_written_down_and_never_sent_is_failed_and_can_be_run_again(world: World) -> None:
    await never_sent(world)
    record = await got(world)
    assert record.problem is not None
    assert (record.status, record.problem.code, record.problem.error().retryable) == (
        CellStatus.FAILED, "host_unavailable", True)  # fmt: skip
    assert "Run it again" in record.problem.message


async def test_a_cell_that_was_called_never_sent_cannot_be_sent_any_more(world: World) -> None:
    """Its sender may have been slow, and not killed."""
    await begun(world)

    async def slow() -> None:
        world.clock.seconds += 60
        assert (await got(world)).status is CellStatus.FAILED

    world.host.meanwhile["run"] = slow
    with pytest.raises(HostUnavailable, match="never sent"):
        await world.bench().perform(RunCell(session=ONE, code="y=1", cell=MINE))
    assert [code for _, code in world.host.ran] == ["x=1"]


async def test_a_cell_that_is_on_its_way_stays_pending(world: World) -> None:
    await never_sent(world, age_s=1.0)
    assert (await got(world)).status is CellStatus.PENDING
    assert "forget" not in world.host.asked


async def test_a_cell_that_arrives_just_then_is_waited_for(world: World) -> None:
    record = await never_sent(world)

    async def arrives() -> None:
        world.host.sandboxes[record.sandbox].running[MINE] = "hang"

    world.host.meanwhile["forget"] = arrives
    assert (await got(world)).status is CellStatus.PENDING


async def test_a_cell_of_a_sandbox_that_was_never_begun_never_began(world: World) -> None:
    session = await world.store.get(ONE)
    record = CellRecord(
        id=MINE, session=ONE, kind=CellKind.CELL, code="x", limit_s=9, sandbox=session.sandbox, created_at="2029"
    )
    await world.cells.add(record)
    assert (await got(world)).status is CellStatus.FAILED


async def test_who_sends_it_elsewhere_meanwhile_is_left_to_it(world: World) -> None:
    record = await left_behind(world)
    world.host.die()
    other = SandboxId("sb-other")

    def moved() -> None:
        found = world.records._shelves.cells[ONE, MINE]
        world.records._shelves.cells[ONE, MINE] = replace(found, sandbox=other)

    world.clock.meanwhile = moved
    assert (await got(world)).sandbox == other
    assert record.sandbox != other
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.PENDING


async def test_a_host_that_does_not_answer_leaves_it_pending_and_cannot_be_waited_for(world: World) -> None:
    record = await left_behind(world)
    world.host.stuck = True
    assert (await got(world)).status is CellStatus.PENDING
    with pytest.raises(HostUnavailable):
        await got(world, wait_s=1.0)
    world.host.stuck = False
    world.host.finish(record.sandbox, MINE)
    assert (await got(world)).status is CellStatus.ENDED


async def test_a_host_that_stops_answering_under_a_waiting_caller_leaves_the_record_open(world: World) -> None:
    running = asyncio.create_task(world.bench().perform(RunCell(session=ONE, code="hang", cell=MINE)))
    await until(lambda: "accepted" in world.host.asked)
    world.host.stuck = True
    told = await running
    assert told.result is not None
    assert told.result.outcome is Outcome.LOST
    world.host.stuck = False
    record = await got(world)
    assert record.status is CellStatus.PENDING
    world.host.finish(record.sandbox, MINE)
    assert (await got(world)).result != told.result


# Idempotency keys


async def test_a_retry_with_the_same_key_gets_the_kept_answer_and_nothing_runs_twice(world: World) -> None:
    first = await world.bench().perform(RunCell(session=ONE, code="say hi", idempotency_key="k"))
    again = await world.bench().perform(RunCell(session=ONE, code="say hi", idempotency_key="k"))
    assert again == first
    assert [code for _, code in world.host.ran] == ["say hi"]


async def test_retries_that_come_at_once_are_one_cell(world: World) -> None:
    asked = [RunCell(session=ONE, code="x=1", idempotency_key="k") for _ in range(6)]
    records = await asyncio.gather(*(world.bench().perform(one) for one in asked))
    assert len({record.id for record in records}) == 1
    assert [code for _, code in world.host.ran] == ["x=1"]


async def test_a_retry_while_it_runs_waits_for_it(world: World) -> None:
    record = await left_behind(world, key="k")
    again = asyncio.create_task(world.bench().perform(RunCell(session=ONE, code="hang", idempotency_key="k")))
    await until(lambda: "wait" in world.host.asked)
    world.host.finish(record.sandbox, MINE)
    assert (await again).id == MINE
    submitted = await world.bench().submit(RunCell(session=ONE, code="hang", idempotency_key="k"))
    assert submitted.status is CellStatus.ENDED


async def test_a_failure_is_kept_as_well(world: World) -> None:
    world.host.fail["run"] = Cancelled("it was taken out of the queue")
    for _ in range(2):
        with pytest.raises(Cancelled):
            await world.bench().perform(RunCell(session=ONE, code="x=1", idempotency_key="k"))
        world.host.fail.clear()
    assert world.host.ran == []


@pytest.mark.parametrize("settled_before", [False, True])
async def test_a_retry_of_one_that_was_never_sent_is_sent(world: World, settled_before: bool) -> None:
    """Its process was killed between writing it down and sending it."""
    await begun(world)
    world.host.fail["run"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        await world.bench().perform(RunCell(session=ONE, code="y=1", cell=MINE, idempotency_key="k"))
    world.host.fail.clear()
    world.clock.seconds += 60
    if settled_before:
        assert (await world.caretaker().settle_pending()).finished == 1
    for _ in range(2):
        record = await world.bench().perform(RunCell(session=ONE, code="y=1", idempotency_key="k"))
        assert record.status is CellStatus.ENDED
    assert [code for _, code in world.host.ran] == ["x=1", "y=1"]
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.FAILED


@pytest.mark.parametrize(
    "other",
    [
        RunCell(session=ONE, code="x=2", idempotency_key="k"),
        RunCell(session=ONE, code="x=1", limit_s=3, idempotency_key="k"),
        RunCell(session=ONE, code="x=1", store_history=False, idempotency_key="k"),
        RunCommand(session=ONE, command="x=1", idempotency_key="k"),
    ],
)
async def test_another_request_with_the_same_key_is_a_conflict(world: World, other: RunCell | RunCommand) -> None:
    first = await world.bench().perform(RunCell(session=ONE, code="x=1", idempotency_key="k"))
    with pytest.raises(Conflict, match=f"'k' belongs to another request, of cell {first.id}"):
        await world.bench().perform(other)


async def test_another_request_with_the_same_id_is_a_conflict(world: World) -> None:
    await left_behind(world)
    with pytest.raises(Conflict, match="the id c-mine"):
        await world.bench().perform(RunCell(session=ONE, code="y=1", cell=MINE))
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.PENDING


async def test_a_thought_does_not_make_it_another_request(world: World) -> None:
    first = await world.bench().perform(RunCell(session=ONE, code="x=1", idempotency_key="k"))
    said = Progress(thought="once more")
    assert await world.bench().perform(RunCell(session=ONE, code="x=1", idempotency_key="k", progress=said)) == first


@pytest.mark.parametrize(
    "request_",
    [
        RunCell(session=ONE, code="1", idempotency_key="k" * 256),
        RunCell(session=ONE, code="1", idempotency_key="a\nb"),
        RunCell(session=ONE, code="1", cell=CellId("../x")),
        RunCell(session=ONE, code="1", limit_s=float("inf")),
        RunCell(session=ONE, code="1", limit_s=float("nan")),
        RunCommand(session=ONE, command="1", limit_s=float("inf")),
        RunCell(session=ONE, code="1", progress=Progress(thought="\ud800")),
    ],
)
async def test_what_could_not_be_written_down_is_refused(world: World, request_: RunCell | RunCommand) -> None:
    with pytest.raises(InvalidRequest):
        await world.bench().perform(request_)
    assert world.host.asked == []


# Output


async def read(world: World, offset: int = 0, wait_s: float = 0.0) -> str:
    ask = ReadOutput(session=ONE, cell=MINE, offset=offset, wait_s=wait_s)
    return "".join(piece.text for piece in (await world.bench().read_output(ask)).pieces)


async def test_output_is_read_from_any_offset_also_after_the_end(world: World) -> None:
    await left_behind(world, code="say 0123456789")
    assert (await read(world), await read(world, offset=4), await read(world, offset=8)) == ("0123", "4567", "89")


async def test_output_that_is_gone_is_told_with_what_there_is_instead(world: World) -> None:
    await left_behind(world, code="say hi")
    world.host.die()
    with pytest.raises(Conflict, match="its result has head and tail"):
        await read(world)


async def test_output_of_a_cell_that_never_began_is_nothing(world: World) -> None:
    await never_sent(world)
    page = await world.bench().read_output(ReadOutput(session=ONE, cell=MINE))
    assert (page.pieces, page.ended) == ((), True)
    assert (await world.bench().read_output(ReadOutput(session=ONE, cell=MINE))).ended


async def test_output_of_a_cell_that_is_on_its_way_is_waited_for(world: World) -> None:
    await never_sent(world, age_s=0.0)
    page = await world.bench().read_output(ReadOutput(session=ONE, cell=MINE, wait_s=5.0))
    assert (page.pieces, page.ended, page.next_offset) == ((), False, 0)


@pytest.mark.parametrize("request_", [ReadOutput(session=ONE, cell=MINE, offset=-1),
                                      ReadOutput(session=ONE, cell=MINE, wait_s=-1.0),
                                      ReadOutput(session=ONE, cell=MINE, wait_s=float("nan"))])  # fmt: skip
async def test_impossible_offsets_and_waits_are_refused(world: World, request_: ReadOutput) -> None:
    await left_behind(world)
    with pytest.raises(InvalidRequest):
        await world.bench().read_output(request_)


async def test_a_follower_of_a_kept_answer_hears_what_was_said(world: World) -> None:
    await left_behind(world, code="say 0123456789", key="k")
    said: list[str] = []

    async def on_piece(piece: Piece) -> None:
        said.append(piece.text)

    async def on_dropped(count: int) -> None:
        said.append(str(count))

    follower = Follower(on_piece=on_piece, on_dropped=on_dropped)
    await world.bench().perform(RunCell(session=ONE, code="say 0123456789", idempotency_key="k", follower=follower))
    assert "".join(said) == "01234567893"


# Another project, and stopping


async def test_cells_of_another_project_do_not_exist(world: World) -> None:
    await left_behind(world)
    other = world.bench(ProjectId("other"))
    for asking in (
        other.get_cell(GetCell(session=ONE, cell=MINE)),
        other.read_output(ReadOutput(session=ONE, cell=MINE)),
        other.perform(RunCell(session=ONE, code="x=1")),
        other.stop_cell(StopCell(session=ONE, cell=MINE)),
    ):
        with pytest.raises(NotFound):
            await asking


async def test_a_cell_is_stopped_where_it_was_sent(world: World) -> None:
    record = await left_behind(world)
    assert await world.bench().stop_cell(StopCell(session=ONE, cell=MINE))
    assert [at.sandbox for at in world.host.interrupted] == [record.sandbox]
    world.host.finish(record.sandbox, MINE)
    assert not await world.bench().stop_cell(StopCell(session=ONE, cell=MINE))


async def test_the_cell_that_began_meanwhile_is_not_stopped_in_its_place(world: World) -> None:
    record = await left_behind(world)

    async def next_begins() -> None:
        world.host.finish(record.sandbox, MINE)
        world.host.sandboxes[record.sandbox].running[CellId("c-next")] = "hang"

    world.host.meanwhile["interrupt"] = next_begins
    await world.bench().stop_cell(StopCell(session=ONE, cell=MINE))
    assert world.host.interrupted == []


async def test_a_cell_whose_sandbox_is_gone_needs_no_stopping_in_the_next(world: World) -> None:
    await left_behind(world)
    world.host.die()
    await world.bench().run_cell(RunCell(session=ONE, code="y=1"))
    assert not await world.bench().stop_cell(StopCell(session=ONE, cell=MINE))
    assert world.host.interrupted == []
    with pytest.raises(SandboxUnavailable):
        await world.bench().cancel_cell(CancelCell(session=ONE, cell=MINE))


async def test_a_command_is_stopped_where_it_was_sent(world: World) -> None:
    await world.bench().submit(RunCommand(session=ONE, command="hang", cell=MINE))
    assert await world.bench().stop_command(StopCommand(session=ONE, cell=MINE))
    world.host.die()
    assert not await world.bench().stop_command(StopCommand(session=ONE, cell=MINE))
