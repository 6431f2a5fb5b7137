"""Reads the lists in `lists/`: one row a line, comments begin with `#`. What rows mean is left to who asked."""

from __future__ import annotations

from pathlib import Path

_LISTS = Path(__file__).parent / "lists"


def rows(language: str, name: str) -> tuple[str, ...]:
    """The rows of one list, without comments and empty lines."""
    text = (_LISTS / language / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def columns(language: str, name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a list whose columns are divided by bars."""
    return tuple(tuple(part.strip() for part in row.split("|")) for row in rows(language, name))
