"""What the calls of each cell came to, for its receipt."""

from __future__ import annotations

from collections import OrderedDict

from workbench.model.calls import CallAnswer
from workbench.model.execution import HelperUse
from workbench.model.ids import CellId

# Cells whose receipts never come, say of commands that were dropped, are forgotten after so many others.
_MOST_CELLS = 1000


class CallTally:
    """Of one sandbox."""

    def __init__(self) -> None:
        self._used: OrderedDict[CellId, HelperUse] = OrderedDict()

    def add(self, cell: CellId | None, answer: CallAnswer) -> None:
        """One more call; one that belongs to no cell is in nobody's receipt."""
        if cell is None:
            return
        before = self._used.pop(cell, HelperUse())
        self._used[cell] = HelperUse(
            calls=before.calls + 1,
            failed=before.failed + answer.failed,
            prompt_tokens=before.prompt_tokens + answer.prompt_tokens,
            completion_tokens=before.completion_tokens + answer.completion_tokens,
        )
        if len(self._used) > _MOST_CELLS:
            self._used.popitem(last=False)

    def take(self, cell: CellId) -> HelperUse:
        """Of a cell that has ended."""
        return self._used.pop(cell, HelperUse())
