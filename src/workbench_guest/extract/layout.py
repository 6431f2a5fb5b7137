"""Tables on a scan: rows as lines, where recognition gives words with wide gaps, or column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench_guest.extract.rows import as_line

# Of all lines, how many have cells in a table.
_IN_CELLS = 0.6
# Wider cells, in letters, are columns of prose, which are read one after the other. Signs of East Asia count twice.
_CELL_WIDTH = 24.0
_FIRST_WIDE = "\u2e80"
# Wider than any space between words of a justified line, in heights of the line.
_CELL_GAP = 1.5
# Of the smaller height: less of it in common is the next line.
_IN_COMMON = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word, and where it stands."""

    text: str
    left: int
    top: int
    right: int
    bottom: int
    begins_line: bool = False


def as_table(words: Sequence[Word]) -> str | None:
    """The rows, if it is a table; None if it is anything else."""
    cells = _cells(words)
    rows: list[list[Word]] = []
    for cell in sorted(cells, key=lambda one: one.top + one.bottom):
        if rows and _level(rows[-1][0], cell):
            rows[-1].append(cell)
        else:
            rows.append([cell])
    beside = sum(len(row) for row in rows if len(row) > 1)
    width = sum(_width(cell.text) for cell in cells) / max(1, len(cells))
    if not cells or beside < _IN_CELLS * len(cells) or width > _CELL_WIDTH:
        return None
    return "\n".join(as_line([cell.text for cell in sorted(row, key=lambda one: one.left)]) for row in rows)


def _cells(words: Sequence[Word]) -> list[Word]:
    """Words that follow each other on a line without a gap."""
    cells: list[Word] = []
    for word in words:
        # Lines between cells are taken for words of nothing, or for the sign that looks like them.
        if not word.text.strip("|"):
            continue
        if cells and not word.begins_line and _follows(cells[-1], word):
            cells[-1] = _together(cells[-1], word)
        else:
            cells.append(word)
    return cells


def _follows(one: Word, other: Word) -> bool:
    height = max(one.bottom - one.top, other.bottom - other.top)
    return _level(one, other) and other.left - one.right <= _CELL_GAP * height


def _together(one: Word, other: Word) -> Word:
    between = "" if one.text[-1:] >= _FIRST_WIDE and other.text[:1] >= _FIRST_WIDE else " "
    return Word(
        text=one.text + between + other.text,
        left=one.left,
        top=min(one.top, other.top),
        right=other.right,
        bottom=max(one.bottom, other.bottom),
    )


def _level(one: Word, other: Word) -> bool:
    common = min(one.bottom, other.bottom) - max(one.top, other.top)
    return common > _IN_COMMON * min(one.bottom - one.top, other.bottom - other.top)


def _width(text: str) -> int:
    return sum(2 if letter >= _FIRST_WIDE else 1 for letter in text)
