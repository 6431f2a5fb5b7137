"""What a caller gave, before it is sent: which argument is wrong, and what it should be."""

from __future__ import annotations

import json
import math
from typing import Any

# Deeper than this nobody reads the path of a value.
_DEEPEST = 100
_MOST_PATH = 200


def text_problem(name: str, value: Any) -> str:
    """What is wrong with a text that must say something; empty if nothing is."""
    if not isinstance(value, str):
        return f"{name} has to be a str, not {type(value).__name__}"
    if not value.strip():
        return f"{name} is empty"
    return json_problem(name, value)


def table_problem(name: str, value: Any) -> str:
    """What is wrong with a dict that is sent; empty if nothing is."""
    if not isinstance(value, dict):
        return f"{name} has to be a dict, not {type(value).__name__}"
    return json_problem(name, value)


def json_problem(name: str, value: Any) -> str:
    """Which part of `value` JSON cannot carry, by its path; empty if it can carry all of it."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except Exception as problem:  # noqa: BLE001  values of the caller's may raise anything when they are looked at
        try:
            found = _unfit(name, value, 0)
        except Exception:  # noqa: BLE001
            found = ""
        return found or f"{name} cannot be sent as JSON: {problem}"
    return ""


def _unfit(path: str, value: Any, depth: int) -> str:
    if depth > _DEEPEST:
        return f"{_short(path)} is nested too deeply, or holds itself"
    if isinstance(value, dict):
        return _unfit_in(path, value, depth)
    if isinstance(value, (list, tuple)):
        parts = (_unfit(f"{path}[{number}]", one, depth + 1) for number, one in enumerate(value))
        return next(filter(None, parts), "")
    if value is None or isinstance(value, (bool, int)):
        return ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{_short(path)} is {value}, which JSON does not have: use None"
    if isinstance(value, str):
        return _unfit_text(path, value)
    return f"{_short(path)} is a {_kind(value)}, which JSON cannot carry: {_instead(value)}"


def _unfit_in(path: str, table: dict[Any, Any], depth: int) -> str:
    for key, value in table.items():
        if not isinstance(key, (str, int, float, bool, type(None))):
            return f"a key of {_short(path)} is a {_kind(key)}, and JSON has only text there: {key!r}"
        if isinstance(key, str) and _unfit_text("", key):
            return f"a key of {_short(path)} holds half of a character pair, which is no text: {key!a}"
        if found := _unfit(f"{path}[{key!r}]", value, depth + 1):
            return found
    return ""


def _unfit_text(path: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        return f"{_short(path)} holds half of a character pair at {problem.start}, which is no text"
    return ""


def _instead(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "decode it, or make it a file for upload_local_file"
    if isinstance(value, (set, frozenset)):
        return "make it a list"
    if hasattr(value, "isoformat"):
        return "use its .isoformat()"
    if hasattr(value, "tolist"):
        return "use its .tolist()"
    if hasattr(value, "to_dict"):
        return "use its .to_dict()"
    return "make it a str, a number, a list or a dict"


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(path: str) -> str:
    return path if len(path) <= _MOST_PATH else f"{path[: _MOST_PATH // 2]}…{path[-_MOST_PATH // 2 :]}"
