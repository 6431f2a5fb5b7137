"""What a soak counts, and the report that is made of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_TOLD = 20


@dataclass(slots=True)
class Tally:
    """Shared by all lanes of one run."""

    done: Counter[str] = field(default_factory=Counter)
    """by kind: sessions, cells, commands, each kind of trouble"""
    wrong: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Nothing was wrong."""
        return not (self.wrong or self.hangs or self.leaks)

    def report(self, title: str, facts: str) -> str:
        """As markdown."""
        verdict = "PASS" if self.clean else "FAIL"
        lines = [f"## {title}", "", "| what | count |", "|---|---|"]
        lines += [f"| {kind} | {self.done[kind]} |" for kind in _ORDER if self.done[kind]]
        lines += [f"| {kind} | {count} |" for kind, count in sorted(self.done.items()) if kind not in _ORDER]
        for name, found in (("wrong answers", self.wrong), ("hangs", self.hangs), ("leaks", self.leaks)):
            lines.append(f"| **{name}** | **{len(found)}** |")
        lines += ["", f"{verdict}. {facts}"]
        for name, found in (("wrong", self.wrong), ("hang", self.hangs), ("leak", self.leaks)):
            lines += [f"- {name}: {one}" for one in found[:_TOLD]]
        return "\n".join(lines)


SESSIONS, CELLS, COMMANDS = "sessions", "checked cells", "checked commands"
KILLED_OUTSIDE, KILLED_INSIDE = "kernels killed from outside", "kernels killed from inside"
_ORDER = (SESSIONS, CELLS, COMMANDS, KILLED_OUTSIDE, KILLED_INSIDE)
