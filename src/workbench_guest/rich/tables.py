"""Tables of pandas and polars as rows of plain values, within bounds: `shape` tells how much there is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench_guest.rich.values import Patience, clean, text

MIME = "application/vnd.workbench.table+json"
# More than a model reads and a page shows; the whole belongs into a file.
MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 1000, 200, 50_000
MOST_BYTES = 256 * 1024
# For what agents put into cells themselves; numbers, texts and times take a fraction of it.
_PATIENCE_S = 0.25
_EXACT_BYTES = 4

Table = dict[str, Any]


def of_pandas(frame: Any) -> Table:
    """Of a DataFrame."""
    rows, columns = frame.shape
    shown = frame.iloc[: _rows(rows, columns), :MOST_COLUMNS]
    parts = [shown.iloc[:, number] for number in range(shown.shape[1])]
    heads = [_head(name, part.dtype) for name, part in zip(shown.columns, parts, strict=True)]
    return _pandas_table(heads, parts, shown.index, (rows, columns))


def of_pandas_series(series: Any) -> Table:
    """Of a Series: a table with one column."""
    (rows,) = series.shape
    part = series.iloc[:MOST_ROWS]
    return _pandas_table([_head(series.name, series.dtype)], [part], part.index, (rows, 1))


def of_polars(frame: Any) -> Table:
    """Of a DataFrame of polars."""
    rows, columns = frame.shape
    parts = frame.head(_rows(rows, columns)).get_columns()[:MOST_COLUMNS]
    return _polars_table(parts, (rows, columns))


def of_polars_series(series: Any) -> Table:
    """Of a Series of polars."""
    return _polars_table([series.head(MOST_ROWS)], (len(series), 1))


def _rows(rows: int, columns: int) -> int:
    return min(rows, MOST_ROWS, MOST_CELLS // max(1, min(columns, MOST_COLUMNS)))


def _pandas_table(heads: list[Table], parts: Sequence[Any], index: Any, shape: tuple[int, int]) -> Table:
    patience = Patience(_PATIENCE_S)
    columns = [_pandas_values(part, patience) for part in parts]
    labels = _index_parts(index)
    label_columns = [_pandas_values(part, patience) for part in labels]
    rows, label_rows = _within_bounds(_across(columns, len(index)), _across(label_columns, len(index)))
    table: Table = {"columns": heads, "rows": rows, "shape": list(shape)}
    if labels:
        table["index"] = {"columns": [_head(part.name, part.dtype) for part in labels], "rows": label_rows}
    return table


def _index_parts(index: Any) -> list[Any]:
    """Its levels; none of one that only counts."""
    if type(index).__name__ == "RangeIndex" and (index.start, index.step, index.name) == (0, 1, None):
        return []
    return [index.get_level_values(level) for level in range(index.nlevels)]


def _pandas_values(part: Any, patience: Patience) -> list[Any]:
    dtype = part.dtype
    if getattr(dtype, "kind", "O") in "biu" and getattr(dtype, "itemsize", 8) <= _EXACT_BYTES and not _may_miss(dtype):
        return list(part.tolist())
    return [clean(value, patience) for value in part.tolist()]


def _may_miss(dtype: Any) -> bool:
    """An extension's column of integers may have holes."""
    return not type(dtype).__module__.startswith("numpy")


def _polars_table(parts: Sequence[Any], shape: tuple[int, int]) -> Table:
    patience = Patience(_PATIENCE_S)
    columns = [[clean(value, patience) for value in part.to_list()] for part in parts]
    rows, _ = _within_bounds(_across(columns, len(parts[0]) if parts else 0), None)
    return {"columns": [_head(part.name, part.dtype) for part in parts], "rows": rows, "shape": list(shape)}


def _across(columns: Sequence[Sequence[Any]], rows: int) -> Iterator[list[Any]]:
    return map(list, zip(*columns, strict=True)) if columns else ([] for _ in range(rows))


def _within_bounds(rows: Iterable[list[Any]], labels: Iterable[list[Any]] | None) -> tuple[list[Any], list[Any]]:
    """As many as there is room for, each with its label."""
    kept: list[Any] = []
    kept_labels: list[Any] = []
    left = MOST_BYTES
    label = iter(labels) if labels is not None else None
    for row in rows:
        of_row = next(label, []) if label is not None else []
        left -= len(json.dumps(row, ensure_ascii=False)) + len(json.dumps(of_row, ensure_ascii=False))
        if left < 0:
            break
        kept.append(row)
        kept_labels.append(of_row)
    return kept, kept_labels


def _head(name: object, dtype: object) -> Table:
    return {"name": _name(name), "dtype": text(str(dtype))}


def _name(name: object) -> str:
    """Of one with several levels: all of them."""
    patience = Patience(_PATIENCE_S)
    if isinstance(name, tuple):
        return " / ".join(str(clean(part, patience)) for part in name)
    return "" if name is None else str(clean(name, patience))
