"""What a cell displayed, as Python has it."""

from __future__ import annotations

import base64
import json

from workbench.client.displays import CHART, TABLE, Axis, Column, Display, Series


def shown(mime: str, value: object) -> Display:
    return Display(data={mime: value if isinstance(value, str) else json.dumps(value)})


def test_formats_have_names_and_missing_ones_are_none() -> None:
    picture = base64.b64encode(b"\x89PNG").decode()
    display = Display(data={"text/plain": "p", "text/html": "<b>", "image/png": picture, "application/json": "[1]"})
    assert (display.text, display.html, display.png, display.json) == ("p", "<b>", b"\x89PNG", [1])
    for name in ("markdown", "latex", "svg", "jpeg", "pdf", "plotly", "vega", "table", "chart"):
        assert getattr(display, name) is None


def test_charts_of_altair_are_found_whatever_their_version() -> None:
    assert shown("application/vnd.vegalite.v6+json", {"mark": "bar"}).vega == {"mark": "bar"}


def test_a_table_has_columns_rows_and_the_shape_of_the_whole() -> None:
    index = {"columns": [{"name": "", "dtype": "str"}], "rows": [["x"]]}
    told = {"columns": [{"name": "n", "dtype": "int64"}], "rows": [[1]], "shape": [5000, 1], "index": index}
    table = shown(TABLE, told).table
    assert table is not None
    assert (table.columns, table.rows, table.shape) == ((Column(name="n", dtype="int64"),), ((1,),), (5000, 1))
    assert not table.is_whole
    assert table.index is not None
    assert (table.index.rows, table.index.is_whole) == ((("x",),), True)


def test_a_chart_has_its_parts() -> None:
    series = {"type": "line", "label": "up", "columns": ["x", "y"], "points": [[1, 2.5]], "count": 1}
    axis = {"label": "t", "scale": "log", "limits": [0, 1], "ticks": ["0", "1"]}
    part = {"type": "line", "title": "T", "x": axis, "y": axis, "series": [series]}
    chart = shown(CHART, {"type": "subplots", "title": "All", "subplots": [part]}).chart
    assert chart is not None
    assert (chart.type, chart.title, chart.subplots[0].title) == ("subplots", "All", "T")
    assert chart.subplots[0].x == Axis(label="t", scale="log", limits=(0, 1), ticks=("0", "1"))
    told = Series(type="line", label="up", columns=("x", "y"), points=((1, 2.5),), count=1)
    assert chart.subplots[0].series == (told,)


def test_what_code_displays_under_these_names_may_be_anything() -> None:
    for junk in ("", "{", "[]", "7", '{"type": 1}', '{"rows": 5}', "[" * 100_000, '{"columns": [], "rows": []}'):
        for mime in (TABLE, CHART, "application/json", "image/png", "application/vnd.plotly.v1+json"):
            display = shown(mime, junk)
            assert display.table is None
            display.chart, display.png, display.json, display.plotly  # noqa: B018
