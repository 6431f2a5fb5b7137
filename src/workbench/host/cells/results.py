"""Results out of how it ended, what it said, and what it did to the state."""

from __future__ import annotations

from workbench.host.cells.cell_run import Ending
from workbench.host.cells.measuring import Cost
from workbench.host.cells.recorder import Recorder
from workbench.host.cells.words import (
    Place,
    Restored,
    command_explanation,
    explanation,
    how_it_ended,
    sandbox_ended,
    then_gone,
    with_quota,
)
from workbench.model.execution import Cell, CellResult, Command, CommandResult, Corrections, Outcome, Receipt
from workbench.model.process import ProcessExit

_INCOMPLETE = "The kernel did not say that its output is complete; what was printed last may be missing."


def cell_result(
    cell: Cell,
    ending: Ending,
    receipt: Receipt,
    corrections: Corrections,
    output: Recorder,
    place: Place,
    restored: Restored | None,
    cost: Cost,
) -> CellResult:
    """Of a cell that began."""
    why, lost, end = ending.why_interrupted, ending.lost, ending.exit
    gone_after = "" if lost else cost.gone
    if gone_after:
        end = sandbox_ended(gone_after)
        lost = how_it_ended(end)
    words = explanation(ending.outcome, cell.limit_s, lost, place, end, restored, why_interrupted=why)
    if gone_after and not words:
        words = then_gone("the cell", gone_after, place)
    if ending.finished is not None and ending.finished.output_incomplete:
        words = f"{words} {_INCOMPLETE}".strip()
    is_gone = end is not None and end.lost
    return CellResult(
        cell=cell.id,
        outcome=ending.outcome,
        results=output.text("results"),
        stdout=output.text("stdout"),
        stderr=output.text("stderr"),
        error=None if ending.outcome is Outcome.OK else output.error,
        explanation=with_quota(words, None if is_gone else cost.over_quota),
        displays=output.displays,
        displays_left_out=output.displays_left_out,
        displays_file_path=output.displays_file,
        displays_note=output.displays_note,
        limits=ending.exit.limits if ending.exit else (),
        corrections=corrections.items,
        corrections_left_out=corrections.left_out,
        rules=ending.finished.mended.rules if ending.finished is not None else (),
        receipt=receipt,
    )


def command_result(
    command: Command,
    outcome: Outcome,
    end: ProcessExit,
    receipt: Receipt,
    corrections: Corrections,
    output: Recorder,
    place: Place,
    cost: Cost,
    why_interrupted: str,
) -> CommandResult:
    """Of a command that began."""
    words = command_explanation(outcome, command.limit_s, end, place, why_interrupted=why_interrupted)
    if cost.gone and not end.lost:
        words = f"{words} {then_gone('the command', cost.gone, place)}".strip()
    return CommandResult(
        command=command.id,
        outcome=outcome,
        exit_code=_as_bash_has_it(end),
        stdout=output.text("stdout"),
        stderr=output.text("stderr"),
        explanation=with_quota(words, None if end.lost else cost.over_quota),
        limits=end.limits,
        corrections=corrections.items,
        corrections_left_out=corrections.left_out,
        receipt=receipt,
    )


def _as_bash_has_it(end: ProcessExit) -> int | None:
    if end.lost:
        return None
    return 128 + end.signal if end.signal is not None else end.code
