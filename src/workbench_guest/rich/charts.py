"""What a chart is as data, whoever drew it: the words of its shape, and its bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from workbench_guest.rich.values import picked

MIME = "application/vnd.workbench.chart+json"
# A curve is seen from so many points, and a reader wants no more; how many there were is told.
MOST_POINTS = 1000
MOST_SERIES, MOST_CHARTS, MOST_TICKS = 50, 50, 50
_MOST_BYTES = 256 * 1024
_FEWER_POINTS = (MOST_POINTS, 200, 50, 10)
UNKNOWN, MIXED, SUBPLOTS = "unknown", "mixed", "subplots"

Chart = dict[str, Any]
Series = dict[str, Any]
Made = Callable[[int], Chart]


def series_of(
    kind: str, label: str, columns: Sequence[str], points: Sequence[Sequence[Any]], count: int, **more: object
) -> Series:
    """One of a chart; `columns` says what the numbers of a point are, and `count` how many points there were."""
    return {"type": kind, "label": label, "columns": list(columns), "points": points, "count": count, **more}


def type_of(series: Sequence[Series]) -> str:
    """Of a chart: that of its series, if it is one."""
    kinds = {one["type"] for one in series}
    return kinds.pop() if len(kinds) == 1 else MIXED if kinds else UNKNOWN


def together(charts: Sequence[Chart], title: str) -> Chart:
    """One chart as itself, several as parts of one."""
    if not charts:
        return {"type": UNKNOWN, "title": title, "series": []}
    if len(charts) == 1:
        return {**charts[0], "title": charts[0]["title"] or title}
    return {"type": SUBPLOTS, "title": title, "subplots": list(charts[:MOST_CHARTS])}


def bounded(make: Made) -> Chart | None:
    """Made with so many points that it has room; None if it never has."""
    for most in _FEWER_POINTS:
        chart = make(most)
        if len(json.dumps(chart, ensure_ascii=False, allow_nan=False)) <= _MOST_BYTES:
            return chart
    return None


def points(columns: Sequence[Sequence[Any]], most: int) -> tuple[list[int], int]:
    """Which of the points are told, and how many there were."""
    count = min((len(column) for column in columns), default=0)
    return picked(range(count), most), count
