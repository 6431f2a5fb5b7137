"""Results out of how it ended, what it said, and what it did to the state."""

from __future__ import annotations

from workbench.host.cells.cell_run import Ending
from workbench.host.cells.recorder import Recorder
from workbench.host.cells.words import Place, Restored, command_explanation, explanation
from workbench.model.execution import Cell, CellResult, Command, CommandResult, Outcome, Receipt
from workbench.model.process import ProcessExit

_INCOMPLETE = "The kernel did not say that its output is complete; what was printed last may be missing."


def cell_result(
    cell: Cell, ending: Ending, receipt: Receipt, output: Recorder, place: Place, restored: Restored | None
) -> CellResult:
    """Of a cell that began."""
    words = explanation(ending.outcome, cell.limit_s, ending.lost, place, ending.exit, restored)
    if ending.finished is not None and ending.finished.output_incomplete:
        words = f"{words} {_INCOMPLETE}".strip()
    return CellResult(
        cell=cell.id,
        outcome=ending.outcome,
        results=output.text("results"),
        stdout=output.text("stdout"),
        stderr=output.text("stderr"),
        error=None if ending.outcome is Outcome.OK else output.error,
        explanation=words,
        displays=output.displays,
        displays_left_out=output.displays_left_out,
        displays_file_path=output.displays_file,
        displays_note=output.displays_note,
        limits=ending.exit.limits if ending.exit else (),
        receipt=receipt,
    )


def command_result(
    command: Command, outcome: Outcome, end: ProcessExit, receipt: Receipt, output: Recorder, place: Place
) -> CommandResult:
    """Of a command that began."""
    return CommandResult(
        command=command.id,
        outcome=outcome,
        exit_code=_as_bash_has_it(end),
        stdout=output.text("stdout"),
        stderr=output.text("stderr"),
        explanation=command_explanation(outcome, command.limit_s, end, place),
        limits=end.limits,
        receipt=receipt,
    )


def _as_bash_has_it(end: ProcessExit) -> int | None:
    if end.lost:
        return None
    return 128 + end.signal if end.signal is not None else end.code
