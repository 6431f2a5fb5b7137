"""What a call did to the state: whole for programs, and in a few words for the model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.mcp.answers import OUTCOME_KEY, RECEIPT_KEY
from workbench.model.execution import CellResult, CommandResult, MemoryState, Receipt

_MOST_NAMES = 12


def meta_of(result: CellResult | CommandResult) -> dict[str, Any]:
    """For `_meta`: everything."""
    cell = result.cell if isinstance(result, CellResult) else result.command
    outcome: dict[str, Any] = {
        "cell": cell,
        "outcome": result.outcome.value,
        "explanation": result.explanation,
        "limits": [limit.value for limit in result.limits],
    }
    return {RECEIPT_KEY: asdict(result.receipt), OUTCOME_KEY: outcome}


def in_words(result: CellResult | CommandResult, session: str, *, is_new: bool) -> str:
    """For the model: how to go on in this state, and what became of it."""
    receipt = result.receipt
    said = [f"Pass session_id={session!r} to go on in this state."]
    if is_new:
        said.append("This session is new: nothing of earlier ones is in it.")
    said.append(_of_memory(receipt))
    if isinstance(result, CellResult):
        said += _of_names(receipt)
        if result.displays_left_out:
            said.append(f"{result.displays_left_out} more displays are in {result.displays_file_path or 'no file'}.")
    said += [f"Limit of its size met: {limit.value}." for limit in result.limits]
    said += [*receipt.corrections, *receipt.installs]
    return " ".join(one for one in said if one)


def _of_memory(receipt: Receipt) -> str:
    memory = f"Memory {receipt.epoch}, {receipt.execution_count} cells"
    match receipt.state:
        case MemoryState.INTACT:
            return f"{memory}, intact."
        case MemoryState.RESTORED:
            return f"{memory}, RESTORED from the snapshot before this call: {receipt.reason}."
        case MemoryState.LOST:
            return f"{memory}, NEW: all earlier variables are lost: {receipt.reason}."


def _of_names(receipt: Receipt) -> list[str]:
    said = []
    for what, names in (("New", receipt.added), ("Changed", receipt.rebound), ("Deleted", receipt.removed)):
        if names:
            more = len(names) - _MOST_NAMES
            said.append(f"{what}: {', '.join(names[:_MOST_NAMES])}{f' and {more} more' if more > 0 else ''}.")
    return said
