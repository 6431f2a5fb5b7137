"""What a kernel displays, with what programs read beside it. Other values pass as they are, and no library is imported.

Whatever fails here costs nothing of what would have been shown without it.
"""

from __future__ import annotations

import logging
import sys
import warnings
import weakref
from collections.abc import Callable, Collection
from typing import Any

from ipykernel.zmqshell import ZMQDisplayPublisher
from IPython.core.formatters import DisplayFormatter

from workbench_guest.corrections.imports import AfterImport
from workbench_guest.rich import charts, figures, plotly, tables, vega

_log = logging.getLogger(__name__)
_Made = Callable[[Any], tuple[str, Any] | None]


def _table(make: Callable[[Any], Any]) -> _Made:
    return lambda value: (tables.MIME, make(value))


def _figure(figure: Any) -> tuple[str, Any]:
    try:
        return charts.MIME, figures.of_figure(figure)
    finally:
        # Afterwards: asking for its ticks makes it stale.
        shown.note(figure)


# By the package and the name of a class: who has such a value has imported it.
_MAKERS: dict[tuple[str, str], _Made] = {
    ("pandas", "DataFrame"): _table(tables.of_pandas),
    ("pandas", "Series"): _table(tables.of_pandas_series),
    ("polars", "DataFrame"): _table(tables.of_polars),
    ("polars", "Series"): _table(tables.of_polars_series),
    ("matplotlib", "Figure"): _figure,
    ("altair", "TopLevelMixin"): vega.of_chart,
}
FOR_PROGRAMS = frozenset({tables.MIME, charts.MIME})
"""formats of ours, beside those that notebooks know"""
_NAMES = frozenset(name for _, name in _MAKERS)


class RichFormatter(DisplayFormatter):
    """IPython's, and one format more for what is in the table above."""

    def format(
        self, obj: Any, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """As stock, and more."""
        data, metadata = super().format(obj, include, exclude)
        # One that shows itself has nothing here.
        make = _maker(obj) if data else None
        if make is not None and (made := _tried(make, obj)) is not None:
            mime, value = made
            if value is not None and (not include or mime in include) and mime not in (exclude or ()):
                data.setdefault(mime, value)
        return data, metadata


class RichPublisher(ZMQDisplayPublisher):
    """As stock; figures of plotly, which show themselves as data, also as a page and as a chart."""

    def publish(self, data: Any, metadata: Any = None, *args: Any, **kwargs: Any) -> None:
        """As stock, and more."""
        if isinstance(data, dict) and plotly.MIME in data:
            data = _with_chart(data)
        super().publish(data, metadata, *args, **kwargs)


def _with_chart(data: dict[str, Any]) -> dict[str, Any]:
    figure = data[plotly.MIME]
    made = {charts.MIME: _tried(plotly.of_figure, figure), "text/html": _tried(plotly.page_of, figure)}
    return {**{mime: value for mime, value in made.items() if value is not None}, **data}


def _maker(value: object) -> _Made | None:
    try:
        names = [cls for cls in type(value).__mro__ if cls.__name__ in _NAMES]
        keys = [(str(cls.__module__).partition(".")[0], cls.__name__) for cls in names]
    except Exception:  # noqa: BLE001  a class may say anything of itself, or raise
        return None
    return next((_MAKERS[key] for key in keys if key in _MAKERS), None)


def _tried(make: Callable[[Any], Any], value: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(value)
    except Exception:  # noqa: BLE001  the agent's value, or a version of its library that is not as we know it
        _log.debug("no data beside a %s", type(value).__name__, exc_info=True)
        return None


class Shown:
    """Figures that a cell displayed itself: stock would show them once more at its end, as they are still open."""

    def __init__(self) -> None:
        self._figures: list[weakref.ref[Any]] = []

    def note(self, figure: Any) -> None:
        """It is shown now, as it is."""
        self._figures.append(weakref.ref(figure))
        # Whatever is drawn into it from here on makes it stale again.
        figure.stale = False

    def forget(self) -> None:
        """Before a cell: what stock showed after the last one is nothing of this one."""
        self._figures.clear()

    def close(self) -> None:
        """After a cell, before stock shows what is open: of these only those that have changed."""
        if not self._figures:
            return
        figures = [figure for one in self._figures if (figure := one()) is not None]
        self.forget()
        pyplot = sys.modules.get("matplotlib.pyplot")
        inline = sys.modules.get("matplotlib_inline.config")
        if pyplot is None or inline is None or not inline.InlineBackend.instance().close_figures:
            return
        for figure in figures:
            if not figure.stale:
                pyplot.close(figure)


shown = Shown()


def prepare(shell: Any) -> None:
    """Before the fork, once; and before pyplot is attached, whose own work after a cell comes after ours."""
    shell.events.register("pre_execute", shown.forget)
    shell.events.register("post_execute", shown.close)
    AfterImport({"plotly.io._renderers": plotly.patch_renderers}).install()
