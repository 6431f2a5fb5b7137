"""Figures of plotly: as data and as a page, out of the JSON that plotly itself gives; and its way to show them."""

from __future__ import annotations

import base64
import os
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from workbench_guest.rich.charts import MOST_CHARTS, MOST_SERIES, Chart, Series, bounded, series_of, together, type_of
from workbench_guest.rich.charts import points as points_of
from workbench_guest.rich.values import Patience, clean, text

MIME = "application/vnd.plotly.v1+json"
_RENDERER = "plotly_mimetype"
_PATIENCE_S = 0.25
# Whose points are numbers on two axes.
_BARS, _LINES = {"bar"}, {"scatter", "scattergl"}
_RAW = {"histogram": "histogram", "box": "box"}
_Figure = Mapping[str, Any]


def patch_renderers(module: Any) -> None:
    """After the import of `plotly.io._renderers`: figures are shown as data, unless somebody chose another way.

    Its own choice here would send all of its JavaScript along with each figure.
    """
    if not os.environ.get("PLOTLY_RENDERER"):
        module.renderers.default = _RENDERER
    if not getattr(module, "nbformat", None):
        # It looks at the version, and uses nothing of it.
        module.nbformat = types.SimpleNamespace(__version__="5.10.0")


def page_of(figure: _Figure) -> str | None:
    """As a piece of HTML, which fetches the library from where plotly publishes it."""
    made = sys.modules.get("plotly.io")
    if made is None:
        return None
    return str(made.to_html(dict(figure), include_plotlyjs="cdn", full_html=False, validate=False))


def of_figure(figure: _Figure) -> Chart | None:
    """All of it."""
    return bounded(lambda most: _chart(figure, most))


def _chart(figure: _Figure, most: int) -> Chart:
    layout = _mapping(figure.get("layout"))
    groups: dict[tuple[str, str], list[_Figure]] = {}
    for trace in figure.get("data") or ():
        if isinstance(trace, Mapping):
            groups.setdefault(_axes_of(trace), []).append(trace)
    charts = [_of_axes(traces, axes, layout, most) for axes, traces in list(groups.items())[:MOST_CHARTS]]
    return together(charts, _title(layout))


def _axes_of(trace: _Figure) -> tuple[str, str]:
    if "x" not in trace and "y" not in trace:
        return (str(trace.get("type")), str(trace.get("domain")))
    return (str(trace.get("xaxis") or "x"), str(trace.get("yaxis") or "y"))


def _of_axes(traces: Sequence[_Figure], axes: tuple[str, str], layout: _Figure, most: int) -> Chart:
    series = [_series(trace, most) for trace in traces[:MOST_SERIES]]
    known = [one for one in series if one is not None]
    chart: Chart = {"type": type_of(known), "title": "", "series": known}
    if chart["type"] != "pie":
        chart |= {"x": _axis(layout, axes[0]), "y": _axis(layout, axes[1])}
    if len(traces) > MOST_SERIES:
        chart["more_series"] = len(traces) - MOST_SERIES
    unknown = {text(str(trace.get("type"))) for trace, one in zip(traces, series, strict=False) if one is None}
    if unknown:
        chart["not_understood"] = sorted(unknown)[:10]
    return chart


def _series(trace: _Figure, most: int) -> Series | None:
    kind, label = str(trace.get("type") or "scatter"), text(str(trace.get("name") or ""))
    if kind == "pie":
        return _points("pie", label, ("label", "value"), (trace.get("labels"), trace.get("values")), most)
    if kind in _RAW:
        name = "y" if trace.get("orientation") == "h" or "x" not in trace else "x"
        name = name if kind == "histogram" else "y" if "y" in trace else "x"
        return _points(_RAW[kind], label, ("value",), (trace.get(name),), most)
    if kind in _BARS:
        is_flat = trace.get("orientation") == "h"
        values = (trace.get("y"), trace.get("x")) if is_flat else (trace.get("x"), trace.get("y"))
        columns = ("y", "width") if is_flat else ("x", "height")
        way = "horizontal" if is_flat else "vertical"
        return _points("bar", label, columns, values, most, orientation=way)
    if kind in _LINES:
        has_lines = "lines" in str(trace.get("mode") or "lines")
        return _points("line" if has_lines else "scatter", label, ("x", "y"), (trace.get("x"), trace.get("y")), most)
    return None


def _points(
    kind: str, label: str, names: Sequence[str], columns: Sequence[object], most: int, **more: object
) -> Series | None:
    given = [_numbers(column) for column in columns]
    longest = max((len(column) for column in given if column is not None), default=0)
    # Without places plotly counts.
    whole = [column if column is not None else range(longest) for column in given]
    chosen, count = points_of(whole, most)
    patience = Patience(_PATIENCE_S)
    points = [[clean(column[at], patience) for column in whole] for at in chosen]
    return series_of(kind, label, names, points, count, **more)


def _numbers(column: object) -> Sequence[Any] | None:
    """A list, or an array as plotly packs it."""
    if isinstance(column, Mapping) and "bdata" in column:
        array: Any = sys.modules["numpy"].frombuffer(base64.b64decode(column["bdata"]), dtype=str(column["dtype"]))
        return list(array.tolist())
    return column if isinstance(column, (list, tuple)) else None


def _axis(layout: _Figure, name: str) -> Chart:
    axis = _mapping(layout.get(f"{name[:1]}axis{name[1:]}"))
    patience = Patience(_PATIENCE_S)
    scale = {"date": "datetime", "category": "categorical", None: ""}.get(axis.get("type"), axis.get("type"))
    told: Chart = {"label": _title(axis), "scale": text(str(scale))}
    if isinstance(given := axis.get("range"), (list, tuple)):
        told["limits"] = [clean(end, patience) for end in given[:2]]
    if isinstance(ticks := axis.get("ticktext"), (list, tuple)):
        told["ticks"] = [clean(one, patience) for one in ticks[:50]]
    return told


def _title(of: _Figure) -> str:
    title = of.get("title")
    return text(str((title.get("text") if isinstance(title, Mapping) else title) or ""))


def _mapping(value: object) -> _Figure:
    return value if isinstance(value, Mapping) else {}
