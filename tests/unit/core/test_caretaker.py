"""What happens to sessions when nothing happens in them, to old records, and to cells that nobody waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.standins import World

from workbench.core import requests
from workbench.core.access import Access
from workbench.core.caretaker import CarePolicy, Caretaker, in_words
from workbench.errors import KernelUnavailable, NotFound, StoreUnavailable
from workbench.model.access import Caller
from workbench.model.execution import MemoryState, Outcome
from workbench.model.ids import CellId, ProjectId, SessionId
from workbench.model.records import CellStatus
from workbench.model.session import IdleLimits

ONE, TWO, MINE = SessionId("one"), SessionId("two"), CellId("c-mine")
MINUTE, HOUR, DAY = 60, 3600, 86_400


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def caretaker(world: World) -> Caretaker:
    return world.caretaker()


async def used(world: World, name: SessionId = ONE, idle: IdleLimits | None = None) -> None:
    await world.bench().create_session(requests.CreateSession(session=name, idle=idle or IdleLimits()))
    await world.bench().run_cell(requests.RunCell(session=name, code="x=1"))


async def state(world: World, name: SessionId = ONE) -> str:
    return (await world.bench().describe_session(requests.DescribeSession(session=name))).state


def later(world: World, seconds: float) -> None:
    world.clock.seconds += seconds


# Frozen


async def test_a_session_that_is_used_is_left_alone(world: World, caretaker: Caretaker) -> None:
    await used(world)
    later(world, 14 * MINUTE)
    assert (await caretaker.look()).frozen == 0
    assert await state(world) == "idle"
    assert "freeze" not in world.host.asked


async def test_an_idle_session_is_frozen_once_and_the_next_call_finds_everything(
    world: World, caretaker: Caretaker
) -> None:
    await used(world)
    later(world, 16 * MINUTE)
    assert [(await caretaker.look()).frozen for _ in range(2)] == [1, 0]
    assert await state(world) == "frozen"
    # Looking at it did not wake it.
    assert await state(world) == "frozen"
    after = await world.bench().run_cell(requests.RunCell(session=ONE, code="y=1"))
    assert (after.receipt.epoch, after.receipt.state) == (1, MemoryState.INTACT)
    assert await state(world) == "idle"


async def test_keep_alive_counts_as_use(world: World, caretaker: Caretaker) -> None:
    await used(world)
    later(world, 16 * MINUTE)
    await world.bench().keep_alive(requests.KeepAlive(session=ONE))
    assert (await caretaker.look()).frozen == 0


async def test_a_running_cell_or_command_counts_as_use_and_so_does_its_end(world: World, caretaker: Caretaker) -> None:
    await used(world)
    cell = await world.bench().submit(requests.RunCell(session=ONE, code="hang", cell=MINE))
    await used(world, TWO)
    await world.bench().submit(requests.RunCommand(session=TWO, command="hang"))
    later(world, DAY)
    assert ((await caretaker.look()).frozen, (await caretaker.look()).ended) == (0, 0)
    world.host.finish(cell.sandbox, MINE)
    assert (await caretaker.look()).settled == 1
    later(world, 14 * MINUTE)
    assert (await caretaker.look()).frozen == 0
    later(world, 2 * MINUTE)
    assert (await caretaker.look()).frozen == 1
    assert await state(world, TWO) == "idle"


async def test_what_runs_without_a_record_is_seen_by_the_host(world: World, caretaker: Caretaker) -> None:
    await used(world)
    world.host.attached = True
    later(world, DAY)
    done = await caretaker.look()
    assert (done.frozen, done.ended, done.problems) == (0, 0, ())


# Ended


async def test_after_long_it_is_ended_with_its_files_kept_and_the_next_call_is_told_why(
    world: World, caretaker: Caretaker
) -> None:
    await used(world)
    later(world, 13 * HOUR)
    done = await caretaker.look()
    assert (done.ended, done.problems) == (1, ())
    assert (world.host.sandboxes, world.mounts.removed) == ({}, [])
    described = await world.bench().describe_session(requests.DescribeSession(session=ONE))
    reason = "it was not used for 12 h, so its sandbox was ended; files in /mnt/files are kept"
    assert (described.state, described.detail) == ("lost", reason)
    after = await world.bench().run_cell(requests.RunCell(session=ONE, code="y=1"))
    assert (after.receipt.epoch, after.receipt.state, after.receipt.reason) == (2, MemoryState.LOST, reason)
    assert (await caretaker.look()).ended == 0


async def test_what_lives_in_a_session_that_is_switched_off_is_ended_whoever_should_have(
    world: World, caretaker: Caretaker
) -> None:
    await used(world)
    before = await world.store.get(ONE)
    off = replace(before.spec.config, sandbox=replace(before.spec.config.sandbox, enable=False))
    # As it is left by a server that was killed after it had written this.
    assert await world.store.replace(before, replace(before, spec=replace(before.spec, config=off)))
    assert (await caretaker.look()).ended == 1
    assert before.sandbox not in world.host.sandboxes
    assert (await state(world), (await world.store.get(ONE)).begun) == ("lost", False)


async def test_a_session_has_limits_of_its_own_and_zero_is_never(world: World, caretaker: Caretaker) -> None:
    await used(world, ONE, IdleLimits(freeze_after_s=0, end_after_s=0))
    await used(world, TWO, IdleLimits(freeze_after_s=10, end_after_s=20))
    later(world, 12)
    assert (await caretaker.look()).frozen == 1
    later(world, 300 * DAY)
    assert (await caretaker.look()).ended == 1
    assert (await state(world), await state(world, TWO)) == ("idle", "lost")


async def test_limits_can_be_changed_later(world: World, caretaker: Caretaker) -> None:
    await used(world)
    limits = IdleLimits(freeze_after_s=5, end_after_s=0)
    told = await world.bench().set_idle_limits(requests.SetIdleLimits(session=ONE, idle=limits))
    assert told.session.spec.idle == limits
    later(world, 10)
    assert (await caretaker.look()).frozen == 1


async def test_a_family_is_as_busy_as_its_busiest_and_takes_the_longest_limit(
    world: World, caretaker: Caretaker
) -> None:
    await used(world)
    branch = requests.BranchSession(session=ONE, branch=TWO)
    await world.bench().branch(branch)
    await world.bench().set_idle_limits(
        requests.SetIdleLimits(session=TWO, idle=IdleLimits(freeze_after_s=DAY, end_after_s=2 * DAY))
    )
    later(world, 13 * HOUR)
    assert ((await caretaker.look()).frozen, (await caretaker.look()).ended) == (0, 0)
    later(world, 13 * HOUR)
    await world.bench().keep_alive(requests.KeepAlive(session=TWO))
    assert (await caretaker.look()).frozen == 0
    later(world, 49 * HOUR)
    assert (await caretaker.look()).ended == 1
    for name in (ONE, TWO):
        assert "not used for 48 h" in (await world.store.get(name)).last_loss


async def test_who_comes_while_it_is_frozen_to_be_ended_keeps_everything(world: World, caretaker: Caretaker) -> None:
    await used(world)
    later(world, 13 * HOUR)

    async def somebody_comes() -> None:
        await world.bench().run_cell(requests.RunCell(session=ONE, code="y=1"))

    world.host.afterwards["freeze"] = somebody_comes
    assert (await caretaker.look()).ended == 0
    (sandbox,) = world.host.sandboxes.values()
    assert sandbox.kernel is not None
    assert sandbox.kernel.names == {"x": "1", "y": "1"}


async def test_who_comes_between_the_last_look_and_the_end_keeps_everything(world: World, caretaker: Caretaker) -> None:
    await used(world)
    later(world, 13 * HOUR)

    async def somebody_comes() -> None:
        await world.bench().run_cell(requests.RunCell(session=ONE, code="y=1"))

    world.host.meanwhile["close"] = somebody_comes
    assert (await caretaker.look()).ended == 0
    assert (await world.store.get(ONE)).epoch == 1


async def test_one_that_ended_by_itself_is_noted_with_its_own_reason(world: World, caretaker: Caretaker) -> None:
    await used(world)
    world.host.end((await world.store.get(ONE)).sandbox, "disk full")
    later(world, 20 * MINUTE)
    assert (await caretaker.look()).frozen == 0
    later(world, 13 * HOUR)
    await caretaker.look()
    assert (await world.store.get(ONE)).last_loss == "disk full"


async def test_one_that_fails_does_not_keep_it_from_the_others(world: World, caretaker: Caretaker) -> None:
    names = [SessionId(f"s{number:03}") for number in range(120)]
    for name in names:
        await used(world, name)
    later(world, 16 * MINUTE)
    bad = (await world.store.get(names[7])).sandbox
    real = world.host.freeze_sandbox

    async def freeze(sandbox: object) -> bool:
        if sandbox == bad:
            raise KernelUnavailable("no word from it")
        return await real(sandbox)  # type: ignore[arg-type]

    world.host.freeze_sandbox = freeze  # type: ignore[method-assign]
    done = await caretaker.look()
    assert (done.frozen, done.problems) == (119, (f"sandbox of {names[7]}: no word from it",))


async def test_sessions_of_all_projects_are_cared_for(world: World, caretaker: Caretaker) -> None:
    bench = world.bench(ProjectId("other"))
    await bench.create_session(requests.CreateSession(session=ONE))
    await bench.run_cell(requests.RunCell(session=ONE, code="x=1"))
    later(world, 13 * HOUR)
    assert (await caretaker.look()).ended == 1
    told = await bench.describe_session(requests.DescribeSession(session=ONE))
    assert told.state == "lost"


async def test_a_host_that_hangs_is_asked_once_a_round(world: World, caretaker: Caretaker) -> None:
    for number in range(5):
        name = SessionId(f"s{number}")
        await used(world, name)
        await world.bench().submit(requests.RunCell(session=name, code="hang"))
        await used(world, SessionId(f"t{number}"))
    later(world, DAY)
    world.host.asked.clear()
    world.host.stuck = True
    world.free_percent = 0.0
    done = await caretaker.look()
    assert (len(world.host.asked), len(done.problems)) == (1, 1)


async def test_keep_alive_lets_what_stands_still_go_on(world: World, caretaker: Caretaker) -> None:
    await used(world)
    later(world, 16 * MINUTE)
    assert (await caretaker.look()).frozen == 1
    await world.bench().keep_alive(requests.KeepAlive(session=ONE))
    assert await state(world) == "idle"
    world.host.die()
    await world.bench().keep_alive(requests.KeepAlive(session=ONE))


async def test_one_that_was_frozen_to_be_ended_and_is_not_goes_on(world: World, caretaker: Caretaker) -> None:
    await used(world, ONE, IdleLimits(freeze_after_s=0))
    later(world, DAY)

    async def somebody_comes() -> None:
        await world.store.use(ONE, world.clock.now_iso())

    world.host.afterwards["freeze"] = somebody_comes
    assert (await caretaker.look()).ended == 0
    assert await state(world) == "idle"


async def test_a_result_that_could_not_be_written_down_is_taken_before_the_end(
    world: World, caretaker: Caretaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await used(world)
    record = await world.bench().submit(requests.RunCell(session=ONE, code="hang", cell=MINE))
    world.host.finish(record.sandbox, MINE)
    later(world, DAY)
    real, failures = world.cells.finish, [StoreUnavailable("disk full")]

    async def fails_once(*given: object, **named: object) -> object:
        if failures:
            raise failures.pop()
        return await real(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(world.cells, "finish", fails_once)
    assert (await caretaker.look()).ended == 0
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.ENDED
    later(world, DAY)
    assert (await caretaker.look()).ended == 1


async def test_what_a_notebook_does_counts_as_use_also_after_it_went(world: World, caretaker: Caretaker) -> None:
    await used(world)
    later(world, DAY)
    world.host.attached_idle_s = 5.0
    done = await caretaker.look()
    assert (done.frozen, done.ended) == (0, 0)
    assert (await world.store.get(ONE)).used_at > world.clock.after(-MINUTE)
    world.host.attached_idle_s = None
    later(world, 13 * MINUTE)
    assert (await caretaker.look()).frozen == 0
    later(world, 3 * MINUTE)
    assert (await caretaker.look()).frozen == 1


async def test_a_notebook_at_work_is_no_room_for_others(world: World, caretaker: Caretaker) -> None:
    await used(world)
    later(world, 5 * MINUTE)
    world.host.attached_idle_s = 5.0
    world.free_percent = 1.0
    assert (await caretaker.look()).ended == 0
    world.host.attached_idle_s = 4.0 * MINUTE
    assert (await caretaker.look()).ended == 0
    later(world, 2 * MINUTE)
    assert (await caretaker.look()).ended == 1


# Short of memory


async def test_short_memory_ends_the_longest_unused_until_there_is_enough(world: World, caretaker: Caretaker) -> None:
    for name in ("a", "b", "c", "d"):
        await used(world, SessionId(name))
        later(world, 2 * MINUTE)
    await world.bench().submit(requests.RunCell(session=SessionId("a"), code="hang"))
    world.free_percent = 4.0

    def gains(what: str) -> None:
        world.free_percent += 3.0 if what == "close" and world.free_percent < 10 else 0.0

    # Each end is two closes: that of the sandbox, and that of the story that notes it.
    world.host.before = gains
    done = await caretaker.look()
    assert (done.ended, done.frozen) == (1, 0)
    assert [await state(world, SessionId(name)) for name in "abcd"] == ["busy", "lost", "idle", "idle"]
    assert "short of memory" in (await world.store.get(SessionId("b"))).last_loss


async def test_short_memory_is_no_reason_to_end_what_was_just_used(world: World) -> None:
    await used(world, ONE, IdleLimits(freeze_after_s=0, end_after_s=0))
    world.free_percent = 1.0
    assert (await world.caretaker().look()).ended == 0
    later(world, 2 * MINUTE)
    assert (await world.caretaker(CarePolicy(memory_reserve_percent=0)).look()).ended == 0
    # Also one that is never to be ended: no session lives until memory is full.
    assert (await world.caretaker().look()).ended == 1


# Old records


async def test_cells_audit_and_tokens_are_dropped_when_they_are_old(world: World, caretaker: Caretaker) -> None:
    await used(world)
    access = Access(records=world.records, clock=world.clock)
    await access.create_token(requests.CreateToken(by=Caller(), session=ONE, lifetime_s=60))
    first = await caretaker.look()
    assert (first.dropped_cells, first.dropped_audit, first.dropped_tokens) == (0, 0, 0)
    later(world, HOUR)
    assert (await caretaker.look()).dropped_tokens == 1
    later(world, 30 * DAY)
    done = await caretaker.look()
    assert (done.dropped_cells, done.dropped_audit) == (1, 0)
    later(world, 60 * DAY)
    assert (await caretaker.look()).dropped_audit == 1


async def test_zero_days_is_for_ever(world: World) -> None:
    await used(world)
    later(world, 10_000 * DAY)
    done = await world.caretaker(CarePolicy(keep_cells_days=0, keep_audit_days=0)).look()
    assert (done.dropped_cells, done.dropped_audit) == (0, 0)


# Cells that nobody waits for


async def test_cells_of_a_killed_process_get_their_end(world: World, caretaker: Caretaker) -> None:
    await used(world)
    record = await world.bench().submit(requests.RunCell(session=ONE, code="hang", cell=MINE))
    assert (await caretaker.settle_pending()).pending == {ONE}
    world.host.finish(record.sandbox, MINE)
    settled = await caretaker.settle_pending()
    assert (settled.finished, settled.pending) == (1, frozenset())
    assert (await world.cells.get(ONE, MINE)).status is CellStatus.ENDED


async def test_results_that_are_there_are_taken_before_a_loss_closes_their_sandbox(
    world: World, caretaker: Caretaker
) -> None:
    await used(world)
    names = [CellId("c-a"), CellId("c-b"), CellId("c-c")]
    for name in names:
        record = await world.bench().submit(requests.RunCell(session=ONE, code="hang", cell=name))
    sandbox = world.host.sandboxes[record.sandbox]
    world.host.finish(record.sandbox, names[1])
    sandbox.gone = "disk full"
    # As of one whose end nobody saw.
    for name in (names[0], names[2]):
        sandbox.running.pop(name)
        sandbox.dropped.add(name)
    later(world, MINUTE)
    assert (await caretaker.settle_pending()).finished == 3
    ends = [(await world.cells.get(ONE, name)).result for name in names]
    assert [end.outcome for end in ends if end is not None] == [Outcome.LOST, Outcome.OK, Outcome.LOST]


async def test_many_cells_that_went_with_their_host_cost_one_moment(world: World, caretaker: Caretaker) -> None:
    for number in range(5):
        name = SessionId(f"s{number}")
        await used(world, name)
        await world.bench().submit(requests.RunCell(session=name, code="hang"))
    world.host.die()
    later(world, MINUTE)
    assert (await caretaker.settle_pending()).finished == 5
    assert world.clock.paused_s == 1.0


async def test_a_host_that_does_not_answer_leaves_them_pending_and_is_told(world: World, caretaker: Caretaker) -> None:
    await used(world)
    await world.bench().submit(requests.RunCell(session=ONE, code="hang", cell=MINE))
    world.host.stuck = True
    later(world, DAY)
    done = await caretaker.look()
    assert (done.settled, done.ended) == (0, 0)
    assert "the end of cell c-mine is not known yet" in done.problems[0]


async def test_a_cell_whose_session_goes_meanwhile_is_no_problem(world: World, caretaker: Caretaker) -> None:
    await used(world)
    await world.bench().submit(requests.RunCell(session=ONE, code="hang", cell=MINE))
    world.host.die()
    world.clock.meanwhile = lambda: world.records._shelves.cells.clear()
    settled = await caretaker.settle_pending()
    assert (settled.finished, settled.problems) == (0, ())
    with pytest.raises(NotFound):
        await world.cells.get(ONE, MINE)


@pytest.mark.parametrize(("seconds", "words"), [(43_200, "12 h"), (900, "15 min"), (90, "90 s"), (3601, "3601 s")])
def test_times_are_said_as_people_say_them(seconds: int, words: str) -> None:
    assert in_words(seconds) == words
