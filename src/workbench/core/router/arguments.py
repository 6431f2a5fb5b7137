"""Arguments held against the schema of a tool of our own: the first thing that is wrong is named.

The part of JSON Schema that those use. What tools of others take is checked by those who run them.
"""

from __future__ import annotations

from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, Tool

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {"object": "an object", "array": "a list", "string": "a text", "boolean": "true or false",
          "integer": "a whole number", "number": "a number"}  # fmt: skip


def checked(tool: Tool, arguments: Json) -> Json:
    """The arguments, without those that are null: many clients send so what nobody filled in.

    Raises:
        InvalidRequest: they are not what the tool takes. What it does not know is left alone.
    """
    present = {name: one for name, one in arguments.items() if one is not None}
    if wrong := _wrong("", present, tool.input_schema):
        takes = ", ".join(tool.input_schema.get("properties", {}))
        raise InvalidRequest(f"{tool.slug} cannot use these arguments: {wrong}. It takes: {takes}", {"tool": tool.slug})
    return present


def _wrong(place: str, value: Any, schema: Json) -> str:
    if "anyOf" in schema:
        # What is wrong with the one that was meant: the first of the same kind.
        kinds = [one for one in schema["anyOf"] if _is(value, one["type"])]
        if not kinds:
            wanted = " or ".join(_NAMES[one["type"]] for one in schema["anyOf"])
            return f"`{place}` has to be {wanted}, not {_named(value)}"
        return _wrong(place, value, kinds[0])
    kind = schema.get("type", "")
    if kind and not _is(value, kind):
        return f"`{place or 'arguments'}` has to be {_NAMES[kind]}, not {_named(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"`{place}` has to be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        return _wrong_object(place, value, schema)
    if isinstance(value, list):
        return _wrong_list(place, value, schema)
    if isinstance(value, str):
        return _wrong_size(place, len(value), "characters", schema.get("minLength", 0), schema.get("maxLength"))
    return ""


def _is(value: Any, kind: str) -> bool:
    # True is an int to Python, and to nobody else.
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _wrong_object(place: str, value: Json, schema: Json) -> str:
    for name in schema.get("required", ()):
        if value.get(name) is None:
            return f"`{_below(place, name)}` is missing"
    found = (
        _wrong(_below(place, name), value[name], one)
        for name, one in schema.get("properties", {}).items()
        if value.get(name) is not None
    )
    return next(filter(None, found), "")


def _wrong_list(place: str, value: list[Any], schema: Json) -> str:
    if wrong := _wrong_size(place, len(value), "entries", schema.get("minItems", 0), schema.get("maxItems")):
        return wrong
    items = schema.get("items", {})
    found = (_wrong(f"{place}[{number}]", one, items) for number, one in enumerate(value))
    return next(filter(None, found), "")


def _wrong_size(place: str, size: int, of: str, least: int, most: int | None) -> str:
    if size < least or (most is not None and size > most):
        allowed = f"at least {least:,}" if most is None else f"{least:,} to {most:,}"
        return f"`{place}` has {size:,} {of}, and {allowed} are taken"
    return ""


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _named(value: Any) -> str:
    kind = next((kind for kind in _KINDS if _is(value, kind)), "")
    return _NAMES.get(kind, "null")
