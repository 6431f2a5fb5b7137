"""Libraries that draw for a browser, installed when they are imported: figures as data and as a page, in no browser."""

from __future__ import annotations

import pytest
from tests.packages.conftest import MakeSession
from tests.restart.server import Server

from workbench.client import Display

_EXPRESS = "import plotly.graph_objects as go\n"
_BOTH = "fig = go.Figure([go.Scatter(x=[1, 2], y=[3, 4], name='up'), go.Bar(x=['a'], y=[2])])\n"


def displays(public: Server, sessions: MakeSession, *cells: str) -> tuple[Display, ...]:
    """Of the last one; all succeed."""
    session = sessions(public)
    for cell in cells:
        result = session.run(cell, limit_s=100)
        assert result.ok, result.error
    return result.displays


@pytest.mark.parametrize("way", ["fig", "fig.show()", "display(fig)"])
def test_a_figure_of_plotly_is_data_a_page_and_a_chart(public: Server, sessions: MakeSession, way: str) -> None:
    title = "fig.update_layout(title='Sales', xaxis_title='t', yaxis_type='log')\n"
    (shown,) = displays(public, sessions, f"{_EXPRESS}{_BOTH}{title}{way}")
    assert shown.plotly["data"][0]["name"] == "up"
    assert shown.html is not None
    assert "cdn" in shown.html
    assert len(shown.html) < 50_000
    chart = shown.chart
    assert chart is not None
    assert (chart.type, chart.title) == ("mixed", "Sales")
    assert chart.x is not None
    assert chart.y is not None
    assert (chart.x.label, chart.y.scale) == ("t", "log")
    assert [(one.type, one.label, one.points) for one in chart.series] == [
        ("line", "up", ((1, 3), (2, 4))), ("bar", "", (("a", 2),)),
    ]  # fmt: skip


def test_charts_of_plotly_express_are_told(public: Server, sessions: MakeSession) -> None:
    begin = "import plotly.express as px, pandas as pd, numpy as np\nfrom plotly.subplots import make_subplots"
    many = (
        "px.histogram(x=[1, 1, 2]).show()\npx.pie(names=['a', 'b'], values=[3, 1]).show()\n"
        "px.box(y=[1, 2, 9]).show()\npx.bar(x=[3], y=['a'], orientation='h').show()\n"
        "days = pd.to_datetime(['2024-01-01', '2024-01-02'])\n"
        "px.line(pd.DataFrame({'t': days, 'v': [1.5, 2]}), x='t', y='v').show()\n"
        "px.scatter(x=np.arange(5000), y=np.arange(5000.0)).show()\npx.imshow([[1, 2]]).show()\n"
        "two = make_subplots(1, 2)\ntwo.add_scatter(y=[1], row=1, col=1)\ntwo.add_bar(y=[2], row=1, col=2)\ntwo.show()",
    )
    charts = [one.chart for one in displays(public, sessions, begin, many)]
    kinds = [one.type if one is not None else "" for one in charts]
    assert kinds == ["histogram", "pie", "box", "bar", "line", "scatter", "unknown", "subplots"]
    histogram, pie, box, bar, line, scatter, unknown, subplots = [one for one in charts if one is not None]
    assert histogram.series[0].points == ((1,), (1,), (2,))
    assert pie.series[0].points == (("a", 3), ("b", 1))
    assert box.series[0].points == ((1,), (2,), (9,))
    assert (bar.series[0].orientation, bar.series[0].points) == ("horizontal", (("a", 3),))
    assert [str(when)[:10] for when, _ in line.series[0].points] == ["2024-01-01", "2024-01-02"]
    assert (scatter.series[0].count, len(scatter.series[0].points)) == (5000, 1000)
    assert unknown.not_understood == ("heatmap",)
    assert [one.type for one in subplots.subplots] == ["line", "bar"]


def test_a_chart_of_altair_is_its_specification_and_a_page(public: Server, sessions: MakeSession) -> None:
    code = "import altair as alt, pandas as pd\nframe = pd.DataFrame({'x': [1], 'y': [2]})\n"
    code += "alt.Chart(frame).mark_bar().encode(x='x', y='y')"
    (shown,) = displays(public, sessions, code)
    assert shown.vega["mark"] == {"type": "bar"}
    assert shown.html is not None


def test_a_table_of_polars_has_its_rows(public: Server, sessions: MakeSession) -> None:
    code = (
        "import polars as pl, datetime\n"
        "frame = pl.DataFrame({'n': [1, None], 'f': [0.5, float('nan')], 'd': [datetime.date(2024, 5, 1), None]})\n"
    )
    (shown,) = displays(public, sessions, f"{code}frame")
    assert shown.table is not None
    assert shown.table.rows == ((1, 0.5, "2024-05-01"), (None, None, None))
    assert [one.dtype for one in shown.table.columns] == ["Int64", "Float64", "Date"]
