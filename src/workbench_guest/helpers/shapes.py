"""The shape of a value: keys and type names instead of what it holds. Whatever the value is, it fits on a page."""

from __future__ import annotations

import contextlib
import json
from typing import Any

DEEPEST = 8
MOST_KEYS = 60
MOST_LINES = 400
_MOST_KEY = 80
PREVIEW_CHARACTERS = 500


def print_json_structure(value: Any) -> None:
    """Print the shape of a value: the keys of dicts with the names of their types, lists by their first element.

    For any value, however large: at most 400 lines, 60 keys of a dict, 8 levels. What is left out is counted.

        >>> print_json_structure({"items": [{"id": 1, "tags": ["a"]}], "next": None})
        {
          "items": [  # 1 item
            {
              "id": int,
              "tags": [str]  # 1 item
            }
          ],
          "next": None
        }

    Args:
        value: anything; what is neither dict nor list is named by its type.
    """
    say(shape(value))


def say(text: str) -> None:
    """Print it. Nobody who cannot be told loses a result over it: a closed stream is no error of the call."""
    with contextlib.suppress(OSError, ValueError):
        print(text)  # noqa: T201  to show it in the cell is what it is for


def say_beginning(text: str) -> None:
    """Print how a long text begins, and how much there is of it."""
    more = "…" if len(text) > PREVIEW_CHARACTERS else ""
    say(f"{text[:PREVIEW_CHARACTERS]}{more}\n[{len(text):,} characters in all]")


def shape(value: Any) -> str:
    """What `print_json_structure` prints."""
    lines = _Lines()
    lines.add("", value, "", 0, ())
    if lines.dropped:
        lines.told.append("… and more")
    return "\n".join(lines.told)


class _Lines:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.dropped = False

    def add(self, label: str, value: Any, end: str, depth: int, inside: tuple[int, ...]) -> None:
        """`label` stands before it and `end` after it; `inside` are the ids of what holds it."""
        if len(self.told) >= MOST_LINES:
            self.dropped = True
            return
        try:
            self._add(label, value, end, depth, inside)
        except Exception:  # noqa: BLE001  objects of the agent's may raise at anything
            self._line(depth, f"{label}{_name(value)}{end}")

    def _add(self, label: str, value: Any, end: str, depth: int, inside: tuple[int, ...]) -> None:
        if id(value) in inside:
            self._line(depth, f"{label}{_name(value)}{end}  # the one that holds this")
        elif isinstance(value, dict):
            self._table(label, value, end, depth, inside)
        elif isinstance(value, (list, tuple, set, frozenset)):
            self._row(label, value, end, depth, inside)
        else:
            self._line(depth, f"{label}{_name(value)}{end}")

    def _table(self, label: str, table: dict[Any, Any], end: str, depth: int, inside: tuple[int, ...]) -> None:
        size = len(table)
        if size == 0 or depth >= DEEPEST:
            self._line(depth, f"{label}{'{}' if size == 0 else '{…}'}{end}{_counted(size, 'key') if size else ''}")
            return
        # A copy of the first ones: another thread may be adding to it.
        first = [pair for pair, _ in zip(table.items(), range(MOST_KEYS))]  # noqa: B905  as many as there are
        self._line(depth, f"{label}{{")
        for number, (key, value) in enumerate(first):
            self.add(f"{_key(key)}: ", value, "," if number < size - 1 else "", depth + 1, (*inside, id(table)))
        if size > len(first):
            self._line(depth + 1, f"… {size - len(first):,} more keys")
        self._line(depth, f"}}{end}")

    def _row(self, label: str, row: Any, end: str, depth: int, inside: tuple[int, ...]) -> None:
        size = len(row)
        if size == 0 or depth >= DEEPEST:
            self._line(depth, f"{label}{'[]' if size == 0 else '[…]'}{end}{_counted(size, 'item') if size else ''}")
            return
        first = next(iter(row))
        if isinstance(first, (dict, list, tuple, set, frozenset)) and len(first) > 0:
            self._line(depth, f"{label}[{_counted(size, 'item')}")
            self.add("", first, "", depth + 1, (*inside, id(row)))
            self._line(depth, f"]{end}")
        else:
            self._line(depth, f"{label}[{_name(first)}]{end}{_counted(size, 'item')}")

    def _line(self, depth: int, text: str) -> None:
        self.told.append("  " * depth + text)


def _counted(count: int, what: str) -> str:
    return f"  # {count:,} {what}{'' if count == 1 else 's'}"


def _name(value: Any) -> str:
    # Data that is read forgivingly is told by the type that it is one of.
    kind = getattr(type(value), "_workbench_plain", type(value))
    if value is None:
        return "None"
    return kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"


def _key(key: Any) -> str:
    if not isinstance(key, str):
        # Its own repr may raise, or be as long as it likes; that of a huge number is refused by Python.
        small = type(key) in (float, bool, type(None)) or (type(key) is int and key.bit_length() <= 64)
        return repr(key) if small else f"<{_name(key)}>"
    return json.dumps(key if len(key) <= _MOST_KEY else key[: _MOST_KEY - 1] + "…", ensure_ascii=False)
