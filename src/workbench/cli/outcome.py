"""Exit codes that scripts can use, and the lines that say what a reader must know beyond the output."""

from __future__ import annotations

from workbench.cli.printing import exit_status
from workbench.model.execution import CellResult, CommandResult, MemoryState, Outcome, Receipt, correction_lines

# As `env`, `timeout` and shells have them, so that scripts need not learn new ones.
EXIT_RAISED = 1
EXIT_TIME_LIMIT = 124
EXIT_OURS = 125
EXIT_LOST = 126
EXIT_INTERRUPTED = 128 + 2
EXIT_ENDED = 128 + 15
_OF_OUTCOME = {
    Outcome.OK: 0,
    Outcome.RAISED: EXIT_RAISED,
    Outcome.TIMED_OUT: EXIT_TIME_LIMIT,
    Outcome.INTERRUPTED: EXIT_INTERRUPTED,
    Outcome.LOST: EXIT_LOST,
}


def cell_exit_code(result: CellResult) -> int:
    """0, what the code gave to `sys.exit`, 1 for another exception, or ours."""
    if result.outcome is Outcome.RAISED and result.error is not None and result.error.name == "SystemExit":
        return exit_status(result.error)
    return _OF_OUTCOME[result.outcome]


def command_exit_code(result: CommandResult) -> int:
    """The command's own, or ours when it has none."""
    if result.outcome in (Outcome.OK, Outcome.RAISED) and result.exit_code is not None:
        return result.exit_code
    return _OF_OUTCOME[result.outcome]


def remarks(result: CellResult | CommandResult, *, limit_s: float, session: str | None) -> list[str]:
    """Each is one line; `session` is the name of one that stays."""
    said = []
    if result.outcome is Outcome.TIMED_OUT:
        said.append(f"time limit of {limit_s:g} s reached; --timeout sets another")
    if result.explanation and session is not None:
        said.append(" ".join(result.explanation.split()))
    elif result.explanation and result.outcome is not Outcome.TIMED_OUT:
        # What it says of the next call is of no use: there is none in a session of its own.
        said.append(" ".join(result.explanation.split()).partition(". ")[0])
    larger = f"`workbench sessions tier {session} TIER`" if session else "--tier"
    said.extend(f"limit met: {limit.value}; {larger} chooses a larger size" for limit in result.limits)
    said.extend(line.removeprefix("[sandbox] ") for line in correction_lines(result))
    if isinstance(result, CellResult) and any(one.files for one in result.displays):
        said.append(result.displays_note)
    return said + _of_memory(result.receipt, result.explanation)


def _of_memory(receipt: Receipt, explanation: str) -> list[str]:
    told = bool(explanation) and receipt.reason in explanation
    match receipt.state:
        case MemoryState.INTACT:
            return []
        case MemoryState.LOST:
            return [] if told else [f"variables lost, now epoch {receipt.epoch}: {receipt.reason}"]
        case MemoryState.RESTORED:
            words = f"variables restored from a snapshot, now epoch {receipt.epoch}"
            return [words if told or not receipt.reason else f"{words}: {receipt.reason}"]
