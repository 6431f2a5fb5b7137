"""Which field of an answer is meant. Spelling may be resolved, meaning may not; what is unclear is told, and raised."""

from __future__ import annotations

import ast
import json
import sys
import types
from collections.abc import Callable
from typing import Any

from workbench_guest.corrections import places
from workbench_guest.corrections.desk import desk

WRAPPERS = ("data", "response_data", "result", "results", "response", "output", "body", "payload")
_DATA = "data"
_ASKED_FOR = (_DATA, "response_data")
_DEEPEST = 2
_ERRORS = frozenset(
    [
        "error",
        "errors",
        "detail",
        "details",
        "message",
        "status",
        "status_code",
        "code",
        "success",
        "successful",
        "failed",
        "failure",
        "exception",
        "reason",
        "fault",
    ]
)
_MOST_NAMED = 5
_SPELLING = str.maketrans("", "", "_- ")
# Below this a key is a value, like a letter or a code, and no field's name.
_FEWEST_LETTERS = 2


def spelled(key: str) -> str:
    """Without what is spelling: case, `_`, `-` and space."""
    return key.translate(_SPELLING).casefold()


# By these an answer says that it has a wrapper, or that it is an error.
_TELLING = frozenset(map(spelled, (*WRAPPERS, *_ERRORS)))


def _is_outermost(table: dict[str, Any]) -> bool:
    return bool(getattr(type(table), "_workbench_outermost", False))


def same_spelling(table: dict[Any, Any], key: str) -> list[str]:
    """Keys that differ from this one by their spelling alone."""
    wanted = spelled(key)
    if len(wanted) < _FEWEST_LETTERS:
        return []
    return [one for one in table if isinstance(one, str) and one != key and spelled(one) == wanted]


def item(table: dict[str, Any], key: Any, frame: types.FrameType) -> Any:
    """`table[key]`, which is not there.

    Raises:
        KeyError: it cannot be told which is meant.
    """
    if not isinstance(key, str) or not desk.active or frame.f_globals is not desk.namespace:
        raise KeyError(key)
    place = places.place_of(frame.f_code, frame.f_lasti)
    literal = _is_subscript(place, key)
    found = _by_spelling(table, key, frame, literal)
    if found is not None:
        return found[0]
    near = same_spelling(table, key)
    if not near and literal and _is_outermost(table):
        found = _by_wrappers(table, key, frame)
        if found is not None:
            return found[0]
    raise _missing(key, near, literal)


def _is_subscript(place: places.Place | None, key: str) -> bool:
    """Whether the key is written out where it is read, and nothing is written back."""
    if place is None or place.augmented or not isinstance(place.node, ast.Subscript):
        return False
    return isinstance(place.node.slice, ast.Constant) and place.node.slice.value == key


def _by_spelling(table: dict[str, Any], key: str, frame: types.FrameType, literal: bool) -> tuple[Any] | None:
    """The value in a tuple, so that None is one."""
    near = same_spelling(table, key)
    if not near or not desk.serves("keys", frame):
        return None
    if len(near) > 1 or not literal:
        desk.declined("key-convention")
        return None
    desk.acted("key-convention", f"[{key!r}]", f"[{near[0]!r}]", _line(frame))
    return (dict.__getitem__(table, near[0]),)


def _by_wrappers(table: dict[str, Any], key: str, frame: types.FrameType) -> tuple[Any] | None:
    if not desk.serves("wrappers", frame):
        return None
    rule = "wrapper-up" if key in _ASKED_FOR else "wrapper-down"
    below = [] if key in _ERRORS else _below(table, key, ())
    above = rule == "wrapper-up" and _has_no_wrapper(table)
    if not below and not above:
        return None
    guarded = places.is_guarded(frame, desk.namespace, "KeyError", "LookupError")
    if guarded or len(below) > 1 or (below and above):
        desk.declined(rule)
        return None
    if below:
        path, value = below[0]
        desk.acted("wrapper-down", f"[{key!r}]", "".join(f"[{one!r}]" for one in path), _line(frame))
        return (value,)
    desk.acted("wrapper-up", f"[{key!r}]", "the answer itself, which has no such wrapper", _line(frame))
    return (table,)


def _below(table: dict[str, Any], key: str, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Where the key is, under wrappers."""
    found = []
    for name in WRAPPERS:
        inner = dict.get(table, name)
        if isinstance(inner, dict):
            if key in inner:
                found.append(((*path, name, key), dict.__getitem__(inner, key)))
            if len(path) + 1 < _DEEPEST:
                found += _below(inner, key, (*path, name))
    return found


def _has_no_wrapper(table: dict[str, Any]) -> bool:
    return bool(table) and not any(spelled(one) in _TELLING for one in table if isinstance(one, str))


def _missing(key: str, near: list[str], literal: bool) -> KeyError:
    """With what is there instead, as a note: what it says by itself stays Python's."""
    problem = KeyError(key)
    if len(near) > 1:
        problem.add_note(f"{len(near)} fields match by spelling: {_named(near)}; write the one that is meant")
    elif near:
        why = "" if literal else ", and only a key that is written out where it is read is resolved"
        problem.add_note(f"there is a field {near[0]!r}{why}")
    return problem


def _named(names: list[str]) -> str:
    return ", ".join(repr(one) for one in names[:_MOST_NAMED])


def got(table: dict[str, Any], key: Any, default: Any, frame: types.FrameType) -> Any:
    """`table.get(key)`, which is not there."""
    if not isinstance(key, str) or not desk.active or frame.f_globals is not desk.namespace:
        return default
    if not _is_get(places.place_of(frame.f_code, frame.f_lasti), key):
        return default
    if (found := _by_spelling(table, key, frame, True)) is not None:
        return found[0]
    if _is_outermost(table) and "hints" in desk.on and desk.serves("wrappers", frame):
        below = [] if key in _ERRORS else _below(table, key, ())
        if len(below) == 1:
            path = "".join(f"[{one!r}]" for one in below[0][0])
            desk.hinted("wrapper-down", f".get({key!r}) gave its default; there is {path}", _line(frame))
    return default


def _is_get(place: places.Place | None, key: str) -> bool:
    node = place.node if place is not None else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "get":
        return False
    return bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == key


def attribute(table: dict[str, Any], name: str, frame: types.FrameType) -> Any:
    """`table.name`.

    Raises:
        AttributeError: as any dict.
    """
    if not name.startswith("_") and desk.serves("attributes", frame) and _is_attribute(frame, name):
        near = [name] if name in table else same_spelling(table, name)
        fits = len(near) == 1 and (near[0] == name or "keys" in desk.on)
        if fits and not places.is_guarded(frame, desk.namespace, "AttributeError"):
            desk.acted("attribute-access", f".{name}", f"[{near[0]!r}]", _line(frame))
            return dict.__getitem__(table, near[0])
        if near:
            desk.declined("attribute-access")
    raise AttributeError(f"'dict' object has no attribute {name!r}", name=name, obj=table)


def _is_attribute(frame: types.FrameType, name: str) -> bool:
    """Not by `hasattr`, nor by something in C that looks around."""
    place = places.place_of(frame.f_code, frame.f_lasti)
    return place is not None and isinstance(place.node, ast.Attribute) and place.node.attr == name


def may_be_json(text: str) -> bool:
    """Whether it looks like a JSON object, at a glance."""
    return text.lstrip()[:1] == "{" and text.rstrip()[-1:] == "}"


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        found = json.JSONDecoder().decode(str(text))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def in_json(text: str, key: str, frame: types.FrameType) -> Any:
    """`text[key]`.

    Raises:
        TypeError: as any text.
    """
    if desk.serves("json_text", frame) and _is_subscript(places.place_of(frame.f_code, frame.f_lasti), key):
        table = _object_in(text)
        near = _field(table, key) if table is not None else []
        if table is not None and len(near) == 1:
            desk.acted("json-string", f"[{key!r}] of a text", f"[{near[0]!r}] of the JSON in it", _line(frame))
            return desk.dress(table[near[0]])
        if table is not None:
            desk.declined("json-string")
    return str.__getitem__(text, key)  # type: ignore[index]  # that is what is wrong with it


def _field(table: dict[str, Any], key: str) -> list[str]:
    return [key] if key in table else same_spelling(table, key) if "keys" in desk.on else []


def json_attribute(text: str, name: str, frame: types.FrameType) -> Any:
    """`text.get`.

    Raises:
        AttributeError: as any text.
    """
    if name == "get" and desk.serves("json_text", frame) and _is_attribute(frame, name):
        table = _object_in(text)
        if table is not None:
            return _getter(table, "json-string", "a text", "the JSON in it")
    raise AttributeError(f"'str' object has no attribute {name!r}", name=name, obj=text)


def _getter(table: dict[str, Any], rule: str, written: str, used: str) -> Callable[..., Any]:
    def get(key: Any, default: Any = None) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001
        near = _field(table, key) if isinstance(key, str) else []
        name = near[0] if len(near) == 1 else key
        desk.acted(rule, f".get({key!r}) of {written}", f".get({name!r}) of {used}", _line(frame))
        return desk.dress(dict.get(table, name, default))

    return get


def in_pair(pair: tuple[Any, Any], key: str, frame: types.FrameType) -> Any:
    """`pair[key]` of `(data, error)`.

    Raises:
        RuntimeError: the call failed, with what it said.
        TypeError: as any tuple.
    """
    told, error = tuple.__iter__(pair)
    if desk.serves("tuples", frame) and _is_subscript(places.place_of(frame.f_code, frame.f_lasti), key):
        if error:
            desk.declined("tuple-not-unpacked")
            raise RuntimeError(f"the call failed, so there is no {key!r} of it: {error}")
        near = _field(told, key) if isinstance(told, dict) else []
        if key == _DATA and told and not near and not (isinstance(told, dict) and not _has_no_wrapper(told)):
            desk.acted("tuple-not-unpacked", f"[{key!r}] of (data, error)", "data of (data, error)", _line(frame))
            return told
        if len(near) == 1:
            what = f"data[{near[0]!r}] of (data, error)"
            desk.acted("tuple-not-unpacked", f"[{key!r}] of (data, error)", what, _line(frame))
            return dict.__getitem__(told, near[0])
        desk.declined("tuple-not-unpacked")
    return tuple.__getitem__(pair, key)  # type: ignore[call-overload]  # that is what is wrong with it


def pair_attribute(pair: tuple[Any, Any], name: str, frame: types.FrameType) -> Any:
    """`pair.get`.

    Raises:
        RuntimeError: the call failed.
        AttributeError: as any tuple.
    """
    if name == "get" and desk.serves("tuples", frame) and _is_attribute(frame, name):
        told, error = tuple.__iter__(pair)
        if error:
            desk.declined("tuple-not-unpacked")
            raise RuntimeError(f"the call failed, so there is no data of it: {error}")
        if isinstance(told, dict):
            return _getter(told, "tuple-not-unpacked", "(data, error)", "its data")
    raise AttributeError(f"'tuple' object has no attribute {name!r}", name=name, obj=pair)


def only_element(row: list[Any], key: str, frame: types.FrameType) -> Any:
    """`row[key]`.

    Raises:
        TypeError: as any list.
    """
    if desk.serves("single_element", frame) and _is_subscript(places.place_of(frame.f_code, frame.f_lasti), key):
        only = list.__getitem__(row, 0) if len(row) == 1 else None
        if isinstance(only, dict) and key in only:
            desk.acted("single-element", f"[{key!r}] of a list of one", f"[0][{key!r}]", _line(frame))
            return dict.__getitem__(only, key)
        desk.declined("single-element")
    return list.__getitem__(row, key)  # type: ignore[call-overload]  # that is what is wrong with it


def _line(frame: types.FrameType) -> int:
    return desk.line_of(frame.f_code.co_filename, frame.f_lineno)
