"""What the calls of each cell came to, for its receipt."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from workbench.model.calls import CallAnswer
from workbench.model.execution import Corrections, HelperUse
from workbench.model.ids import CellId

# Cells whose receipts never come, say of commands that were dropped, are forgotten after so many others.
_MOST_CELLS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """By one cell."""

    helpers: HelperUse = field(default_factory=HelperUse)
    corrections: Corrections = field(default_factory=Corrections)


class CallTally:
    """Of one sandbox."""

    def __init__(self) -> None:
        self._used: OrderedDict[CellId, Asked] = OrderedDict()

    def add(self, cell: CellId | None, answer: CallAnswer) -> None:
        """One more call; one that belongs to no cell is in nobody's receipt."""
        if cell is None:
            return
        before = self._used.pop(cell, Asked())
        used = HelperUse(
            calls=before.helpers.calls + 1,
            failed=before.helpers.failed + answer.failed,
            prompt_tokens=before.helpers.prompt_tokens + answer.prompt_tokens,
            completion_tokens=before.helpers.completion_tokens + answer.completion_tokens,
        )
        self._used[cell] = Asked(helpers=used, corrections=before.corrections.with_more(answer.corrections))
        if len(self._used) > _MOST_CELLS:
            self._used.popitem(last=False)

    def take(self, cell: CellId) -> Asked:
        """Of a cell that has ended."""
        return self._used.pop(cell, Asked())
