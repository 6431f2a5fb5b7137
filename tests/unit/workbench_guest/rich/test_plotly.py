"""Figures of plotly as data, out of JSON that may be anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench_guest.rich import plotly


def chart(**figure: Any) -> Any:
    made = plotly.of_figure(figure)
    assert made is not None
    return json.loads(json.dumps(made, allow_nan=False))


def test_traces_are_series_with_their_points() -> None:
    told = chart(
        data=[{"type": "scatter", "mode": "markers", "x": [1, 2], "y": [3, None], "name": "dots"}, {"y": [5]}],
        layout={"title": "T", "xaxis": {"title": {"text": "time"}, "type": "date", "range": ["a", "b"]}},
    )
    assert (told["type"], told["title"], told["x"]) == (
        "mixed", "T", {"label": "time", "scale": "datetime", "limits": ["a", "b"]},
    )  # fmt: skip
    assert told["series"] == [
        {"type": "scatter", "label": "dots", "columns": ["x", "y"], "points": [[1, 3], [2, None]], "count": 2},
        {"type": "line", "label": "", "columns": ["x", "y"], "points": [[0, 5]], "count": 1},
    ]


def test_axes_of_their_own_are_charts_of_their_own() -> None:
    told = chart(data=[{"x": [1], "y": [1]}, {"x": [1], "y": [1], "xaxis": "x2", "yaxis": "y2", "type": "bar"}])
    assert [one["type"] for one in told["subplots"]] == ["line", "bar"]


def test_what_is_not_understood_is_unknown_and_named() -> None:
    told = chart(data=[{"type": "choropleth", "z": [1]}])
    assert (told["type"], told["series"], told["not_understood"]) == ("unknown", [], ["choropleth"])


def test_a_large_figure_is_told_in_bounds() -> None:
    traces = [{"y": [0.123456789012345] * 100_000, "name": str(number)} for number in range(80)]
    told = chart(data=traces)
    assert len(json.dumps(told)) < 300_000
    assert (len(told["series"]), told["more_series"], told["series"][0]["count"]) == (50, 30, 100_000)


@pytest.mark.parametrize(
    "figure",
    [
        {}, {"data": None}, {"data": [5, None]}, {"data": [{}], "layout": 7}, {"data": [{"x": 5, "y": "abc"}]},
        {"data": [{"x": [[1]], "y": [{}]}], "layout": {"title": {"text": None}, "xaxis": [1]}},
    ],
)  # fmt: skip
def test_what_is_no_figure_is_an_unknown_one(figure: Any) -> None:
    json.dumps(plotly.of_figure(figure), allow_nan=False)
