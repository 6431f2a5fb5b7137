"""An axis of matplotlib's: what it says of itself, and what its numbers mean on it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from workbench_guest.rich.charts import MOST_TICKS, Chart
from workbench_guest.rich.values import number, text

Meaning = Callable[[float], Any]


def described(axis: Any) -> Chart:
    """Its label, scale, limits and ticks."""
    low, high = sorted(float(end) for end in axis.get_view_interval())
    meaning = meaning_of(axis)
    return {
        "label": text(axis.get_label_text()),
        "scale": _scale(axis),
        "limits": [meaning(low), meaning(high)] if _is_date(axis) else [number(low), number(high)],
        "ticks": _ticks(axis, low, high),
    }


def meaning_of(axis: Any) -> Meaning:
    """From its numbers to what was plotted: names, times, or numbers."""
    if (names := _names(axis)) is not None:
        return lambda value: names.get(round(float(value), 6), number(value))
    if (freq := _pandas_freq(axis)) is not None:
        return lambda value: _period(value, freq)
    return _time if _is_date(axis) else number


def _scale(axis: Any) -> str:
    if _is_date(axis):
        return "datetime"
    return "categorical" if _names(axis) is not None else text(str(axis.get_scale()))


def _ticks(axis: Any, low: float, high: float) -> list[str]:
    shown: list[str] = []
    for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False):
        if low <= place <= high and len(shown) < MOST_TICKS:
            shown.append(text(label.get_text()))
    return shown


def _names(axis: Any) -> dict[float, str] | None:
    """What stands at whole places, if the axis has names: given as texts, or put there as fixed labels."""
    mapping = getattr(getattr(axis, "units", None), "_mapping", None)
    if mapping:
        return {float(place): text(str(name)) for name, place in mapping.items()}
    formatter = axis.get_major_formatter()
    if type(formatter).__name__ != "FixedFormatter":
        return None
    labels = zip(axis.get_majorticklocs(), formatter.seq, strict=False)
    return {round(float(place), 6): text(str(name)) for place, name in labels} or None


def _is_date(axis: Any) -> bool:
    return "Date" in type(_converter(axis)).__name__ or _pandas_freq(axis) is not None


def _converter(axis: Any) -> Any:
    ask = getattr(axis, "get_converter", None)
    return ask() if ask is not None else getattr(axis, "converter", None)


def _pandas_freq(axis: Any) -> Any:
    """Of a series over time that pandas plotted, whose numbers count periods."""
    is_horizontal = getattr(axis, "axis_name", "") == "x"
    return getattr(axis.axes, "freq", None) if is_horizontal and "pandas" in sys.modules else None


def _period(value: float, freq: Any) -> Any:
    if not math.isfinite(value):
        return None
    return str(sys.modules["pandas"].Period(ordinal=int(value), freq=freq).to_timestamp().isoformat())


def _time(value: float) -> Any:
    if not math.isfinite(value):
        return None
    # matplotlib thinks in UTC; what was plotted without a zone has none.
    return str(sys.modules["matplotlib.dates"].num2date(value).replace(tzinfo=None).isoformat())
