"""Any value as JSON has it, in bounded time: what has no number and no text of its own is told by its type."""

from __future__ import annotations

import contextlib
import datetime
import math
import time
from collections.abc import Sequence
from typing import Any

# Beyond it a reader in JavaScript has another number than was sent.
_MOST_INTEGER = 2**53
_MOST_TEXT = 1000
# As text the whole of it would be made first.
_MOST_MEMBERS = 1000
_MISSING = {"NaTType", "NAType"}


class Patience:
    """What may be spent on values that say themselves how they look; each may take as long as it likes."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """No more of them are asked."""
        return time.monotonic() > self._until


def clean(value: object, patience: Patience) -> Any:
    """A number, a text, a truth value or None."""
    if value is None or value is True or value is False:
        return value
    if type(value) is str:
        return text(value)
    if type(value) is int:
        return value if -_MOST_INTEGER <= value <= _MOST_INTEGER else _written(value)
    if type(value) is float:
        return _float(value)
    try:
        return _other(value, patience)
    except Exception:  # noqa: BLE001  a value of the agent's may raise at anything
        return f"<{_name(value)}>"


def number(value: object) -> float | str | None:
    """Of a plot, where all are floats."""
    return _float(float(value))  # type: ignore[arg-type]


def text(value: str) -> str:
    """Short, and without halves of character pairs, which no encoding can carry."""
    cut = value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}…"
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()


def picked(values: Sequence[Any], most: int) -> list[Any]:
    """So many of them at equal distances, with the first and the last."""
    count = len(values)
    if count <= most:
        return list(values)
    return [values[number * (count - 1) // (most - 1)] for number in range(most)]


def _float(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _other(value: Any, patience: Patience) -> Any:
    kind = type(value)
    if kind.__name__ in _MISSING:
        return None
    if isinstance(value, str):
        return text(str.__str__(value))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return text(value.isoformat())
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if kind.__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        plain = value.item()
        # Some have nothing in Python that is the same.
        return text(str(value)) if type(plain) is kind else clean(plain, patience)
    with contextlib.suppress(TypeError):
        if len(value) > _MOST_MEMBERS:
            return f"<{_name(value)} of {len(value)}>"
    if patience.is_over:
        return f"<{_name(value)}>"
    return _written(value)


def _duration(value: datetime.timedelta) -> str:
    """By ISO 8601."""
    isoformat = getattr(value, "isoformat", None)
    return text(isoformat()) if isoformat is not None else f"PT{value.total_seconds():g}S"


def _written(value: object) -> str:
    try:
        return text(str.__str__(str(value)))
    except ValueError:
        # More digits than Python writes.
        return f"<{_name(value)}>"


def _name(value: object) -> str:
    return text(type.__getattribute__(type(value), "__name__"))
