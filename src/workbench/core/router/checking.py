"""Arguments held against the JSON Schema of a tool of somebody else's, before it is called.

The schema is not trusted either: it may lie, be broken, refer in circles, or be made to cost time. What it says by
regular expressions is left to the service; references lead nowhere outside of it; and what takes too many steps is not
checked any further. A schema that makes no sense checks nothing: the service has the last word on what it takes.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, Tool

# Keywords that are looked at, of one call. A large schema of a real service takes some hundreds.
_MOST_STEPS = 5_000
# Of what the schema says about the place that is wrong.
_MOST_SHOULD, _MOST_VALUE, _MOST_LISTED, _MOST_ENUM = 400, 60, 30, 12
# BARRIER: an expression can be made to take for ever, and nobody can stop it; held by
# tests/unit/core/router/test_checking.py. The last ones look at all of a schema again for each property.
_LEFT_OUT = ("pattern", "patternProperties", "propertyNames", "format", "uniqueItems", "$dynamicRef",
             "unevaluatedProperties", "unevaluatedItems", "contentMediaType", "contentEncoding")  # fmt: skip
# With one of these a schema says itself what else there may be, or does not name everything at its top.
_OPEN = frozenset(
    ("additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "$ref")
)
_MOST_COMPARED = 100
_WORDS = {"object": "an object", "array": "a list", "string": "a text", "boolean": "true or false",
          "integer": "a whole number", "number": "a number", "null": "null"}  # fmt: skip


class _TooMuch(Exception):
    """More steps than anybody's arguments need."""


class _Steps:
    """How many are left, of one call."""

    def __init__(self) -> None:
        self.left = _MOST_STEPS

    def one(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooMuch


def fitting(tool: Tool, arguments: Json) -> Json:
    """The arguments, without those at the top that are null where the schema has no null: many clients send so what
    nobody filled in.

    Raises:
        InvalidRequest: they are not what the tool takes; the first that is wrong is named, with what it should be.
    """
    schema = tool.input_schema
    present = _without_unfilled(schema, arguments)
    unknown = _first_unknown(schema, present)
    try:
        error = _first_error(schema, present)
    except (_TooMuch, RecursionError):
        return present
    if error is not None:
        strange = f" (and there is no `{unknown[:_MOST_VALUE]}`)" if unknown else ""
        raise InvalidRequest(
            f"{tool.slug} cannot use these arguments: {_told(error)}{strange}. {_takes(schema)}",
            {"tool": tool.slug, "argument": _place(error)},
        )
    if unknown:
        # It would be left out on the way, and the call would do something else than was asked for.
        raise InvalidRequest(
            f"{tool.slug} cannot use these arguments: there is no `{unknown[:_MOST_VALUE]}` here"
            f"{_meant(unknown, schema)}. {_takes(schema)}",
            {"tool": tool.slug, "argument": unknown[:_MOST_VALUE]},
        )
    return present


def _first_unknown(schema: Json, arguments: Json) -> str:
    """An argument that the tool has none of; empty where its schema does not name them all."""
    known = schema.get("properties")
    if not isinstance(known, dict) or not known or _OPEN & schema.keys():
        return ""
    return next((name for name in arguments if name not in known), "")


def _meant(name: str, schema: Json) -> str:
    near = difflib.get_close_matches(name[:_MOST_VALUE], [str(one) for one in schema["properties"]][:_MOST_COMPARED], 1)
    return f"; did you mean `{near[0][:_MOST_VALUE]}`?" if near else ""


def _without_unfilled(schema: Json, arguments: Json) -> Json:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {
        name: one
        for name, one in arguments.items()
        if one is not None or (name in known and _takes_null(known[name])) or not known
    }


def _takes_null(schema: Any) -> bool:
    """Whether a property says so in the usual ways; one that is not known is left as it is."""
    if not isinstance(schema, dict):
        return True
    if "$ref" in schema or schema.get("nullable") is True or None in _listed(schema.get("enum")):
        return True
    if any(_takes_null(one) for key in ("anyOf", "oneOf") for one in _listed(schema.get(key))):
        return True
    kind = schema.get("type")
    if kind is None:
        return not any(key in schema for key in ("anyOf", "oneOf", "allOf", "enum", "const", "properties", "items"))
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def _first_error(schema: Json, arguments: Json) -> Any:
    """The one to tell: the first that is not deep inside of choices."""
    jsonschema = importlib.import_module("jsonschema")
    referencing = importlib.import_module("referencing")
    steps = _Steps()
    # Nothing is ever fetched: a registry without anybody who could.
    validator = _checker(steps)(schema, registry=referencing.Registry())
    try:
        return jsonschema.exceptions.best_match(validator.iter_errors(arguments))
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, referencing.exceptions.Unresolvable):
        # The schema is none.
        return None


def _checker(steps: _Steps) -> Any:
    jsonschema = importlib.import_module("jsonschema")
    usual = jsonschema.Draft202012Validator
    keywords = {name: _bounded(name, check, steps) for name, check in usual.VALIDATORS.items() if name not in _LEFT_OUT}
    return jsonschema.validators.create(meta_schema={}, validators=keywords, type_checker=usual.TYPE_CHECKER)


Check = Callable[[Any, Any, Any, Any], Iterable[Any] | None]


def _bounded(name: str, check: Check, steps: _Steps) -> Check:
    """The same, counted; what a broken schema does to it is nothing."""

    @functools.wraps(check)
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        steps.one()
        if name == "additionalProperties" and "patternProperties" in schema:
            return
        if name in {"minimum", "maximum"} and schema.get(f"exclusive{name.capitalize()}") is True:
            # As older descriptions say it.
            yield from counted_exclusive(validator, value, instance)
            return
        if isinstance(value, bool) and name.startswith("exclusive"):
            return
        if instance is None and schema.get("nullable") is True:
            return
        try:
            for error in check(validator, value, instance, schema) or ():
                steps.one()
                yield error
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
            return

    def counted_exclusive(validator: Any, value: Any, instance: Any) -> Iterator[Any]:
        jsonschema = importlib.import_module("jsonschema")
        keyword = f"exclusive{name.capitalize()}"
        yield from jsonschema.Draft202012Validator.VALIDATORS[keyword](validator, value, instance, {}) or ()

    return counted


def _place(error: Any) -> str:
    told = ""
    for part in _path(error):
        told += f"[{part}]" if isinstance(part, int) else f"{'.' if told else ''}{str(part)[:_MOST_VALUE]}"
    return told


def _path(error: Any) -> list[str | int]:
    path = list(error.absolute_path)
    if error.validator == "required":
        path.append(_missing(error))
    elif error.validator == "additionalProperties":
        path.append(_unknown(error))
    return path


def _missing(error: Any) -> str:
    return next((str(name) for name in error.validator_value if name not in error.instance), "")


def _unknown(error: Any) -> str:
    known = error.schema.get("properties", {})
    return next((str(name) for name in error.instance if name not in known), "")


def _told(error: Any) -> str:
    """In words: which place, what is wrong, and what it should be."""
    place = f"`{_place(error) or 'arguments'}`"
    match error.validator:
        case "required":
            schema = error.schema.get("properties", {}).get(_missing(error), {})
            return f"{place} is missing{_should(schema)}"
        case "additionalProperties":
            there = ", ".join(list(error.schema.get("properties", {}))[:_MOST_LISTED])
            return f"there is no {place} here; there are: {there or 'none'}"
        case "type":
            kinds = [_WORDS.get(str(one), str(one)) for one in _listed(error.validator_value, one=True)]
            what = f"has to be {' or '.join(kinds)}, not {_named(error.instance)}"
        case "enum":
            some = ", ".join(_quoted(one) for one in _listed(error.validator_value)[:_MOST_ENUM])
            what = f"has to be one of {some}, not {_quoted(error.instance)}"
        case "const":
            what = f"has to be {_quoted(error.validator_value)}"
        case "anyOf" | "oneOf":
            what = "is none of the kinds that it may be"
        case _:
            bound = _quoted(error.validator_value)
            what = f"breaks `{error.validator}` of {bound}; it is {_quoted(error.instance)}"
    return f"{place} {what}{_should(error.schema)}"


def _should(schema: Any) -> str:
    """What its schema says of it, as far as that is short."""
    if not isinstance(schema, dict) or not schema:
        return ""
    try:
        text = json.dumps(schema, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        return ""
    return f"; it should be: {text[:_MOST_SHOULD]}{'…' if len(text) > _MOST_SHOULD else ''}"


def _takes(schema: Json) -> str:
    properties = schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    needed = _listed(schema.get("required"))
    told = [f"{name} (required)" if name in needed else str(name) for name in names[:_MOST_LISTED]]
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"It takes: {', '.join(told) or 'nothing'}{more}"


def _listed(value: Any, *, one: bool = False) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value] if one else []


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}…"


def _named(value: Any) -> str:
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "boolean"), (dict, "object"), (list, "array"), (str, "string"), (int, "integer"), (float, "number"),
    )  # fmt: skip
    kind = next((name for types, name in kinds if isinstance(value, types)), "null")
    return f"{_WORDS[kind]} ({_quoted(value)})" if kind not in {"object", "array", "null"} else _WORDS[kind]
