"""A soak that finds nothing must be one that could have."""

from __future__ import annotations

import random
from dataclasses import replace

from bench.soak.leaks import Holdings
from bench.soak.session import SoakSession
from bench.soak.tally import Tally

from workbench.host_client.connection import HostConnection
from workbench.model.execution import CellResult, MemoryState, Outcome, Receipt
from workbench.model.ids import CellId

HELD = Holdings(
    descriptors=9, threads=1, processes=5, control_groups=4, mounts=3, folders_of_files=0, entries_of_its_folder=6
)


async def nobody() -> HostConnection:
    raise AssertionError("no host is asked")


def session() -> SoakSession:
    one = SoakSession(nobody, Tally(), random.Random(1))
    one.memory.epoch, one.memory.names = 3, {"old": 1}
    return one


def result(**receipt: object) -> CellResult:
    right = Receipt(epoch=3, execution_count=1)
    return CellResult(cell=CellId("c"), outcome=Outcome.OK, receipt=replace(right, **receipt))  # type: ignore[arg-type]


def faults(seen: CellResult, assigns: dict[str, object] | None = None) -> int:
    one = session()
    one.check("code", seen, assigns or {}, Outcome.OK)
    return len(one.tally.wrong)


def test_a_receipt_as_predicted_is_no_fault() -> None:
    assert faults(result()) == 0
    assert faults(result(added=("new",), rebound=("old",)), {"new": 1, "old": 2}) == 0
    assert faults(result(), {"old": 1}) == 0


def test_every_field_of_a_receipt_that_differs_is_a_fault() -> None:
    assert faults(replace(result(), outcome=Outcome.LOST)) == 1
    assert faults(result(epoch=4)) == 1
    assert faults(result(execution_count=2)) == 1
    assert faults(result(state=MemoryState.LOST)) == 1
    assert faults(result(added=("new",))) == 1
    assert faults(result(), {"old": 2}) == 1
    assert faults(result(removed=("old",))) == 1


def test_a_loss_must_be_told_once_with_the_next_epoch() -> None:
    one = session()
    one.memory.lose(told=False)
    one.check("code", result(epoch=4, state=MemoryState.LOST), {}, Outcome.OK)
    one.check("code", result(epoch=4, execution_count=2), {}, Outcome.OK)
    assert one.tally.wrong == []
    one.check("code", result(epoch=4, execution_count=3, state=MemoryState.LOST), {}, Outcome.OK)
    assert len(one.tally.wrong) == 1


def test_more_of_anything_than_before_is_a_leak_and_less_is_none() -> None:
    assert replace(HELD, descriptors=8).more_than(HELD) == []
    assert replace(HELD, descriptors=10, mounts=4).more_than(HELD) == [
        "descriptors: 9 before, 10 after",
        "mounts: 3 before, 4 after",
    ]


def test_a_report_fails_with_a_single_fault_of_any_kind() -> None:
    assert "\nPASS." in Tally().report("T", "facts")
    for kind in ("wrong", "hangs", "leaks"):
        tally = Tally()
        getattr(tally, kind).append("this one")
        assert "\nFAIL." in tally.report("T", "facts")
        assert "this one" in tally.report("T", "facts")
