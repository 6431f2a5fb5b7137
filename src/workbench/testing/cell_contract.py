"""The suite that every store of cells passes; `testing.storage_contract` says how it is used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from workbench.contracts.storage import CellPageRequest, CellStore, Records
from workbench.errors import NotFound
from workbench.model.execution import (
    CellError,
    CellResult,
    CommandResult,
    Correction,
    CorrectionKind,
    Display,
    MemoryState,
    Outcome,
    Receipt,
    RuleCount,
    SnapshotState,
    Text,
)
from workbench.model.ids import DEFAULT_PROJECT, CellId, SandboxId, SessionId
from workbench.model.process import Limit
from workbench.model.records import CellKind, CellRecord, CellStatus, Problem, Progress
from workbench.testing.storage_contract import EARLY, LATE, OTHERS, OpenedRecords, a_branch, a_session

ONE = SessionId("one")
_TEXT = Text(text="värde \x00 \x1b[1m 'quoted' %s ?", characters=3, lines=2, file_path="/mnt/files/o.txt", note="whole")
_RECEIPT = Receipt(
    epoch=3,
    execution_count=4,
    state=MemoryState.RESTORED,
    reason="memory",
    added=("a", "b"),
    removed=("c",),
    rebound=("d",),
    more_names=5,
    working_folder="/home/user",
    peak_memory_bytes=3_000_000_000,
    cpu_s=0.25,
    wall_s=1.5,
    snapshot=SnapshotState(kept=2, current=True, cost_s=0.01, reason="none"),
    corrections=("e",),
    installs=("f",),
)
PROBLEM = Problem(code="sandbox_unavailable", message="no room", context={"tier": "large"})


def a_cell(name: str = "c-1", session: str = "one", at: str = EARLY) -> CellRecord:
    """With something in every field that one has before its end."""
    return CellRecord(
        id=CellId(name),
        session=SessionId(session),
        kind=CellKind.CELL,
        code="print('hallå \\0 % ?')\n\x00",
        limit_s=2.5,
        progress=Progress(thought="why", current_step="HERE", current_step_metric="1/2 mails"),
        digest="d1",
        sandbox=SandboxId("sb-1"),
        created_at=at,
    )


_CORRECTION = Correction(
    kind=CorrectionKind.INSTALLED, rule="install", text="installed x", line=3, packages=("x==1",), seconds=0.5
)


def a_result(cell: str = "c-1") -> CellResult:
    """With something in every field."""
    return CellResult(
        cell=CellId(cell),
        outcome=Outcome.RAISED,
        results=_TEXT,
        stdout=_TEXT,
        stderr=Text(),
        error=CellError(name="ValueError", message="no", traceback="Traceback"),
        explanation="it was too long",
        displays=(
            Display(data={"text/plain": "x"}, metadata='{"a": 1}', display_id="i", is_result=True, files={"b": "c"}),
        ),
        displays_left_out=1,
        displays_file_path="/mnt/files/d",
        displays_note="read it",
        limits=tuple(Limit)[:1],
        corrections=(_CORRECTION,),
        corrections_left_out=2,
        rules=(RuleCount(rule="fence", acted=3, declined=1, hinted=4, repeated=5, undone=9),),
        receipt=_RECEIPT,
    )


def a_command_result(command: str = "c-1") -> CommandResult:
    """With something in every field."""
    return CommandResult(
        command=CellId(command),
        outcome=Outcome.OK,
        exit_code=None,
        stdout=_TEXT,
        explanation="x",
        limits=tuple(Limit)[:1],
        corrections=(_CORRECTION,),
        corrections_left_out=2,
        receipt=_RECEIPT,
    )


def _plain(name: str, at: str) -> CellRecord:
    return replace(a_cell(name, at=at), progress=Progress())


def _minute(number: int) -> str:
    return f"2030-01-01T00:{number:02}:00.000000Z"


class CellStoreContract(OpenedRecords):
    """Subclass it, with the fixture `open_records`."""

    @pytest_asyncio.fixture
    async def cells(self, records: Records) -> AsyncIterator[CellStore]:
        """Cells of a project that has a session."""
        await records.sessions(DEFAULT_PROJECT).add(a_session())
        yield records.cells(DEFAULT_PROJECT)

    @pytest.fixture
    def second(self, more_records: Records) -> CellStore:
        """The same, opened once more."""
        return more_records.cells(DEFAULT_PROJECT)

    async def test_a_cell_comes_back_as_it_was_kept(self, cells: CellStore, second: CellStore) -> None:
        """In another opening as well, and with what a text may hold."""
        assert await cells.add(a_cell()) is None
        assert await second.get(ONE, CellId("c-1")) == a_cell()

    async def test_a_cell_of_an_unknown_session_is_not_kept(self, cells: CellStore) -> None:
        """And says so in the words of an unknown session."""
        with pytest.raises(NotFound, match="no session 'none'"):
            await cells.add(a_cell(session="none"))
        with pytest.raises(NotFound, match="has no cell or command"):
            await cells.get(SessionId("none"), CellId("c-1"))

    async def test_an_unknown_cell_is_not_found(self, cells: CellStore) -> None:
        """Nor is there anything to finish or move."""
        with pytest.raises(NotFound, match="has no cell or command 'none'"):
            await cells.get(ONE, CellId("none"))
        assert await cells.finish(ONE, CellId("none"), LATE, a_result()) is None
        await cells.move(ONE, CellId("none"), SandboxId("sb-2"))
        assert await cells.with_idempotency_key(ONE, "none") is None

    async def test_an_id_is_kept_once(self, cells: CellStore, second: CellStore) -> None:
        """Who comes second gets what is there, as it is by then."""
        await cells.add(a_cell())
        ended = await cells.finish(ONE, CellId("c-1"), LATE, a_result())
        assert await second.add(replace(a_cell(), code="other")) == ended
        assert (await second.get(ONE, CellId("c-1"))).code == a_cell().code

    async def test_an_idempotency_key_is_kept_once(self, cells: CellStore, second: CellStore) -> None:
        """Of a session; whatever the id of the cell. Cells without one do not meet."""
        first = replace(a_cell(), idempotency_key="k 1")
        assert await cells.add(first) is None
        assert await second.add(replace(a_cell("c-2"), idempotency_key="k 1")) == first
        assert await second.add(replace(a_cell("c-3"), idempotency_key="k 2")) is None
        for name in ("c-4", "c-5"):
            assert await second.add(a_cell(name)) is None
        assert await second.with_idempotency_key(ONE, "k 1") == first
        assert await second.with_idempotency_key(ONE, "") is None
        with pytest.raises(NotFound):
            await cells.get(ONE, CellId("c-2"))

    async def test_what_rules_had_to_do_is_counted_once_with_the_end_that_stays(
        self, records: Records, more_records: Records, cells: CellStore, second: CellStore
    ) -> None:
        """For its project, together with those of other cells; those of the host by what the result lists."""
        for name in ("c-1", "c-2"):
            await cells.add(a_cell(name))
        ends = [(cells, second)[n % 2].finish(ONE, CellId("c-1"), LATE, a_result()) for n in range(8)]
        await asyncio.gather(*ends)
        await second.finish(ONE, CellId("c-2"), LATE, a_command_result("c-2"))
        counted = await more_records.rules(DEFAULT_PROJECT).counted()
        assert counted == (*a_result().rules, RuleCount(rule="install", acted=2))
        assert await records.rules(OTHERS).counted() == ()

    async def test_the_same_id_and_key_in_another_session_is_another_cell(
        self, records: Records, cells: CellStore
    ) -> None:
        """As callers choose both."""
        await records.sessions(DEFAULT_PROJECT).add(a_session("two"))
        for session in ("one", "two"):
            assert await cells.add(replace(a_cell(session=session), idempotency_key="k")) is None

    async def test_of_many_who_come_with_one_idempotency_key_one_is_kept(
        self, cells: CellStore, second: CellStore
    ) -> None:
        """And all others get that one."""
        asked = [replace(a_cell(f"c-{n}"), idempotency_key="k") for n in range(12)]
        told = await asyncio.gather(*((cells, second)[n % 2].add(one) for n, one in enumerate(asked)))
        assert told.count(None) == 1
        kept = asked[told.index(None)]
        assert [one for one in told if one is not None] == [kept] * 11
        assert await cells.list(CellPageRequest(session=ONE)) == (kept,)

    @pytest.mark.parametrize("end", [a_result(), PROBLEM], ids=["result", "problem"])
    async def test_an_end_comes_back_as_it_was_written(
        self, cells: CellStore, second: CellStore, end: CellResult | Problem
    ) -> None:
        """With all that is in it."""
        await cells.add(a_cell())
        ended = await cells.finish(ONE, CellId("c-1"), LATE, end)
        if isinstance(end, Problem):
            assert ended == replace(a_cell(), ended_at=LATE, status=CellStatus.FAILED, problem=end)
        else:
            assert ended == replace(a_cell(), ended_at=LATE, status=CellStatus.ENDED, result=end)
        assert await second.get(ONE, CellId("c-1")) == ended

    async def test_the_end_of_a_command_is_that_of_a_command(self, cells: CellStore) -> None:
        """And no cell's."""
        await cells.add(replace(a_cell(), kind=CellKind.COMMAND))
        await cells.finish(ONE, CellId("c-1"), LATE, a_command_result())
        assert (await cells.get(ONE, CellId("c-1"))).result == a_command_result()

    async def test_the_first_end_stays(self, cells: CellStore, second: CellStore) -> None:
        """Of many that are written at once as well; all are told the same."""
        await cells.add(a_cell())
        ends = [replace(a_result(), explanation=str(n)) if n % 3 else PROBLEM for n in range(8)]
        told = await asyncio.gather(
            *((cells, second)[n % 2].finish(ONE, CellId("c-1"), _minute(n), end) for n, end in enumerate(ends))
        )
        kept = await cells.get(ONE, CellId("c-1"))
        assert list(told) == [kept] * 8

    async def test_who_concludes_from_another_sandbox_ends_nothing(self, cells: CellStore) -> None:
        """The cell has moved on."""
        await cells.add(a_cell())
        assert await cells.finish(ONE, CellId("c-1"), LATE, PROBLEM, sandbox=SandboxId("sb-0")) == a_cell()
        ended = await cells.finish(ONE, CellId("c-1"), LATE, PROBLEM, sandbox=SandboxId("sb-1"))
        assert ended is not None
        assert ended.status is CellStatus.FAILED

    async def test_a_key_is_freed_with_the_end_or_not_at_all(self, cells: CellStore, second: CellStore) -> None:
        """The one that is freed may be another's from then on; that of what has ended stays."""
        await cells.add(replace(a_cell(), idempotency_key="k"))
        await cells.finish(ONE, CellId("c-1"), LATE, PROBLEM, sandbox=SandboxId("sb-0"), free_key=True)
        assert (await second.get(ONE, CellId("c-1"))).idempotency_key == "k"
        ended = await cells.finish(ONE, CellId("c-1"), LATE, PROBLEM, free_key=True)
        assert ended == replace(a_cell(), ended_at=LATE, status=CellStatus.FAILED, problem=PROBLEM)
        assert await second.with_idempotency_key(ONE, "k") is None
        assert await second.add(replace(a_cell("c-2"), idempotency_key="k")) is None
        await cells.finish(ONE, CellId("c-2"), LATE, a_result("c-2"))
        again = await cells.finish(ONE, CellId("c-2"), LATE, PROBLEM, free_key=True)
        assert again is not None
        assert (again.status, again.idempotency_key) == (CellStatus.ENDED, "k")

    async def test_what_is_pending_in_a_sandbox_is_found(self, records: Records, cells: CellStore) -> None:
        """Of all sessions of the project that are in it."""
        await records.sessions(DEFAULT_PROJECT).add(a_session("two"))
        await records.sessions(OTHERS).add(a_session("theirs", project=OTHERS))
        await records.cells(OTHERS).add(a_cell(session="theirs"))
        pending = [a_cell("c-2"), a_cell("c-3"), a_cell("c-1", session="two")]
        elsewhere = replace(a_cell("c-4"), sandbox=SandboxId("sb-2"))
        for cell in (*pending, elsewhere, a_cell("c-1")):
            await cells.add(cell)
        await cells.finish(ONE, CellId("c-1"), LATE, a_result())
        assert await cells.pending_in(SandboxId("sb-1")) == tuple(pending)
        assert await cells.pending_in(SandboxId("sb-2")) == (elsewhere,)
        assert await cells.pending_in(SandboxId("sb-0")) == ()

    async def test_a_cell_moves_while_it_is_pending(self, cells: CellStore, second: CellStore) -> None:
        """What has ended keeps the sandbox that has its output."""
        await cells.add(a_cell())
        await cells.move(ONE, CellId("c-1"), SandboxId("sb-2"))
        assert await second.get(ONE, CellId("c-1")) == replace(a_cell(), sandbox=SandboxId("sb-2"))
        await cells.finish(ONE, CellId("c-1"), LATE, a_result())
        await cells.move(ONE, CellId("c-1"), SandboxId("sb-3"))
        assert (await second.get(ONE, CellId("c-1"))).sandbox == "sb-2"

    async def test_pages_go_on_where_the_last_one_ended(self, cells: CellStore) -> None:
        """In both directions; those of the same time by their id."""
        times = {"c-d": 1, "c-b": 2, "c-a": 2, "c-c": 3, "c-e": 0}
        for name, minute in times.items():
            await cells.add(a_cell(name, at=_minute(minute)))
        order = ["c-e", "c-d", "c-a", "c-b", "c-c"]
        for newest_first in (False, True):
            wanted, found = order[::-1] if newest_first else order, []
            after = None
            while page := await cells.list(
                CellPageRequest(session=ONE, after=after, limit=2, newest_first=newest_first)
            ):
                found += [one.id for one in page]
                after = (page[-1].created_at, page[-1].id)
            assert found == wanted
        gone = (_minute(2), CellId("c-aa"))
        assert [one.id for one in await cells.list(CellPageRequest(session=ONE, after=gone))] == ["c-b", "c-c"]

    async def test_the_latest_step_is_of_the_latest_that_says_one(self, cells: CellStore) -> None:
        """Whatever part of it is said."""
        assert await cells.latest_step(ONE) is None
        await cells.add(a_cell("c-1", at=_minute(1)))
        second = replace(a_cell("c-2", at=_minute(3)), progress=Progress(current_step_metric="2/2"))
        await cells.add(second)
        await cells.add(a_cell("c-3", at=_minute(2)))
        await cells.add(_plain("c-4", _minute(4)))
        assert await cells.latest_step(ONE) == second

    async def test_the_last_end_is_of_all_that_are_asked_for(self, records: Records, cells: CellStore) -> None:
        """Empty if nothing ended yet."""
        await records.sessions(DEFAULT_PROJECT).add(a_session("two"))
        both = (ONE, SessionId("two"))
        assert await cells.last_end(both) == ""
        assert await cells.last_end(()) == ""
        for session, minute in (("one", 2), ("two", 5)):
            await cells.add(a_cell(session=session))
            await cells.finish(SessionId(session), CellId("c-1"), _minute(minute), a_result())
        await cells.add(a_cell("c-2"))
        assert await cells.last_end(both) == _minute(5)
        assert await cells.last_end((ONE,)) == _minute(2)

    async def test_cells_of_another_project_are_not_there(self, records: Records, cells: CellStore) -> None:
        """For whoever reads, writes or lists."""
        theirs = records.cells(OTHERS)
        await records.sessions(OTHERS).add(a_session("theirs", project=OTHERS))
        name, cell = SessionId("theirs"), replace(a_cell(session="theirs"), idempotency_key="k")
        await theirs.add(cell)
        with pytest.raises(NotFound):
            await cells.get(name, cell.id)
        with pytest.raises(NotFound):
            await cells.add(a_cell("c-2", session="theirs"))
        with pytest.raises(NotFound):
            await cells.add(cell)
        assert await cells.finish(name, cell.id, LATE, a_result()) is None
        await cells.move(name, cell.id, SandboxId("sb-2"))
        assert await cells.with_idempotency_key(name, "k") is None
        assert await cells.list(CellPageRequest(session=name)) == ()
        assert await cells.latest_step(name) is None
        assert await theirs.get(name, cell.id) == cell
        await theirs.finish(name, cell.id, LATE, a_result())
        assert await cells.last_end((name,)) == ""
        assert await theirs.last_end((name,)) == LATE

    async def test_cells_go_with_their_session(self, records: Records, cells: CellStore) -> None:
        """However it is removed; one that is made anew under the name has none."""
        sessions = records.sessions(DEFAULT_PROJECT)
        root = await sessions.get(ONE)
        branch = a_branch("branch", root)
        assert await sessions.add_branch(branch, root)
        await cells.add(a_cell())
        await cells.add(a_cell(session="branch"))
        assert await sessions.remove_unless_last(branch)
        assert await sessions.add_branch(branch, root)
        assert await cells.list(CellPageRequest(session=branch.spec.id)) == ()
        assert await cells.get(ONE, CellId("c-1"))
        await sessions.remove(branch)
        await sessions.remove(root)
        await sessions.add(a_session())
        assert await cells.list(CellPageRequest(session=ONE)) == ()
        assert await cells.finish(ONE, CellId("c-1"), LATE, a_result()) is None
