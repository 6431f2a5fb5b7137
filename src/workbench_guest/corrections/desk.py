"""What is known while a cell runs: whose code it is, which switches are on, and what was done for it so far.

One per process: data of tools has to find it from wherever it is read.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench_guest.corrections import rules

MOST_ITEMS = 20
_MOST_TEXT = 500
ACTED, DECLINED, HINTED, REPEATED, UNDONE = "acted", "declined", "hinted", "repeated", "undone"


@dataclass(slots=True)
class Item:
    """One line of the report."""

    kind: str
    rule: str
    said: str
    line: int
    times: int = 1

    @property
    def text(self) -> str:
        """A sentence for the agent."""
        place = f"line {self.line}: " if self.line else ""
        again = f" (x{self.times})" if self.times > 1 else ""
        return f"{place}{self.said}"[: _MOST_TEXT - len(again)] + again


@dataclass(slots=True)
class Report:
    """Of one cell."""

    items: list[Item] = field(default_factory=list)
    left_out: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    fired: set[tuple[str, str]] = field(default_factory=set)
    """rules that acted, with what was written: for the look whether the next cell has the same again"""

    def add(self, kind: str, rule: str, said: str, line: int) -> None:
        """One more; the same on the same line is counted with the first."""
        for item in self.items:
            if (item.kind, item.rule, item.said, item.line) == (kind, rule, said, line):
                item.times += 1
                return
        if len(self.items) < MOST_ITEMS:
            self.items.append(Item(kind, rule, said, line))
        else:
            self.left_out += 1

    def count(self, rule: str, what: str) -> None:
        """One more time."""
        of_rule = self.counts.setdefault(rule, {})
        of_rule[what] = of_rule.get(what, 0) + 1

    def told(self) -> dict[str, Any]:
        """As the metadata of a reply has it."""
        if not self.items and not self.counts:
            return {}
        items = [
            {"kind": one.kind, "rule": one.rule, "text": one.text, "line": one.line, "times": one.times}
            for one in self.items
        ]
        return {"corrections": items, "corrections_left_out": self.left_out, "rules": self.counts}


class Desk:
    """Where everything that is done for a cell is written down."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self.on: frozenset[str] = frozenset()
        """as the session has it"""
        self.active = False
        """a cell runs that is served"""
        self.cell_file = ""
        self.first_line = 1
        """of the code as Python numbers it, in the agent's cell"""
        self.report = Report()
        self.dress: Callable[[Any], Any] = lambda value: value
        """makes data that is read forgivingly of plain data"""
        self._lock = threading.Lock()

    def begin(self) -> None:
        """A cell that is served."""
        self.report = Report()
        self.cell_file, self.first_line = "", 1
        self.active = bool(self.on)

    def serves(self, switch: str, frame: types.FrameType) -> bool:
        """Whether this is the agent's own code, and may be served."""
        return self.active and switch in self.on and frame.f_globals is self.namespace

    def line_of(self, file: str, line: int) -> int:
        """In the cell as the agent wrote it; 0 if it is not of this cell."""
        return line + self.first_line - 1 if file == self.cell_file else 0

    def acted(self, rule: str, written: str, used: str, line: int = 0) -> None:
        """Something else was done than was written."""
        self._note("corrected", ACTED, rule, f"{written} -> {used}" if used else written, line)
        self.report.fired.add((rule, written))

    def hinted(self, rule: str, said: str, line: int = 0) -> None:
        """Nothing was done."""
        self._note("hint", HINTED, rule, said, line)

    def declined(self, rule: str) -> None:
        """It looked like the mistake, and there was a reason not to act."""
        if self.active:
            with self._lock:
                self.report.count(rule, DECLINED)

    def _note(self, kind: str, what: str, rule: str, said: str, line: int) -> None:
        assert rule in rules.BY_ID
        with self._lock:
            self.report.add(kind, rule, said, line)
            self.report.count(rule, what)


desk = Desk()


def own_name(function: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """Named as what it stands for, so that pickles and messages find that."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(like, name))
    vars(function)["__wrapped__"] = like
    return function
