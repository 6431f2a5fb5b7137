"""Exit codes and remarks: what a script and a reader are told about an end."""

from __future__ import annotations

import pytest

from workbench.cli.outcome import cell_exit_code, command_exit_code, remarks
from workbench.model.execution import CellError, CellResult, CommandResult, MemoryState, Outcome, Receipt
from workbench.model.ids import CellId
from workbench.model.process import Limit


def cell(outcome: Outcome, *, error: tuple[str, str] | None = None, explanation: str = "",
         limits: tuple[Limit, ...] = (), receipt: Receipt | None = None) -> CellResult:  # fmt: skip
    raised = CellError(name=error[0], message=error[1], traceback="") if error else None
    return CellResult(cell=CellId("c"), outcome=outcome, error=raised, explanation=explanation, limits=limits,
                      receipt=receipt or Receipt(epoch=1))  # fmt: skip


def command(outcome: Outcome, exit_code: int | None) -> CommandResult:
    return CommandResult(command=CellId("c"), outcome=outcome, exit_code=exit_code, receipt=Receipt(epoch=1))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (cell(Outcome.OK), 0),
        (cell(Outcome.RAISED, error=("ValueError", "3")), 1),
        (cell(Outcome.RAISED, error=("SystemExit", "3")), 3),
        (cell(Outcome.RAISED, error=("SystemExit", "0")), 0),
        (cell(Outcome.RAISED, error=("SystemExit", "None")), 0),
        (cell(Outcome.RAISED, error=("SystemExit", "")), 0),
        (cell(Outcome.RAISED, error=("SystemExit", "-1")), 255),
        (cell(Outcome.RAISED, error=("SystemExit", "no such file")), 1),
        (cell(Outcome.TIMED_OUT, error=("KeyboardInterrupt", "")), 124),
        (cell(Outcome.LOST), 126),
        (cell(Outcome.INTERRUPTED), 130),
    ],
)
def test_every_end_of_a_cell_has_its_code(result: CellResult, expected: int) -> None:
    assert cell_exit_code(result) == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (command(Outcome.OK, 0), 0),
        (command(Outcome.RAISED, 7), 7),
        (command(Outcome.RAISED, 137), 137),
        (command(Outcome.TIMED_OUT, 137), 124),
        (command(Outcome.INTERRUPTED, 130), 130),
        (command(Outcome.LOST, None), 126),
    ],
)
def test_a_command_has_its_own_code_unless_we_ended_it(result: CommandResult, expected: int) -> None:
    assert command_exit_code(result) == expected


def test_a_plain_end_needs_no_remark() -> None:
    assert remarks(cell(Outcome.RAISED), limit_s=5, session="s") == []


def test_what_was_met_is_named_with_the_next_step() -> None:
    met = cell(Outcome.LOST, explanation="It ran out of memory. The next call is new.", limits=(Limit.MEMORY,))
    assert remarks(met, limit_s=5, session=None) == [
        "It ran out of memory",
        "limit met: out of memory; --tier chooses a larger size",
    ]
    assert remarks(met, limit_s=5, session="mine") == [
        "It ran out of memory. The next call is new.",
        "limit met: out of memory; `workbench sessions tier mine TIER` chooses a larger size",
    ]
    assert "time limit of 5 s" in remarks(cell(Outcome.TIMED_OUT), limit_s=5, session=None)[0]


def test_a_loss_is_told_once() -> None:
    receipt = Receipt(epoch=4, state=MemoryState.LOST, reason="the host ended")
    assert remarks(cell(Outcome.OK, receipt=receipt), limit_s=5, session="s") == [
        "variables lost, now epoch 4: the host ended"
    ]
    told = cell(Outcome.LOST, explanation="It is gone: the host ended. Go on.", receipt=receipt)
    assert len(remarks(told, limit_s=5, session="s")) == 1


def test_a_restored_memory_is_told_in_words_with_the_reason() -> None:
    receipt = Receipt(epoch=4, state=MemoryState.RESTORED, reason="the kernel died: segmentation fault")
    assert remarks(cell(Outcome.OK, receipt=receipt), limit_s=5, session="s") == [
        "variables restored from a snapshot, now epoch 4: the kernel died: segmentation fault"
    ]
    told = cell(Outcome.LOST, explanation="Sorry: the kernel died: segmentation fault. Go on.", receipt=receipt)
    assert remarks(told, limit_s=5, session="s")[1:] == ["variables restored from a snapshot, now epoch 4"]
