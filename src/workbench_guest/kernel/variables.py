"""The names of the memory as a table: type, size, a short repr. Nothing here may change, fill or hang the kernel."""

from __future__ import annotations

import reprlib
import sys
from typing import Any

_PREVIEW = 80
_shorten = reprlib.Repr()
_shorten.maxstring = _shorten.maxother = _shorten.maxlong = _PREVIEW
_shorten.maxlist = _shorten.maxtuple = _shorten.maxset = _shorten.maxfrozenset = _shorten.maxdeque = 5
_shorten.maxdict = 4
_shorten.maxlevel = 3
# Their own repr formats thousands of cells, or asks a server; a shape says more.
_SHAPED = ("DataFrame", "Series", "ndarray", "Tensor", "LazyFrame", "Dataset")


def described(names: dict[str, Any], most: int) -> list[dict[str, str]]:
    """Sorted by name."""
    return [
        {"name": name, "type": _type(names[name]), "size": _size(names[name]), "preview": _preview(names[name])}
        for name in sorted(names)[:most]
    ]


def _type(value: Any) -> str:
    kind = type(value)
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", str(kind))
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def _size(value: Any) -> str:
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and all(isinstance(side, int) for side in shape):
            return " x ".join(map(str, shape)) or "scalar"
        if isinstance(value, (str, bytes, bytearray, list, tuple, dict, set, frozenset)):
            return f"{len(value)} {'characters' if isinstance(value, str) else 'items'}"
        return f"{sys.getsizeof(value)} bytes"
    except Exception:  # noqa: BLE001  the agent's own code may run here, and raise anything
        return ""


def _preview(value: Any) -> str:
    try:
        if type(value).__name__ in _SHAPED:
            columns = getattr(value, "columns", None)
            text = f"columns {list(columns)[:8]}" if columns is not None else f"dtype {getattr(value, 'dtype', '')}"
        else:
            text = _shorten.repr(value)
    except Exception as problem:  # noqa: BLE001
        return f"<repr raised {type(problem).__name__}>"
    text = text.replace("\n", " ")
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1] + "…"
