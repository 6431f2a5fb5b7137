"""Schemas of OpenAPI 3.0 and 3.1, written out as plain JSON Schema of a bounded size, for agents to read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from workbench.model.toolkit import Json
from workbench.toolkits.building import FILE_SCHEMA
from workbench.toolkits.compiling.document import BrokenReference, Document, entries, table, text

Side = Literal["request", "answer"]
DEEPEST = 8
MOST_NODES = 600
"""of one tool's arguments; of its answer half"""
_MOST_WORDS = 600
_MOST_CHOICES = 300
_MOST_PATTERN = 100
_MOST_SCALAR = 2000
_NAMES = frozenset(("string", "number", "integer", "boolean", "array", "object", "null"))
# What is kept as it is, if it is of the right kind.
_NUMBERS = ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_MANY = ("oneOf", "anyOf")


@dataclass
class Budget:
    """How much may still be written."""

    nodes: int = MOST_NODES

    def take(self) -> bool:
        """One more; False if that is too much."""
        self.nodes -= 1
        return self.nodes >= 0


class Schemas:
    """Of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def written(self, schema: Any, side: Side, budget: Budget | None = None) -> Json:
        """The whole of it, as far as that is bounded. What cannot be read is left open: anything is taken there."""
        return self._written(schema, side, budget or Budget(), ())

    def _written(self, schema: Any, side: Side, budget: Budget, within: tuple[str, ...]) -> Json:
        if isinstance(schema, bool) or not budget.take():
            return {}
        try:
            found, reference = self._document.followed(schema)
        except BrokenReference:
            return {}
        # BARRIER: a schema that has itself as a part would be written for ever; held by
        # tests/unit/toolkits/compiling/test_hostile.py.
        if reference and (reference in within or len(within) >= DEEPEST * 2):
            return _open(found, "as above")
        within = (*within, reference or "")
        if len(within) > DEEPEST * 2 or sum(not one for one in within) > DEEPEST:
            return _open(found, "more within")
        if _is_file(found):
            return {**FILE_SCHEMA, **_words(found)}
        made = self._merged(found, side, budget, within) if entries(found.get("allOf")) else {}
        return {**self._plain(found, side, budget, within, made)}

    def _plain(self, found: Json, side: Side, budget: Budget, within: tuple[str, ...], made: Json) -> Json:
        made = {**made, **_words(found), **_limits(found)}
        kinds = _kinds(found) or _kinds(made)
        if kinds:
            made["type"] = kinds[0] if len(kinds) == 1 else kinds
        if properties := table(found.get("properties")):
            # What is needed comes first: something may have to be left out.
            first = {name: properties[name] for name in entries(found.get("required")) if _in(name, properties)}
            told = self._properties({**first, **properties}, side, budget, within)
            made["properties"] = {**table(made.get("properties")), **told}
        if isinstance(made.get("properties"), dict):
            made.setdefault("type", "object")
            wanted = (*entries(made.get("required")), *entries(found.get("required")))
            named = list(dict.fromkeys(one for one in wanted if isinstance(one, str) and one in made["properties"]))
            made.pop("required", None)
            if named:
                made["required"] = named
        more = found.get("additionalProperties")
        if isinstance(more, dict) and more:
            made["additionalProperties"] = self._written(more, side, budget, within)
        if "items" in found:
            made.setdefault("type", "array")
            made["items"] = self._written(found["items"], side, budget, within)
        for name in _MANY:
            if several := entries(found.get(name)):
                written = [self._written(one, side, budget, within) for one in several[:20]]
                # Some say only that one of several properties is needed: the service says so too.
                if any(written):
                    made[name] = written
        return made

    def _properties(self, properties: Json, side: Side, budget: Budget, within: tuple[str, ...]) -> Json:
        made: Json = {}
        for name, one in properties.items():
            if not _is_for(self._peek(one), side):
                continue
            if budget.nodes <= 0:
                break
            made[text(name, 200)] = self._written(one, side, budget, within)
        return made

    def _peek(self, schema: Any) -> Json:
        try:
            return self._document.followed(schema)[0]
        except BrokenReference:
            return {}

    def _merged(self, found: Json, side: Side, budget: Budget, within: tuple[str, ...]) -> Json:
        """All of several at once: their properties are those of one object."""
        made: Json = {}
        for one in entries(found["allOf"])[:50]:
            part = self._written(one, side, budget, within)
            properties = {**table(made.get("properties")), **table(part.get("properties"))}
            # Some parts say only which properties of the others are needed.
            required = [*entries(made.get("required")), *entries(self._peek(one).get("required"))]
            required = [name for name in required if isinstance(name, str)]
            made = {**made, **part}
            if properties:
                made["properties"] = properties
            if required:
                made["required"] = list(dict.fromkeys(required))
        return made


def _in(name: Any, properties: Json) -> bool:
    return isinstance(name, str) and name in properties


def _open(found: Json, words: str) -> Json:
    kinds = [one for one in _kinds(found) if one != "null"]
    said = text(found.get("description"), 200)
    return {**({"type": kinds[0]} if kinds else {}), "description": f"{said} ({words})".strip()}


def _is_for(schema: Json, side: Side) -> bool:
    return schema.get("readOnly" if side == "request" else "writeOnly") is not True


def _is_file(schema: Json) -> bool:
    return schema.get("type") == "string" and (
        schema.get("format") == "binary"
        or (isinstance(schema.get("contentMediaType"), str) and "contentEncoding" not in schema)
    )


def _kinds(schema: Json) -> list[str]:
    told = schema.get("type")
    kinds = [one for one in (told if isinstance(told, list) else [told]) if one in _NAMES]
    if not kinds and isinstance(schema.get("properties"), dict):
        kinds = ["object"]
    if schema.get("nullable") is True and kinds and "null" not in kinds:
        kinds.append("null")
    return kinds


def _words(schema: Json) -> Json:
    made: Json = {}
    said = text(schema.get("description"), _MOST_WORDS) or text(schema.get("title"), 200)
    # BARRIER: a pattern is a program that others would run, on arguments that others choose; it is told in words, and
    # the service checks it; held by tests/unit/toolkits/compiling/test_hostile.py.
    if pattern := text(schema.get("pattern"), _MOST_PATTERN + 1):
        said = f"{said} Of the form {pattern}".strip() if len(pattern) <= _MOST_PATTERN else said
    if said:
        made["description"] = said
    if schema.get("deprecated") is True:
        made["deprecated"] = True
    if value := text(schema.get("format"), 60):
        made["format"] = value
    choices = [one for one in entries(schema.get("enum"))[:_MOST_CHOICES] if _is_scalar(one)]
    if choices:
        made["enum"] = choices
    for name in ("default", "const"):
        if name in schema and (_is_scalar(schema[name]) or _is_small(schema[name])):
            made[name] = schema[name]
    return made


def _limits(schema: Json) -> Json:
    made: Json = {}
    for name in (*_NUMBERS, *_COUNTS):
        value = schema.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (name not in _COUNTS or (isinstance(value, int) and value >= 0)):
            made[name] = value
    # OpenAPI 3.0 says by true or false whether the bound itself is meant.
    for name, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(name) is True and bound in made:
            made[name] = made.pop(bound)
    if schema.get("uniqueItems") is True:
        made["uniqueItems"] = True
    return made


def _is_scalar(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) < _MOST_SCALAR
    return value is None or isinstance(value, bool | int | float)


def _is_small(value: Any) -> bool:
    try:
        return len(json.dumps(value)) < _MOST_SCALAR
    except (TypeError, ValueError, RecursionError):
        return False
