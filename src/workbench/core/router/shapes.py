"""What answers of tools look like: keys and kinds, drawn from real ones, without any value.

A shape is `"string"`, or `"integer|null"`, or `["string"]` for a list, or an object of shapes. What a service uses as
keys may be data: addresses, numbers, names. Such keys become `*`.
"""

from __future__ import annotations

import json
import re
from typing import Any

Shape = str | list[Any] | dict[str, Any]

ANY_KEY = "*"
_DEEPEST = 6
_MOST_KEYS = 40
# Of a list, as the first ones may lack what later ones have.
_MOST_ITEMS = 20
_MOST_CHARACTERS = 8000
# BARRIER: a key that is no name of a field could be somebody's address; held by tests/unit/core/router/test_shapes.py.
_NAME = re.compile(r"[A-Za-z_$@][A-Za-z0-9_$.:-]{0,39}")
_NUMBERS = re.compile(r"[0-9]{3,}|@.*\.|[0-9].*[A-Za-z].*[0-9].*[A-Za-z]")


def shape_of(value: Any, depth: int = 0) -> Shape:
    """Of one answer."""
    if isinstance(value, dict):
        if depth >= _DEEPEST:
            return "object"
        return _object([(key, shape_of(one, depth + 1)) for key, one in list(value.items())[: _MOST_KEYS * 4]])
    if isinstance(value, list):
        if depth >= _DEEPEST:
            return "array"
        items: Shape | None = None
        for one in value[:_MOST_ITEMS]:
            items = merged(items, shape_of(one, depth + 1))
        return [] if items is None else [items]
    return _kind(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number"}
    return kinds.get(type(value), "string")


def _object(pairs: list[tuple[str, Shape]]) -> dict[str, Any]:
    """Keys that are no names, or too many to be names, are told as one."""
    named = {key: one for key, one in pairs if _is_name(key)}
    if len(named) > _MOST_KEYS:
        named = {}
    rest: Shape | None = None
    for key, one in pairs:
        if key not in named:
            rest = merged(rest, one)
    return named if rest is None else {**named, ANY_KEY: rest}


def _is_name(key: str) -> bool:
    return key == ANY_KEY or (_NAME.fullmatch(key) is not None and _NUMBERS.search(key) is None)


def merged(one: Shape | None, other: Shape) -> Shape:
    """What holds for both."""
    if one is None or one == other:
        return other
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        both = [
            (key, merged(one[key], other[key]) if key in one and key in other else (one | other)[key]) for key in keys
        ]
        return _object(both)
    if isinstance(one, list) and isinstance(other, list):
        if not one or not other:
            return one or other
        return [merged(one[0], other[0])]
    kinds = {kind for shape in (one, other) for kind in _kinds(shape)}
    # What is known of an object or a list is worth more than that it is sometimes null.
    whole = next((shape for shape in (one, other) if not isinstance(shape, str)), None)
    if whole is not None and kinds <= {"null", *_kinds(whole)}:
        return whole
    return "|".join(sorted(kinds))


def _kinds(shape: Shape) -> list[str]:
    if isinstance(shape, str):
        return shape.split("|")
    return ["object"] if isinstance(shape, dict) else ["array"]


def written(shape: Shape) -> str:
    """As it is kept: cut from below until it is short enough."""
    for depth in range(_DEEPEST, 0, -1):
        text = json.dumps(_cut(shape, depth), ensure_ascii=False, separators=(",", ":"))
        if len(text) <= _MOST_CHARACTERS:
            return text
    return json.dumps(_kinds(shape)[0])


def _cut(shape: Shape, depth: int) -> Shape:
    if isinstance(shape, str):
        return shape
    if depth == 0:
        return _kinds(shape)[0]
    if isinstance(shape, list):
        return [_cut(one, depth - 1) for one in shape]
    return {key: _cut(one, depth - 1) for key, one in shape.items()}


def added(text: str, value: Any) -> str:
    """What is kept after one more answer."""
    return written(merged(read(text) if text else None, shape_of(value)))


def read(text: str) -> Shape:
    """What was kept; `object` if nobody can read it."""
    try:
        shape: Shape = json.loads(text)
    except (ValueError, RecursionError):
        return "object"
    return shape


def shallow(shape: Shape) -> Shape:
    """Its upper part, for an answer with many of them."""
    return _cut(shape, 3)
