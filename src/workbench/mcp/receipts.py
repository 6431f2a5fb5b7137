"""What a call did to the state: whole for programs, and in a few words for the model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.mcp.answers import OUTCOME_KEY, RECEIPT_KEY
from workbench.mcp.wording import without_commands
from workbench.model.execution import CellResult, CommandResult, MemoryState, Outcome, Receipt

_MOST_NAMES = 12
_MOST_OF_A_NAME = 40


def meta_of(result: CellResult | CommandResult) -> dict[str, Any]:
    """For `_meta`, which programs read: everything, in the core's own words."""
    cell = result.cell if isinstance(result, CellResult) else result.command
    outcome: dict[str, Any] = {
        "cell": cell,
        "outcome": result.outcome.value,
        "explanation": result.explanation,
        "limits": [limit.value for limit in result.limits],
    }
    return {RECEIPT_KEY: asdict(result.receipt), OUTCOME_KEY: outcome}


def in_words(
    result: CellResult | CommandResult, session: str, *, is_new: bool = False, is_deleted: bool = False
) -> str:
    """For the model: how to go on in this state, and what became of it. Short: it is in every answer."""
    if is_deleted:
        return f"Session {session!r} is deleted: there is nothing in it to go on with."
    receipt = result.receipt
    said = [f"Pass session_id={session!r} to go on in this state."]
    if is_new:
        said.append("This session is new: nothing of earlier ones is in it.")
    said.append(_of_memory(result))
    if isinstance(result, CellResult):
        said += _of_names(receipt)
        if result.displays_left_out:
            where = result.displays_file_path or result.displays_note or "no file"
            said.append(f"{result.displays_left_out} more displays: {where}.")
        if any(one.files for one in result.displays):
            said.append(f"Large formats: {result.displays_note}.")
    said += [f"Limit met: {limit.value}." for limit in result.limits]
    said += _of_missing_files(result)
    if result.outcome is Outcome.OK and result.explanation:
        # There is no error in which it could be said.
        said.append(without_commands(result.explanation))
    said += [f"Corrected: {one}" for one in receipt.corrections]
    said += [f"Installed: {one}" for one in receipt.installs]
    return " ".join(said)


def _of_memory(result: CellResult | CommandResult) -> str:
    receipt = result.receipt
    memory = f"Memory {receipt.epoch}, {receipt.execution_count} cells"
    # What ended it in this very call is told in its explanation.
    is_told = bool(receipt.reason) and receipt.reason.split(";")[0] in result.explanation
    why = "" if is_told or not receipt.reason else f" ({without_commands(receipt.reason)})"
    match receipt.state:
        case MemoryState.INTACT:
            return f"{memory}, intact."
        case MemoryState.RESTORED:
            return f"{memory}, RESTORED from a snapshot{why}."
        case MemoryState.LOST:
            return f"{memory}, NEW: earlier variables are lost{why}."


def _of_names(receipt: Receipt) -> list[str]:
    said = []
    for what, names in (("New", receipt.added), ("Changed", receipt.rebound), ("Deleted", receipt.removed)):
        if names:
            more = len(names) - _MOST_NAMES
            shown = ", ".join(name[:_MOST_OF_A_NAME] for name in names[:_MOST_NAMES])
            said.append(f"{what}: {shown}{f' and {more} more' if more > 0 else ''}.")
    if receipt.more_names:
        said.append(f"{receipt.more_names:,} more names changed.")
    return said


def _of_missing_files(result: CellResult | CommandResult) -> list[str]:
    """Where something is cut, and the whole could not be kept."""
    texts = [result.stdout, result.stderr, *([result.results] if isinstance(result, CellResult) else [])]
    return [f"Cut: {without_commands(text.note)}." for text in texts if text.note and text.file_path is None]
