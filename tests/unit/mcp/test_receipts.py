"""What is told of a call: everything to programs, a few words to the model."""

from __future__ import annotations

import json

import pytest

from workbench.mcp import receipts
from workbench.model.execution import CellResult, CommandResult, MemoryState, Outcome, Receipt, Text
from workbench.model.ids import CellId
from workbench.model.process import Limit

CELL = CellId("c-1")


def cell(receipt: Receipt, outcome: Outcome = Outcome.OK, explanation: str = "") -> CellResult:
    return CellResult(cell=CELL, outcome=outcome, explanation=explanation, receipt=receipt)


def test_an_ordinary_cell_costs_few_words() -> None:
    receipt = Receipt(epoch=1, execution_count=12, added=("frame", "totals"), rebound=("row",))
    words = receipts.in_words(cell(receipt), "mcp-5f3a9c1e0b7d", is_new=False)
    assert words == (
        "Pass session_id='mcp-5f3a9c1e0b7d' to go on in this state. Memory 1, 12 cells, intact. New: frame, totals. "
        "Changed: row."
    )
    # Well below 60 tokens, of which English has one in about four characters and names more.
    assert len(words) < 150


def test_many_names_and_long_ones_are_cut() -> None:
    receipt = Receipt(epoch=1, added=tuple(f"n{n}" for n in range(40)), removed=("x" * 500,))
    words = receipts.in_words(cell(receipt), "s", is_new=False)
    assert "n11 and 28 more." in words
    assert len(words) < 250


def test_names_that_the_receipt_does_not_list_are_counted() -> None:
    receipt = Receipt(epoch=1, added=tuple(f"n{n}" for n in range(40)), more_names=4960)
    words = receipts.in_words(cell(receipt), "s")
    assert "n11 and 28 more. 4,960 more names changed." in words


def test_a_deleted_session_is_nothing_to_go_on_in() -> None:
    words = receipts.in_words(cell(Receipt(epoch=1), Outcome.LOST, "why"), "s", is_deleted=True)
    assert words == "Session 's' is deleted: there is nothing in it to go on with."


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.RAISED])
def test_a_loss_before_this_call_is_told_with_its_reason(outcome: Outcome) -> None:
    receipt = Receipt(epoch=2, state=MemoryState.LOST, reason="the machine was restarted")
    words = receipts.in_words(cell(receipt, outcome), "s", is_new=False)
    assert "Memory 2, 0 cells, NEW: earlier variables are lost (the machine was restarted)." in words


def test_a_loss_that_the_answer_explains_is_not_explained_twice() -> None:
    receipt = Receipt(epoch=2, state=MemoryState.RESTORED, reason="it crashed; its memory was restored from a snapshot")
    words = receipts.in_words(
        cell(receipt, Outcome.LOST, "The cell did not end: it crashed. Go on."), "s", is_new=False
    )
    assert "RESTORED from a snapshot." in words
    assert "crashed" not in words


def test_limits_corrections_installs_and_texts_without_a_file_are_told() -> None:
    receipt = Receipt(epoch=1, corrections=("a `return` became an expression.",), installs=("polars 1.2.",))
    result = CommandResult(
        command=CELL,
        outcome=Outcome.OK,
        exit_code=0,
        stdout=Text(text="x", characters=50_000, note="the whole is not in a file: the disk is full"),
        stderr=Text(text="x", characters=50_000, file_path="/mnt/files/outputs/x", note="the whole: open(...)"),
        limits=(Limit.DISK,),
        receipt=receipt,
    )
    words = receipts.in_words(result, "s", is_new=True)
    assert "This session is new" in words
    assert "Limit met: disk full." in words
    assert "Cut: the whole is not in a file: the disk is full." in words
    assert "open(" not in words
    assert "Corrected: a `return` became an expression." in words
    assert "Installed: polars 1.2." in words


def test_the_whole_receipt_is_json_under_names_of_ours() -> None:
    receipt = Receipt(epoch=3, state=MemoryState.LOST, reason="why", added=("a",), cpu_s=0.5)
    meta = json.loads(json.dumps(receipts.meta_of(cell(receipt, Outcome.LOST, "explained"))))
    assert set(meta) == {"open-workbench/receipt", "open-workbench/outcome"}
    assert meta["open-workbench/receipt"]["state"] == "lost"
    assert meta["open-workbench/receipt"]["snapshot"]["kept"] == 0
    assert meta["open-workbench/outcome"] == {
        "cell": CELL,
        "outcome": "lost",
        "explanation": "explained",
        "limits": [],
    }


def test_what_one_must_know_of_a_call_that_ended_well_is_told_where_no_error_is() -> None:
    words = "/mnt/files is over its quota: it holds 11 of 10 bytes. Delete files there."
    assert receipts.in_words(cell(Receipt(epoch=1), explanation=words), "s").endswith(words)
    assert words not in receipts.in_words(cell(Receipt(epoch=1), Outcome.INTERRUPTED, words), "s")
