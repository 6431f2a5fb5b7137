"""A figure of matplotlib's as data: what it shows, read off what it is drawn with. What is not understood is named."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from workbench_guest.rich.axes import Meaning, described, meaning_of
from workbench_guest.rich.boxes import boxes_in
from workbench_guest.rich.charts import (
    MOST_CHARTS,
    MOST_SERIES,
    UNKNOWN,
    Chart,
    Series,
    bounded,
    series_of,
    together,
    type_of,
)
from workbench_guest.rich.charts import points as points_of
from workbench_guest.rich.values import number, text

_NO_LINE = ("None", "none", " ", "")
# Bars this near to each other touch.
_TOUCHING = 1e-6
_MOST_UNDERSTOOD = 10
# In which numbers are where they are drawn.
_FLAT = "rectilinear"


def of_figure(figure: Any) -> Chart | None:
    """All of it."""
    return bounded(lambda most: _chart(figure, most))


def _chart(figure: Any, most: int) -> Chart:
    shown = [axes for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"]
    charts = [_of_axes(axes, most) for axes in shown[:MOST_CHARTS]]
    title = getattr(figure, "get_suptitle", str)()
    return together([chart for chart in charts if chart["series"] or "not_understood" in chart], text(title))


def _of_axes(axes: Any, most: int) -> Chart:
    title = text(axes.get_title() or axes.get_title("left") or axes.get_title("right"))
    if axes.name != _FLAT:
        return {"type": UNKNOWN, "title": title, "series": [], "not_understood": [f"{axes.name} axes"]}
    reading = _Reading(axes, most)
    series = list(reading.series())
    chart: Chart = {"type": type_of(series), "title": title, "series": series[:MOST_SERIES]}
    if chart["type"] != "pie":
        chart |= {"x": described(axes.xaxis), "y": described(axes.yaxis)}
    if len(series) > MOST_SERIES:
        chart["more_series"] = len(series) - MOST_SERIES
    if unknown := sorted(reading.not_understood()):
        chart["not_understood"] = unknown[:_MOST_UNDERSTOOD]
    return chart


class _Reading:
    """Of one system of axes: whatever was read is not read again as something else."""

    def __init__(self, axes: Any, most: int) -> None:
        self._axes = axes
        self._most = most
        self._read: set[int] = set()
        self._x: Meaning = meaning_of(axes.xaxis)
        self._y: Meaning = meaning_of(axes.yaxis)

    def series(self) -> Iterator[Series]:
        """Each, boxes first: what is left of the lines is lines."""
        self._pass_over_helpers()
        yield from self._bars()
        yield from self._boxes()
        yield from self._lines()
        yield from self._scatters()
        yield from self._pie()

    def not_understood(self) -> set[str]:
        """Kinds of what else is drawn."""
        drawn = [*self._axes.patches, *self._axes.collections, *self._axes.images]
        return {type(one).__name__ for one in drawn if id(one) not in self._read and one.get_visible()}

    def _pass_over_helpers(self) -> None:
        """Bars of errors and their caps say how sure a number is, not what it is."""
        for container in self._axes.containers:
            errors = container if type(container).__name__ == "ErrorbarContainer" else None
            errors = errors or getattr(container, "errorbar", None)
            if errors is not None:
                _, caps, lines = errors.lines
                self._read.update(map(id, [*caps, *lines]))

    def _bars(self) -> Iterator[Series]:
        for container in self._axes.containers:
            if type(container).__name__ != "BarContainer" or not len(container):
                continue
            self._read.update(map(id, container.patches))
            if container.orientation == "horizontal":
                spans = [(bar.get_y(), bar.get_height(), bar.get_width()) for bar in container.patches]
                yield self._bar_series(container, spans, self._y, ("y", "width"))
            else:
                spans = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in container.patches]
                yield self._bar_series(container, spans, self._x, ("x", "height"))

    def _bar_series(
        self, container: Any, spans: Sequence[tuple[Any, Any, Any]], meaning: Meaning, columns: tuple[str, str]
    ) -> Series:
        chosen, count = points_of([spans], self._most)
        label, name = _label(container), container.orientation
        if meaning is number and _touch(spans):
            points = [[number(at), number(at + wide), number(long)] for at, wide, long in (spans[n] for n in chosen)]
            return series_of("histogram", label, ("from", "to", columns[1]), points, count, orientation=name)
        points = [[meaning(at + wide / 2), number(long)] for at, wide, long in (spans[n] for n in chosen)]
        return series_of("bar", label, columns, points, count, orientation=name)

    def _boxes(self) -> Iterator[Series]:
        lines = [line for line in self._axes.lines if id(line) not in self._read]
        found, used = boxes_in(lines, self._axes.patches)
        self._read |= used
        for is_vertical in (True, False):
            some = [box for box in found if box.is_vertical is is_vertical]
            if some:
                meaning = self._x if is_vertical else self._y
                points = [[meaning(box.place), *map(number, box.numbers)] for box in some[: self._most]]
                columns = ("at", "low", "q1", "median", "q3", "high")
                way = "vertical" if is_vertical else "horizontal"
                yield series_of("box", "", columns, points, len(some), orientation=way)

    def _lines(self) -> Iterator[Series]:
        for line in self._axes.lines:
            # One whose ends are not in the data goes across, whatever the data: a threshold, the middle.
            is_data = line.get_transform().contains_branch_seperately(self._axes.transData) == (True, True)
            if id(line) in self._read or not line.get_visible() or not is_data:
                continue
            columns = (line.get_xdata(orig=False), line.get_ydata(orig=False))
            if len(columns[0]):
                kind = "scatter" if line.get_linestyle() in _NO_LINE else "line"
                yield self._points(kind, _label(line), columns)

    def _scatters(self) -> Iterator[Series]:
        for cloud in self._axes.collections:
            if type(cloud).__name__ == "PathCollection" and cloud.get_visible():
                self._read.add(id(cloud))
                offsets = cloud.get_offsets()
                yield self._points("scatter", _label(cloud), (offsets[:, 0], offsets[:, 1]))

    def _points(self, kind: str, label: str, columns: tuple[Any, Any]) -> Series:
        chosen, count = points_of(columns, self._most)
        xs, ys = columns
        # What a mask hides is not a number.
        points = [[self._x(_unmasked(xs[n])), self._y(_unmasked(ys[n]))] for n in chosen]
        return series_of(kind, label, ("x", "y"), points, count)

    def _pie(self) -> Iterator[Series]:
        wedges = [patch for patch in self._axes.patches if type(patch).__name__ == "Wedge"]
        if wedges:
            self._read.update(map(id, wedges))
            shares = [[_label(one), round((one.theta2 - one.theta1) / 360, 6)] for one in wedges[: self._most]]
            yield series_of("pie", "", ("label", "share"), shares, len(wedges))


def _touch(spans: Sequence[tuple[Any, Any, Any]]) -> bool:
    """As the bars of a histogram do."""
    if len(spans) < 2:
        return False
    room = abs(spans[-1][0] - spans[0][0]) * _TOUCHING
    return all(abs(at + wide - after) <= room for (at, wide, _), (after, _, _) in itertools.pairwise(spans))


def _label(artist: Any) -> str:
    """What the agent called it; matplotlib's own names begin like this."""
    label = str(artist.get_label())
    return "" if label.startswith("_") else text(label)


def _unmasked(value: Any) -> float:
    return float("nan") if type(value).__name__ == "MaskedConstant" else float(value)
