"""What a kernel displays beside pictures and pages: tables as rows, charts as data, each figure once."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.kernel.place import Live, pieces, text

from workbench.contracts.kernel import Finished
from workbench.model.execution import Display, PieceKind

pytestmark = pytest.mark.asyncio(loop_scope="module")

TABLE, CHART = "application/vnd.workbench.table+json", "application/vnd.workbench.chart+json"
PYPLOT = "import matplotlib.pyplot as plt, numpy as np, pandas as pd\n"


async def displays(live: Live, code: str) -> list[Display]:
    """Of a cell that succeeds."""
    events = await live.run(code)
    assert isinstance(events[-1], Finished)
    assert events[-1].ok, pieces(events, PieceKind.ERROR)
    return [piece.display for piece in pieces(events, PieceKind.DISPLAY) if piece.display is not None]


async def only(live: Live, mime: str, code: str) -> Any:
    """What the one display of a cell has in this format."""
    (display,) = await displays(live, code)
    return json.loads(display.data[mime], parse_constant=_refused)


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


async def table(live: Live, code: str) -> Any:
    return await only(live, TABLE, f"{PYPLOT}{code}")


async def chart(live: Live, code: str) -> Any:
    return await only(live, CHART, f"{PYPLOT}{code}\nplt.show()")


# Tables


async def test_a_table_as_last_value_has_its_rows_beside_text_and_html(live: Live) -> None:
    (shown,) = await displays(live, f"{PYPLOT}pd.DataFrame({{'n': [1, 2], 'word': ['a', 'ü']}})")
    assert shown.is_result
    assert list(shown.data) == ["text/plain", "text/html", TABLE]
    assert json.loads(shown.data[TABLE]) == {
        "columns": [{"name": "n", "dtype": "int64"}, {"name": "word", "dtype": "str"}],
        "rows": [[1, "a"], [2, "ü"]],
        "shape": [2, 2],
    }


async def test_a_series_and_a_displayed_table_have_theirs(live: Live) -> None:
    series = await table(live, "pd.Series([1.5, None], name='x', index=['a', 'b'])")
    assert series == {
        "columns": [{"name": "x", "dtype": "float64"}],
        "rows": [[1.5], [None]],
        "shape": [2, 1],
        "index": {"columns": [{"name": "", "dtype": "str"}], "rows": [["a"], ["b"]]},
    }
    shown = await displays(live, f"{PYPLOT}display(pd.DataFrame({{'n': [1]}}))\ndisplay('words')")
    assert [TABLE in one.data for one in shown] == [True, False]


async def test_values_that_json_does_not_have_are_null_or_text(live: Live) -> None:
    values = (
        "import datetime, decimal, uuid\n"
        "values = [float('nan'), float('inf'), None, pd.NaT, pd.NA, 2**53 + 1, decimal.Decimal('1.10'), b'x',\n"
        "    pd.Timestamp('2024-05-01 12:30'), pd.Timedelta(hours=36), datetime.timedelta(seconds=90),\n"
        "    datetime.date(2024, 5, 1), np.float32(0.5), np.int8(3), np.bool_(True), [1, 2], 1 + 2j,\n"
        "    list(range(5000))]\n"
        "pd.DataFrame({'x': pd.Series(values, dtype=object)})"
    )
    assert [value for (value,) in (await table(live, values))["rows"]] == [
        None, "Infinity", None, None, None, str(2**53 + 1), "1.10", "b'x'",
        "2024-05-01T12:30:00", "P1DT12H0M0S", "PT90S",
        "2024-05-01", 0.5, 3, True, "[1, 2]", "(1+2j)",
        "<list of 5000>",
    ]  # fmt: skip


async def test_every_dtype_has_its_values(live: Live) -> None:
    frame = (
        "pd.DataFrame({'small': np.array([1, 2], 'int16'), 'hole': pd.array([1, None], 'Int32'),\n"
        "  'kind': pd.Categorical(['a', None]), 'yes': [True, False],\n"
        "  'when': pd.to_datetime(['2024-01-01', None]).tz_localize('UTC'),\n"
        "  'span': pd.period_range('2024-01', periods=2, freq='M'), 'between': pd.interval_range(0, 2)})"
    )
    told = await table(live, frame)
    assert told["rows"] == [
        [1, 1, "a", True, "2024-01-01T00:00:00+00:00", "2024-01", "(0, 1]"],
        [2, None, None, False, None, "2024-02", "(1, 2]"],
    ]
    assert [column["dtype"] for column in told["columns"]][:4] == ["int16", "Int32", "category", "bool"]


async def test_names_that_come_twice_and_several_levels_are_told_apart(live: Live) -> None:
    twice = await table(live, "pd.DataFrame([[1, 2]], columns=['a', 'a'])")
    assert (twice["columns"], twice["rows"]) == ([{"name": "a", "dtype": "int64"}] * 2, [[1, 2]])
    levels = await table(
        live,
        "pd.DataFrame([[1, 2], [3, 4]], index=pd.MultiIndex.from_tuples([('x', 1), ('y', 2)], names=['k', None]),\n"
        "  columns=pd.MultiIndex.from_product([['a'], [1, 2]]))",
    )
    assert [column["name"] for column in levels["columns"]] == ["a / 1", "a / 2"]
    assert levels["index"] == {
        "columns": [{"name": "k", "dtype": "str"}, {"name": "", "dtype": "int64"}],
        "rows": [["x", 1], ["y", 2]],
    }


async def test_an_empty_table_is_one(live: Live) -> None:
    assert await table(live, "pd.DataFrame()") == {"columns": [], "rows": [], "shape": [0, 0]}
    none = await table(live, "pd.DataFrame({'a': []})")
    assert (none["rows"], none["shape"]) == ([], [0, 1])


async def test_of_a_huge_table_there_are_the_first_rows_and_the_shape_of_the_whole(live: Live) -> None:
    long = await table(live, "pd.DataFrame({'n': np.arange(3_000_000)})")
    assert (len(long["rows"]), long["rows"][-1], long["shape"]) == (1000, [999], [3_000_000, 1])
    wide = await table(live, "pd.DataFrame(np.zeros((500, 30_000)))")
    assert (len(wide["columns"]), len(wide["rows"]), wide["shape"]) == (200, 250, [500, 30_000])
    (texts,) = await displays(live, f"{PYPLOT}pd.DataFrame({{'t': ['é' * 5000] * 2000}})")
    assert len(texts.data[TABLE]) <= 260 * 1024
    rows = json.loads(texts.data[TABLE])["rows"]
    assert 200 < len(rows) < 300
    assert rows[0] == ["é" * 1000 + "…"]


async def test_values_that_raise_or_dawdle_cost_neither_the_table_nor_the_time(live: Live) -> None:
    hostile = (
        "import time\n"
        "class Raises:\n    def __str__(self): raise ValueError('no')\n"
        "class Dawdles:\n    def __str__(self):\n        time.sleep(0.1)\n        return 'late'\n"
        "    __repr__ = lambda self: 'quick'\n"
        "frame = pd.DataFrame({'a': [1] * 500 + [Raises()] + [1] * 499})\n"
    )
    await live.run(PYPLOT + hostile)
    rows = (await table(live, "frame"))["rows"]
    # Not among those that pandas shows, which would fail over it.
    assert rows[499:502] == [[1], ["<Raises>"], [1]]
    spent = "from time import monotonic\nbegan = monotonic()\n"
    spent += "display(pd.Series([Dawdles() for _ in range(1000)]))\nprint(monotonic() - began)"
    events = await live.run(spent)
    # A hundred seconds, if each were asked; pandas itself asks some.
    assert float(text(events)) < 15
    (shown,) = pieces(events, PieceKind.DISPLAY)
    assert shown.display is not None
    assert json.loads(shown.display.data[TABLE])["rows"][-1] == ["<Dawdles>"]


async def test_a_class_that_lies_about_itself_is_shown_as_ever(live: Live) -> None:
    lies = (
        "class DataFrame:\n    def _repr_html_(self): return '<b>mine</b>'\n    def __repr__(self): return 'mine'\n"
        "DataFrame.__module__ = 'pandas.mine'\nDataFrame()"
    )
    (shown,) = await displays(live, lies)
    assert shown.data == {"text/plain": "mine", "text/html": "<b>mine</b>"}
    fake = (
        "class Fake(pd.DataFrame):\n    @property\n    def iloc(self): raise RuntimeError('no')\n"
        "    def _repr_html_(self): return '<i>'\n    def __repr__(self): return 'fake'\nFake()"
    )
    (shown,) = await displays(live, PYPLOT + fake)
    assert shown.data == {"text/plain": "fake", "text/html": "<i>"}


async def test_no_library_is_imported_for_other_values(live: Live) -> None:
    look = "import sys; sorted(one for one in ('plotly', 'altair', 'polars') if one in sys.modules)"
    (shown,) = await displays(live, look)
    assert shown.data == {"text/plain": "[]"}


# Charts


async def test_lines_are_told_with_title_labels_and_points(live: Live) -> None:
    code = (
        "plt.plot([1, 2, 3], [2, 4, np.nan], label='up')\nplt.plot([3, 2, 1], 'o', label='marks')\nplt.axhline(3)\n"
        "plt.title('Two')\nplt.xlabel('time')\nplt.ylabel('value')\nplt.yscale('log')\nplt.xlim(0, 4)"
    )
    told = await chart(live, code)
    assert (told["type"], told["title"]) == ("mixed", "Two")
    assert (told["x"]["label"], told["x"]["scale"], told["x"]["limits"]) == ("time", "linear", [0.0, 4.0])
    assert (told["y"]["label"], told["y"]["scale"]) == ("value", "log")
    assert "2.0" in told["x"]["ticks"]
    assert told["series"] == [
        {"type": "line", "label": "up", "columns": ["x", "y"], "points": [[1, 2], [2, 4], [3, None]], "count": 3},
        {"type": "scatter", "label": "marks", "columns": ["x", "y"], "points": [[0, 3], [1, 2], [2, 1]], "count": 3},
    ]


async def test_of_many_points_a_thousand_are_told_and_how_many_there_were(live: Live) -> None:
    told = await chart(live, "plt.plot(np.arange(1_000_000))")
    (line,) = told["series"]
    assert (line["count"], len(line["points"])) == (1_000_000, 1000)
    assert (line["points"][0], line["points"][-1]) == ([0, 0], [999_999, 999_999])
    many = await chart(live, "for n in range(80): plt.plot(np.arange(2000.0) * np.pi)")
    assert (len(many["series"]), many["more_series"]) == (50, 30)
    assert len(json.dumps(many)) < 300_000


async def test_a_scatter_plot_is_told(live: Live) -> None:
    told = await chart(live, "plt.scatter([1, 2], [3, 4], label='dots')")
    assert (told["type"], told["series"][0]["label"]) == ("scatter", "dots")
    assert told["series"][0]["points"] == [[1, 3], [2, 4]]


async def test_bars_are_told_by_their_names_upright_grouped_and_lying(live: Live) -> None:
    upright = await chart(live, "plt.bar(['a', 'b'], [3, 5], yerr=[1, 1], label='n')")
    assert (upright["type"], upright["x"]["scale"], upright["x"]["ticks"]) == ("bar", "categorical", ["a", "b"])
    assert upright["series"] == [
        {
            "type": "bar", "label": "n", "columns": ["x", "height"], "points": [["a", 3], ["b", 5]], "count": 2,
            "orientation": "vertical",
        }
    ]  # fmt: skip
    grouped = await chart(live, "pd.DataFrame({'x': [1, 2], 'y': [3, 4]}, index=['a', 'b']).plot.bar()")
    assert [one["label"] for one in grouped["series"]] == ["x", "y"]
    assert [[height for _, height in one["points"]] for one in grouped["series"]] == [[1, 2], [3, 4]]
    lying = await chart(live, "plt.barh(['a', 'b'], [3, 5])")
    (series,) = lying["series"]
    assert (series["columns"], series["points"]) == (["y", "width"], [["a", 3], ["b", 5]])
    assert series["orientation"] == "horizontal"


async def test_a_histogram_is_told_with_its_bins(live: Live) -> None:
    told = await chart(live, "plt.hist([1, 1, 2, 5], bins=4)")
    (series,) = told["series"]
    assert (told["type"], series["columns"]) == ("histogram", ["from", "to", "height"])
    assert series["points"] == [[1, 2, 2], [2, 3, 1], [3, 4, 0], [4, 5, 1]]


async def test_a_pie_is_told_by_its_shares(live: Live) -> None:
    told = await chart(live, "plt.pie([3, 1], labels=['a', 'b'])\nplt.title('Parts')")
    assert (told["type"], told["title"], "x" in told) == ("pie", "Parts", False)
    assert told["series"][0]["points"] == [["a", 0.75], ["b", 0.25]]


@pytest.mark.parametrize("filled", [True, False], ids=["filled", "outlined"])
@pytest.mark.parametrize("way", ["vertical", "horizontal"])
async def test_boxes_are_told_by_their_quartiles(live: Live, way: str, *, filled: bool) -> None:
    code = f"plt.boxplot([[1, 2, 3, 4, 5], [2, 4, 6, 8, 30]], orientation='{way}', patch_artist={filled})"
    boxes, *others = (await chart(live, code))["series"]
    assert (boxes["type"], boxes["orientation"], boxes["count"]) == ("box", way, 2)
    assert boxes["columns"] == ["at", "low", "q1", "median", "q3", "high"]
    assert [point[1:] for point in boxes["points"]] == [[1, 2, 3, 4, 5], [2, 4, 6, 8, 8]]
    (outlier,) = others
    assert outlier["type"] == "scatter"
    assert 30 in outlier["points"][0]


async def test_times_are_told_as_times(live: Live) -> None:
    own = await chart(live, "plt.plot(pd.to_datetime(['2024-01-01 00:00', '2024-01-02 06:00']).to_numpy(), [1, 2])")
    assert own["x"]["scale"] == "datetime"
    assert [when for when, _ in own["series"][0]["points"]] == ["2024-01-01T00:00:00", "2024-01-02T06:00:00"]
    of_pandas = await chart(live, "pd.Series([1, 2], index=pd.date_range('2024-01-01', periods=2)).plot()")
    assert of_pandas["x"]["scale"] == "datetime"
    assert of_pandas["series"][0]["points"] == [["2024-01-01T00:00:00", 1], ["2024-01-02T00:00:00", 2]]


async def test_several_axes_are_several_charts(live: Live) -> None:
    code = (
        "figure, (left, right) = plt.subplots(1, 2)\nleft.plot([1, 2])\nleft.set_title('L')\n"
        "right.bar(['a'], [1])\nfigure.suptitle('Both')"
    )
    told = await chart(live, code)
    assert (told["type"], told["title"]) == ("subplots", "Both")
    assert [(one["type"], one["title"]) for one in told["subplots"]] == [("line", "L"), ("bar", "")]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("plt.imshow(np.zeros((3, 3)))\nplt.colorbar()", "AxesImage"),
        ("plt.contourf(np.random.rand(5, 5))", "QuadContourSet"),
        ("plt.polar([1, 2], [1, 2])", "polar axes"),
        ("plt.axes(projection='3d').scatter([1], [2], [3])", "3d axes"),
    ],
)
async def test_what_is_not_understood_is_called_unknown(live: Live, code: str, what: str) -> None:
    told = await chart(live, code)
    assert (told["type"], told["series"]) == ("unknown", [])
    assert any(what in name for name in told["not_understood"])


async def test_a_figure_that_defeats_us_is_a_picture_all_the_same(live: Live) -> None:
    code = "plt.plot([1, 2])\ndef refuse(*_): raise ValueError('no')\nplt.gca().get_title = refuse\nplt.show()"
    (shown,) = await displays(live, PYPLOT + code)
    assert set(shown.data) == {"text/plain", "image/png"}


async def test_numbers_without_bounds_are_no_reason_to_have_no_chart(live: Live) -> None:
    told = await chart(live, "plt.plot([1, np.inf, -np.inf, np.nan, 2])")
    assert [y for _, y in told["series"][0]["points"]] == [1, "Infinity", "-Infinity", None, 2]
    assert all(math.isfinite(end) for end in told["y"]["limits"])


# Each figure once


_FIGURES = {
    "two that are left open": ("plt.figure(); plt.plot([1])\nplt.figure(); plt.plot([2]);", 2),
    "the last value": ("fig, ax = plt.subplots(); ax.plot([1])\nfig", 1),
    "one that was displayed": ("fig, ax = plt.subplots(); ax.plot([1])\ndisplay(fig)", 1),
    "one that has changed since": ("fig, ax = plt.subplots(); ax.plot([1])\ndisplay(fig)\nax.plot([2]);", 2),
    "one of two": ("a, _ = plt.subplots(); b, _ = plt.subplots()\ndisplay(a);", 2),
    "several shows": ("plt.plot([1]); plt.show()\nplt.plot([2]); plt.show()\nplt.plot([3]);", 3),
}


@pytest.mark.parametrize("what", _FIGURES)
async def test_each_figure_of_a_cell_is_shown_once(live: Live, what: str) -> None:
    code, times = _FIGURES[what]
    shown = await displays(live, PYPLOT + code)
    pictures = [one for one in shown if "image/png" in one.data]
    assert len(pictures) == times
    assert all(CHART in one.data for one in pictures)
    assert await displays(live, "plt.get_fignums()") == [Display(data={"text/plain": "[]"}, is_result=True)]


async def test_figures_are_not_held_on_to(live: Live) -> None:
    await live.run(
        f"{PYPLOT}import gc, weakref\nfig = plt.figure(); plt.plot([1]); seen = weakref.ref(fig); plt.show()"
    )
    (shown,) = await displays(live, "del fig\n_ = gc.collect()\nseen() is None")
    assert shown.data["text/plain"] == "True"


async def test_what_notebooks_remember_of_outputs_has_no_second_copy_of_the_data(live: Live) -> None:
    await live.run(f"{PYPLOT}pd.DataFrame({{'n': range(1000)}})")
    kept = "outputs = get_ipython().history_manager.outputs\n"
    kept += "sorted({mime for all in outputs.values() for one in all for mime in one.bundle})"
    (shown,) = await displays(live, kept)
    assert TABLE not in shown.data["text/plain"]
    assert "text/html" in shown.data["text/plain"]
