"""A proof as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

from workbench.doctor.rows import Row, Verdict, counted

_INSIDE_WIDTH = 58


def summary(rows: tuple[Row, ...]) -> str:
    """One line with every number."""
    counts = Counter(row.verdict for row in rows)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if verdict is not Verdict.NOT_COUNTED)
    return f"{counted(rows)} attacks counted: {parts}; {counts[Verdict.NOT_COUNTED]} not counted"


def render_table(rows: tuple[Row, ...]) -> str:
    """A line a row, open ones last, where they are seen; the reasons below."""
    order = [Verdict.BLOCKED, Verdict.CONTAINED, Verdict.ACCEPTED, Verdict.NOT_COUNTED, Verdict.OPEN]
    width = max((len(row.name) for row in rows), default=4)
    lines = [f"{'verdict':<11}  {'attack':<{width}}  {'inside':<{_INSIDE_WIDTH}}  control"]
    lines += [
        f"{row.verdict:<11}  {row.name:<{width}}  {_cut(row.inside):<{_INSIDE_WIDTH}}  {_cut(row.control)}"
        for row in sorted(rows, key=lambda row: order.index(row.verdict))
    ]
    for verdict in (Verdict.ACCEPTED, Verdict.NOT_COUNTED, Verdict.OPEN):
        chosen = [row for row in rows if row.verdict is verdict]
        if chosen:
            lines += ["", f"{verdict}:"]
            lines += [f"  {row.name}: {row.description}: {row.reason}" for row in chosen]
    return "\n".join([*lines, "", summary(rows)])


def render_json(rows: tuple[Row, ...]) -> str:
    """An object with `summary`, `open` and `rows`."""
    is_open = [row.name for row in rows if row.verdict is Verdict.OPEN]
    return json.dumps({"summary": summary(rows), "open": is_open, "rows": [asdict(row) for row in rows]}, indent=2)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _INSIDE_WIDTH else flat[: _INSIDE_WIDTH - 1] + "…"
