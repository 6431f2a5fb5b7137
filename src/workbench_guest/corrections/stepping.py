"""One step of mending: a text in, another out, and a note of what was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """What was written on a line, and what was used instead."""

    line: int
    written: str
    used: str


@dataclass(frozen=True, slots=True)
class Stepped:
    """A changed text."""

    text: str
    notes: tuple[Note, ...]


Step = Callable[[str], "Stepped | None"]
"""None if there is nothing of its kind"""


class Declined(Exception):
    """It looks like the mistake, and has no reading or more than one."""
