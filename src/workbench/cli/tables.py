"""Rows for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as they need to be; control characters of a guest's do not reach the terminal."""
    table = [headings, *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def plain(text: str) -> str:
    """Without what a terminal would act on."""
    # BARRIER: names, reprs and command lines are the guest's words, and could move the cursor or retitle the window;
    # held by tests/unit/cli/test_tables.py.
    return "".join(character if character.isprintable() else "?" for character in text)


def size(count: int) -> str:
    """Bytes, as people say them."""
    for unit, least in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count} B"


def lasting(seconds: float) -> str:
    """A duration, as people say it."""
    for unit, least in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= least:
            return f"{seconds / least:.1f} {unit}"
    return f"{seconds:.1f} s"


def moment(iso: str) -> str:
    """A time of ours, to the second."""
    return f"{iso[:19].replace('T', ' ')} UTC"
