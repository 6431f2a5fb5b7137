"""Rows of tables as lines, the same for every kind of file."""

from __future__ import annotations

from collections.abc import Sequence

_BETWEEN = " | "
# So that a table does not exist three times in memory, and the clock of a page does not run for all of it.
ROWS_A_PIECE = 5_000


def as_line(cells: Sequence[str]) -> str:
    """One row; what is empty at its end is left out, and no cell breaks the line."""
    flat = [" ".join(cell.split()) for cell in cells]
    while flat and not flat[-1]:
        flat.pop()
    return _BETWEEN.join(flat)
