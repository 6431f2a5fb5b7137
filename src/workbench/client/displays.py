"""What a cell displayed, as Python has it: pictures as bytes, JSON as values, tables and charts with their parts."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.wire import rest

TABLE, CHART = "application/vnd.workbench.table+json", "application/vnd.workbench.chart+json"
_PLOTLY = "application/vnd.plotly.v1+json"
_VEGA = ("application/vnd.vegalite.v", "application/vnd.vega.v")

Scalar = str | int | float | bool | None
"""a value as JSON has it: what it does not have is text, and what is missing is None"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One of a table."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The first rows of a DataFrame or Series."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    shape: tuple[int, int]
    """rows and columns of the whole"""
    index: Table | None = None
    """what the rows are called, level by level, if they are not just counted"""

    @property
    def is_whole(self) -> bool:
        """All rows and columns are here."""
        return (len(self.rows), len(self.columns)) == self.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One of a chart."""

    label: str
    scale: str
    """linear, log, datetime, categorical, … as its library calls it"""
    limits: tuple[Scalar, ...] = ()
    ticks: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One of a chart."""

    type: str
    label: str
    columns: tuple[str, ...]
    """what the values of a point are"""
    points: tuple[tuple[Scalar, ...], ...]
    """at most 1,000, at equal distances"""
    count: int
    """how many points there were"""
    orientation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure as data."""

    type: str
    """line, scatter, bar, histogram, pie, box; mixed of several; subplots; unknown"""
    title: str = ""
    x: Axis | None = None
    y: Axis | None = None
    series: tuple[Series, ...] = ()
    subplots: tuple[Chart, ...] = ()
    not_understood: tuple[str, ...] = ()
    """what else is drawn"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """One rich output: the same thing in several formats. A format that it does not have is None."""

    data: Mapping[str, str]
    """by mime type: pictures in base64, JSON types as JSON text"""
    metadata: str = "{}"
    display_id: str = ""
    is_result: bool = False
    """the last value of the cell"""
    is_update: bool = False
    """of something that an earlier cell displayed under this id"""
    files: Mapping[str, str] = field(default_factory=dict)
    """by mime type: where a format is inside the sandbox that is too large to be in `data`"""

    @classmethod
    def of(cls, told: rest.Display) -> Display:
        """As the server tells it."""
        return cls(**told.model_dump())

    @property
    def text(self) -> str | None:
        """As plain text; of the last value that is in `Result.results`."""
        return self.data.get("text/plain")

    @property
    def html(self) -> str | None:
        """As a page, or a part of one."""
        return self.data.get("text/html")

    @property
    def markdown(self) -> str | None:
        """As Markdown."""
        return self.data.get("text/markdown")

    @property
    def latex(self) -> str | None:
        """As LaTeX."""
        return self.data.get("text/latex")

    @property
    def svg(self) -> str | None:
        """As a drawing."""
        return self.data.get("image/svg+xml")

    @property
    def png(self) -> bytes | None:
        """As a picture."""
        return self._bytes("image/png")

    @property
    def jpeg(self) -> bytes | None:
        """As a picture."""
        return self._bytes("image/jpeg")

    @property
    def pdf(self) -> bytes | None:
        """As a document."""
        return self._bytes("application/pdf")

    @property
    def json(self) -> Any:
        """What was displayed as JSON."""
        return self._json("application/json")

    @property
    def plotly(self) -> Any:
        """A figure of plotly: its `data` and `layout`."""
        return self._json(_PLOTLY)

    @property
    def vega(self) -> Any:
        """The specification of a chart of altair's, in Vega-Lite or Vega."""
        return next((self._json(mime) for mime in self.data if mime.startswith(_VEGA)), None)

    @property
    def table(self) -> Table | None:
        """Of a DataFrame or Series."""
        try:
            return _table(self._json(TABLE))
        except (KeyError, TypeError, ValueError, AttributeError):
            # Code inside may display what it likes under this name.
            return None

    @property
    def chart(self) -> Chart | None:
        """Of a figure of matplotlib or plotly."""
        try:
            return _chart(self._json(CHART))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return None

    def _bytes(self, mime: str) -> bytes | None:
        try:
            return base64.b64decode(self.data[mime]) if mime in self.data else None
        except (binascii.Error, ValueError):
            return None

    def _json(self, mime: str) -> Any:
        try:
            return json.loads(self.data[mime]) if mime in self.data else None
        except (ValueError, RecursionError):
            return None


def _table(told: Any) -> Table | None:
    if told is None:
        return None
    columns = tuple(Column(name=one["name"], dtype=one["dtype"]) for one in told["columns"])
    rows = _points(told["rows"])
    given = told.get("index")
    index = _table({**given, "shape": (len(given["rows"]), len(given["columns"]))}) if given else None
    height, width = told["shape"]
    return Table(columns=columns, rows=rows, shape=(int(height), int(width)), index=index)


def _chart(told: Any) -> Chart | None:
    if told is None:
        return None
    return Chart(
        type=str(told["type"]),
        title=str(told.get("title", "")),
        x=_axis(told.get("x")),
        y=_axis(told.get("y")),
        series=tuple(_series(one) for one in told.get("series", ())),
        subplots=tuple(one for part in told.get("subplots", ()) if (one := _chart(part)) is not None),
        not_understood=tuple(map(str, told.get("not_understood", ()))),
    )


def _axis(told: Any) -> Axis | None:
    if told is None:
        return None
    limits, ticks = tuple(told.get("limits", ())), tuple(told.get("ticks", ()))
    return Axis(label=str(told["label"]), scale=str(told["scale"]), limits=limits, ticks=ticks)


def _series(told: Any) -> Series:
    return Series(
        type=str(told["type"]),
        label=str(told["label"]),
        columns=tuple(map(str, told["columns"])),
        points=_points(told["points"]),
        count=int(told["count"]),
        orientation=str(told.get("orientation", "")),
    )


def _points(told: Any) -> tuple[tuple[Scalar, ...], ...]:
    return tuple(tuple(one) for one in told)
