"""What a tool is: a name, words for the model, shapes, and what it does."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import mcp_types as types
from pydantic import BaseModel, ConfigDict, ValidationError

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.mcp.answers import Answer
from workbench.mcp.families import Family
from workbench.mcp.visit import Visit

# An argument in a message about it.
_MOST_QUOTED = 60


class Arguments(BaseModel):
    """What a tool takes. Every field has a description."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    examples: ClassVar[dict[str, Any]] = {}
    """for fields that are required: what `next` proposes when one is missing"""
    ignored: ClassVar[dict[str, str]] = {}
    """what older clients still send: taken and not used, with what is said about it"""


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """One call that can be answered."""

    visit: Visit
    tool: Tool[Any]
    arguments: A
    given: dict[str, Any]
    """as they came, for a `next` that says the same again"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[A]):
    """One."""

    name: str
    family: Family
    title: str
    description: str
    arguments: type[A]
    output_schema: dict[str, Any]
    annotations: types.ToolAnnotations
    run: Callable[[Call[A]], Awaitable[Answer]]
    """may raise a WorkbenchError: then nothing ran"""
    refused: Callable[[Visit, Tool[Any], dict[str, Any], WorkbenchError], Awaitable[Answer]]
    """the answer to that, or to arguments that cannot be used, in the shape of the family"""

    async def answer(self, visit: Visit, given: dict[str, Any]) -> Answer:
        """What it says to these arguments."""
        given = _present(self, given)
        try:
            return await self.perform(visit, given)
        except WorkbenchError as problem:
            return await self.refused(visit, self, given, problem)

    async def perform(self, visit: Visit, given: dict[str, Any]) -> Answer:
        """The same for callers who have words of their own for what never began: it is raised."""
        given = _present(self, given)
        return await self.run(Call(visit, self, self._checked(given), given))

    def _checked(self, given: dict[str, Any]) -> A:
        try:
            return self.arguments.model_validate(
                {name: one for name, one in given.items() if name not in self.arguments.ignored}
            )
        except ValidationError as problem:
            raise InvalidRequest(_words(self, problem), {"argument": _first(problem)}) from None

    def listed(self) -> types.Tool:
        """As clients see it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.arguments),
            output_schema=self.output_schema,
            annotations=self.annotations,
        )


def _present(tool: Tool[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Without those that are null: many clients send so what nobody filled in. What is required is still missed."""
    needed = {one.alias or name for name, one in tool.arguments.model_fields.items() if one.is_required()}
    return {name: one for name, one in given.items() if one is not None or name in needed}


def unused_words(tool: Tool[Any], given: dict[str, Any]) -> str:
    """What is said about arguments that are taken and not used."""
    return " ".join(words for name, words in tool.arguments.ignored.items() if name in given)


def usable(tool: Tool[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Arguments that will be accepted: those of `given` that can be used, with examples for what is missing."""
    fields = _names(tool)
    kept = {name: value for name, value in _present(tool, given).items() if name in fields}
    for name, example in tool.arguments.examples.items():
        kept.setdefault(name, example)
    try:
        tool.arguments.model_validate(kept)
    except ValidationError as problem:
        for name in {str(one["loc"][0]) for one in problem.errors() if one["loc"]}:
            kept.pop(name, None)
            if name in tool.arguments.examples:
                kept[name] = tool.arguments.examples[name]
    return kept


def _first(problem: ValidationError) -> str:
    return ".".join(str(part) for part in problem.errors()[0]["loc"])


def _words(tool: Tool[Any], problem: ValidationError) -> str:
    said = []
    for one in problem.errors(include_url=False)[:5]:
        where = ".".join(str(part) for part in one["loc"])
        match one["type"]:
            case "missing":
                said.append(f"`{where}` is missing")
            case "extra_forbidden":
                said.append(f"there is no argument `{where[:_MOST_QUOTED]}`")
            case _:
                said.append(f"`{where}`: {one['msg'].removeprefix('Value error, ')}")
    names = ", ".join(_names(tool))
    return f"{tool.name} cannot use these arguments: {'; '.join(said)}. It takes: {names}"


def _names(tool: Tool[Any]) -> list[str]:
    """As callers write them."""
    return [one.alias or name for name, one in tool.arguments.model_fields.items()]


@functools.cache
def input_schema(arguments: type[Arguments]) -> dict[str, Any]:
    """Of the arguments, without the words that pydantic adds for itself; to be read only, as all share it."""
    schema: dict[str, Any] = _plain(arguments.model_json_schema())
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _plain(schema: Any) -> Any:
    """Without titles; `properties` may have one that is called so."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _plain(one) for name, one in value.items()} if key == "properties" else _plain(value)
        for key, value in schema.items()
        if key != "title"
    }
