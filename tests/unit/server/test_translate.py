"""Values of the core as shapes of REST."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.server.stand_in import record

from workbench.errors import KernelUnavailable
from workbench.model.execution import CommandResult, Outcome, Receipt, Text
from workbench.model.ids import CellId, SessionId
from workbench.model.records import CellKind, CellStatus, Problem
from workbench.server.translate import after_cursor, cell_cursor, run_cell, shown_cell
from workbench.wire import rest


def test_a_cursor_leads_back_to_where_the_page_ended() -> None:
    after = ("2026-01-01T00:00:00.000000Z", CellId("c-1"))
    assert after_cursor(cell_cursor(after)) == after
    assert cell_cursor(None) is None
    assert after_cursor(None) is None


def test_a_command_is_shown_with_its_exit_code_and_without_what_only_cells_have() -> None:
    result = CommandResult(
        command=CellId("c-1"), outcome=Outcome.RAISED, exit_code=3, stdout=Text(text="x"), receipt=Receipt(epoch=1)
    )
    shown = shown_cell(replace(record(), kind=CellKind.COMMAND, result=result)).result
    assert shown is not None
    assert (shown.exit_code, shown.stdout.text, shown.error, shown.displays) == (3, "x", None, [])


def test_a_cell_that_failed_is_shown_with_its_error() -> None:
    problem = Problem.of(KernelUnavailable("no kernel"))
    shown = shown_cell(replace(record(CellStatus.FAILED), problem=problem))
    assert shown.error is not None
    assert (shown.result, shown.error.code, shown.error.retryable) == (None, "kernel_unavailable", True)


def test_every_cell_gets_an_id_of_its_own() -> None:
    sent = rest.RunCell(code="1", thought="why")
    first, second = (run_cell(SessionId("mine"), sent, "key") for _ in range(2))
    assert first.cell != second.cell
    assert (first.idempotency_key, first.progress.thought) == ("key", "why")
