"""Operation: how one tool is one HTTP request, as small plain data. Descriptions of every kind are compiled into it.

What a tool takes is in its schema; here is only where each argument goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from workbench.model.toolkit import Json, Tool, Toolkit

Place = Literal["path", "query", "header", "cookie"]
Style = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject", "brackets", "json", "reserved"
]
"""those of OpenAPI; `brackets` is `a[]=1&a[]=2`, `json` is a value written as JSON, `reserved` is `{+x}` of a path,
which leaves `/` and the like as they are"""


class BodyKind(StrEnum):
    """How a body is written."""

    JSON = "json"
    FORM = "form"
    """application/x-www-form-urlencoded"""
    MULTIPART = "multipart"
    """multipart/form-data"""
    RAW = "raw"
    """one file or one text, as it is"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument that does not go into the body."""

    name: str
    """as the service has it"""
    place: Place
    argument: str = ""
    """as agents have it; empty if it is the same"""
    style: Style = "simple"
    explode: bool = False
    required: bool = False
    fixed: str = ""
    """sent always, and no argument: the version that a service wants in a header"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyField:
    """One argument that is a field of the body."""

    name: str
    argument: str = ""
    """empty if it is the same"""
    is_file: bool = False
    content_type: str = ""
    """of a part of a multipart body; empty for what is usual"""
    style: Style = "form"
    explode: bool = True
    """both for forms only"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Where arguments go in it: `whole` is one that is all of it; otherwise `fields` of an object."""

    kind: BodyKind
    content_type: str = ""
    """that is told to the service; empty for what is usual"""
    whole: str = ""
    is_file: bool = False
    """of `whole`"""
    fields: tuple[BodyField, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """Another address for the same call when it brings a file: its body is multipart/related, JSON first."""

    path: str
    argument: str
    """the file"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One request, with holes."""

    method: str
    """capital letters"""
    base_url: str
    """absolute; `{name}` in it is a value of the connected account"""
    path: str
    """begins with `/`; `{name}` in it is a parameter of the path"""
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    media: Media | None = None
    idempotency_header: str = ""
    """in which the service takes a key that makes the same call again harmless"""
    accept: str = ""
    """what is asked for; empty for JSON before anything else"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTool:
    """A tool and how it is carried out."""

    tool: Tool
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledToolkit:
    """All of one description."""

    toolkit: Toolkit
    tools: tuple[CompiledTool, ...]
    warnings: tuple[str, ...] = ()
    """what of the description is left out, and why"""


def packed(operation: Operation) -> Json:
    """As JSON, without what is usual; `unpacked` gives the same operation back."""
    found: dict[str, Any] = {"m": operation.method, "u": operation.base_url, "p": operation.path}
    if operation.parameters:
        found["q"] = [_lean(one, _PARAMETER) for one in operation.parameters]
    if operation.body is not None:
        body = _lean(operation.body, _BODY)
        if operation.body.fields:
            body["f"] = [_lean(one, _FIELD) for one in operation.body.fields]
        found["b"] = body
    if operation.media is not None:
        found["d"] = [operation.media.path, operation.media.argument]
    if operation.idempotency_header:
        found["i"] = operation.idempotency_header
    if operation.accept:
        found["a"] = operation.accept
    return found


def unpacked(data: Mapping[str, Any]) -> Operation:
    """What `packed` made. Only for data of our own: it is not checked."""
    body = data.get("b")
    media = data.get("d")
    return Operation(
        method=data["m"],
        base_url=data["u"],
        path=data["p"],
        parameters=tuple(Parameter(**_full(one, _PARAMETER)) for one in data.get("q", ())),
        body=None if body is None else _body(body),
        media=None if media is None else Media(path=media[0], argument=media[1]),
        idempotency_header=data.get("i", ""),
        accept=data.get("a", ""),
    )


def _body(data: Mapping[str, Any]) -> Body:
    full = _full({key: value for key, value in data.items() if key != "f"}, _BODY)
    full["kind"] = BodyKind(full["kind"])
    return Body(**full, fields=tuple(BodyField(**_full(one, _FIELD)) for one in data.get("f", ())))


# Short names of the fields of each, and what is left out as usual.
_PARAMETER = {"n": "name", "p": "place", "a": "argument", "s": "style", "e": "explode", "r": "required", "x": "fixed"}
_FIELD = {"n": "name", "a": "argument", "f": "is_file", "c": "content_type", "s": "style", "e": "explode"}
_BODY = {"k": "kind", "c": "content_type", "w": "whole", "i": "is_file", "r": "required"}


def _lean(value: Parameter | BodyField | Body, names: Mapping[str, str]) -> dict[str, Any]:
    usual = type(value).__dataclass_fields__
    return {short: getattr(value, name) for short, name in names.items() if getattr(value, name) != usual[name].default}


def _full(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[short]: value for short, value in data.items()}
