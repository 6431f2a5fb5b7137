"""Toolkits of your own, in Python: functions with type hints become tools. For files that whoever runs a workbench
names to it; they run in processes of their own.

    from workbench.toolkits.functions import Toolkit

    toolkit = Toolkit("billing", description="Invoices of the shop.")

    @toolkit.tool(read_only=True)
    def invoice_total(number: str, currency: Literal["EUR", "USD"] = "EUR") -> float:
        \"\"\"The total of one invoice.\"\"\"
        ...
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

import pydantic
import pydantic.fields

_SLUG = re.compile(r"[a-z0-9][a-z0-9_]{0,39}")
_MOST_SLUG, _MOST_DESCRIPTION = 60, 4000
_F = TypeVar("_F", bound=Callable[..., Any])
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """On whose behalf a function is called: one that has a parameter of this type is told, and agents do not see it."""

    session: str
    user: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One that is a tool."""

    slug: str
    name: str
    description: str
    function: Callable[..., Any] = field(repr=False)
    arguments: type[pydantic.BaseModel] = field(repr=False)
    returns: pydantic.TypeAdapter[Any] | None = field(repr=False)
    caller: str
    """the parameter that is told who calls; empty if there is none"""
    tags: tuple[str, ...]
    timeout_s: float | None


class Toolkit:
    """Functions under one name. Give it to a variable of the file: all of those are found there."""

    def __init__(self, slug: str = "", *, name: str = "", description: str = "") -> None:
        if slug and not _SLUG.fullmatch(slug):
            raise ValueError(f"{slug!r} is no name of a toolkit: small letters, digits and _, at most 40")
        self.slug = slug
        """empty for the name that it was added by"""
        self.name = name
        self.description = description
        self.functions: list[Function] = []

    @overload
    def tool(self, function: _F) -> _F: ...

    @overload
    def tool(
        self,
        *,
        name: str = "",
        description: str = "",
        read_only: bool = False,
        destructive: bool = True,
        idempotent: bool = False,
        timeout_s: float | None = None,
    ) -> Callable[[_F], _F]: ...

    def tool(
        self,
        function: _F | None = None,
        *,
        name: str = "",
        description: str = "",
        read_only: bool = False,
        destructive: bool = True,
        idempotent: bool = False,
        timeout_s: float | None = None,
    ) -> _F | Callable[[_F], _F]:
        """Make a tool of a function, which stays as it is. It may be `async`.

        Its parameters need type hints, and are told to agents with their defaults and what `Args:` of its docstring
        says of them. What it does not say of itself is what cautious clients take it for: that it writes and destroys.
        """

        def taken(one: _F) -> _F:
            tags = _tags(read_only=read_only, destructive=destructive, idempotent=idempotent)
            self.functions.append(_made(one, name, description, tags, timeout_s))
            return one

        return taken if function is None else taken(function)


def _tags(*, read_only: bool, destructive: bool, idempotent: bool) -> tuple[str, ...]:
    if read_only:
        return ("readOnlyHint",)
    return (*(("destructiveHint",) if destructive else ()), *(("idempotentHint",) if idempotent else ()))


def _made(
    function: Callable[..., Any], name: str, description: str, tags: tuple[str, ...], timeout_s: float | None
) -> Function:
    slug = re.sub(r"[^A-Z0-9]+", "_", (name or function.__name__).upper()).strip("_")[:_MOST_SLUG]
    if not slug:
        raise ValueError(f"{name or function.__name__!r} has no letter that the name of a tool could be made of")
    says, of_parameters = _documented(function)
    hints = typing.get_type_hints(function, include_extras=True)
    caller, fields = "", {}
    for parameter in inspect.signature(function).parameters.values():
        where = f"`{parameter.name}` of {function.__name__}"
        if parameter.kind not in _KINDS:
            raise TypeError(f"{where} cannot be told to agents: a tool takes its arguments by name, without * and /")
        if parameter.name not in hints:
            raise TypeError(f"{where} has no type hint: write which type it is, such as `{parameter.name}: str`")
        if hints[parameter.name] is Caller:
            caller = parameter.name
            continue
        fields[parameter.name] = (hints[parameter.name], _field(parameter, of_parameters.get(parameter.name, "")))
    return Function(
        slug=slug,
        name=name or function.__name__.replace("_", " ").capitalize(),
        description=(description or says or f"{slug}.")[:_MOST_DESCRIPTION],
        function=function,
        arguments=_model(function.__name__, fields),
        returns=pydantic.TypeAdapter(hints["return"]) if hints.get("return") not in (None, type(None)) else None,
        caller=caller,
        tags=tags,
        timeout_s=timeout_s,
    )


def _model(name: str, fields: dict[str, Any]) -> type[pydantic.BaseModel]:
    config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    made: type[pydantic.BaseModel] = pydantic.create_model(name, __config__=config, **fields)
    return made


def _field(parameter: inspect.Parameter, says: str) -> Any:
    told: dict[str, Any] = {"description": says} if says else {}
    default = parameter.default
    if isinstance(default, pydantic.fields.FieldInfo):
        return default
    return pydantic.Field(... if default is inspect.Parameter.empty else default, **told)


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What its docstring says before `Args:`, and there of each parameter."""
    text = inspect.getdoc(function) or ""
    before, _, behind = text.partition("\nArgs:\n")
    says = re.split(r"\n(?:Returns|Raises|Example|Examples|Yields):\n", before)[0].strip()
    found: dict[str, str] = {}
    last = ""
    for line in behind.splitlines():
        if line and not line.startswith(" "):
            break
        named = re.match(r" {2,4}(\w+)(?: \([^)]*\))?: (.*)", line)
        if named:
            last = named[1]
            found[last] = named[2].strip()
        elif last and line.strip():
            found[last] += f" {line.strip()}"
    return says, found


def input_schema(function: Function) -> dict[str, Any]:
    """What it takes."""
    schema = function.arguments.model_json_schema()
    return {"type": "object", "properties": {}, **{name: one for name, one in schema.items() if name != "title"}}


def output_schema(function: Function) -> dict[str, Any]:
    """What it gives: an object as it is, and all else as its `result`."""
    if function.returns is None:
        return {"type": "object", "properties": {}}
    schema = function.returns.json_schema(mode="serialization")
    if schema.get("type") == "object":
        return {"properties": {}, **schema}
    definitions = schema.pop("$defs", None)
    whole: dict[str, Any] = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return {**whole, "$defs": definitions} if definitions else whole
