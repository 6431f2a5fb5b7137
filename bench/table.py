"""Rows with a verdict, printed and kept: what every bench of this folder ends in."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One promise and what was seen. `fatal` rows (correctness, completeness, memory) are tests as well."""

    what: str
    seen: str
    must: str
    aim: str
    passed: bool
    aimed: bool
    fatal: bool = False
    notes: str = ""

    @property
    def verdict(self) -> str:
        """PASS, FAIL, and whether the aim was reached."""
        return ("PASS, aim reached" if self.aimed else "PASS") if self.passed else "FAIL"


def p50(samples: Sequence[float]) -> float:
    """The median."""
    return statistics.median(samples)


def spread(samples: Sequence[float]) -> str:
    """What a reader needs of a list of milliseconds."""
    return f"{p50(samples):.1f} ms (min {min(samples):.1f}, n {len(samples)})"


def render(title: str, rows: Sequence[Row]) -> str:
    """As markdown, which is also readable in a terminal."""
    lines = [f"## {title}", "", "| what | seen | must | aim | verdict | notes |", "|---|---|---|---|---|---|"]
    lines += [f"| {r.what} | {r.seen} | {r.must} | {r.aim} | {r.verdict} | {r.notes} |" for r in rows]
    return "\n".join(lines)


def machine() -> str:
    """What it ran on; times compare within one run only."""
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    return (
        f"Run on {when} as {who}: {platform.system()} {platform.release()}, {os.cpu_count()} CPUs, "
        f"Python {platform.python_version()}, load {load}. The machine is shared and noisy: compare within the run."
    )


def keep(path: Path, section: str, text: str, title: str = "Results") -> None:
    """Replace our section of the results file, leaving the others alone."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    block = f"{begin}\n{text}\n{end}\n"
    before = path.read_text(encoding="utf-8") if path.exists() else f"# {title}\n\n"
    if begin in before:
        head, _, rest = before.partition(begin)
        _, _, tail = rest.partition(end)
        path.write_text(head + block.rstrip("\n") + tail, encoding="utf-8")
    else:
        path.write_text(before.rstrip("\n") + "\n\n" + block, encoding="utf-8")


def exit_code(rows: Sequence[Row], *, quick: bool) -> int:
    """A quick run says whether the bench still runs and the fatal rows hold; a full one fails on any FAIL."""
    return int(any(not row.passed and (row.fatal or not quick) for row in rows))
