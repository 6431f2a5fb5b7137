"""Adaptation: a tool with arguments of our choosing, carried out by generated tools of the same toolkit."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, Tool, ToolResult
from workbench.toolkits.building import FILE_SCHEMA
from workbench.toolkits.shipped.adapted.alike import ALIKE

READS = ("readOnlyHint", "idempotentHint", "openWorldHint")
CHANGES = ("createHint", "openWorldHint")
REPLACES = ("updateHint", "destructiveHint", "idempotentHint", "openWorldHint")
REMOVES = ("destructiveHint", "idempotentHint", "openWorldHint")


class Step(Protocol):
    """Carries out a generated tool, with the credential of the call. Its files are those of the call, and `more`."""

    async def __call__(self, slug: str, arguments: Json, more: Mapping[str, bytes] | None = None) -> ToolResult:
        """As the tool's own call would end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a call brought."""

    arguments: Json
    files: Mapping[str, bytes]

    def text(self, name: str, usual: str = "") -> str:
        """Of an argument; `usual` if it was not given."""
        value = self.arguments.get(name)
        if value is None:
            return usual
        if not isinstance(value, str):
            raise InvalidRequest(f"`{name}` has to be a text", {"argument": name})
        return value

    def needed(self, name: str) -> str:
        """A text that has to be there.

        Raises:
            InvalidRequest: it is not, or is empty.
        """
        value = self.text(name)
        if not value.strip():
            raise InvalidRequest(f"`{name}` is missing", {"argument": name})
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts; one that stands alone is a list of one."""
        value = self.arguments.get(name)
        if value is None or value == "":
            return []
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise InvalidRequest(f"`{name}` has to be a list of texts", {"argument": name})
        return found

    def number(self, name: str, usual: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self.arguments.get(name, usual)
        if value is None:
            return usual
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidRequest(f"`{name}` has to be a whole number from {least} to {most}", {"argument": name})
        return value

    def flag(self, name: str, *, usual: bool = False) -> bool:
        """True or false."""
        value = self.arguments.get(name)
        if value is None:
            return usual
        if not isinstance(value, bool):
            raise InvalidRequest(f"`{name}` has to be true or false", {"argument": name})
        return value

    def file(self, name: str) -> tuple[str, str, bytes] | None:
        """Name, kind and content of a file of the session's mount; None if none was given.

        Raises:
            InvalidRequest: it is not described as one, or its content is not there.
        """
        value = self.arguments.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InvalidRequest(f"`{name}` has to be a file: {{name, mimetype, s3key}}", {"argument": name})
        key = value.get("s3key")
        content = self.files.get(key) if isinstance(key, str) else _bytes(name, value.get("base64"))
        if content is None:
            raise InvalidRequest(
                f"`{name}.s3key` names no file of this session: {str(key)[:100]!r}", {"argument": name}
            )
        title = str(value.get("name") or (key or name).rpartition("/")[2])
        return title, str(value.get("mimetype") or "application/octet-stream"), content


def _bytes(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InvalidRequest(f"`{name}` has neither an `s3key` nor a `base64`", {"argument": name}) from None


Run = Callable[[Step, Given], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """A tool, and how it is carried out."""

    tool: Tool
    run: Run


def adapted(
    slug: str,
    description: str,
    properties: Mapping[str, Json],
    run: Run,
    *,
    required: Sequence[str] = (),
    tags: tuple[str, ...] = CHANGES,
    answers: Json | None = None,
) -> Adaptation:
    """One of the toolkit that its slug begins with; its name is the rest in words."""
    toolkit, _, rest = slug.partition("_")
    schema: Json = {"type": "object", "properties": dict(properties), "required": list(required)}
    tool = Tool(
        slug=slug,
        name=rest.replace("_", " ").capitalize(),
        description=description,
        toolkit=toolkit.lower(),
        input_schema=schema,
        output_schema=answers or {"type": "object", "properties": {}},
        tags=tags,
        acts_as=ALIKE.get(slug, ()),
    )
    return Adaptation(tool=tool, run=run)


def passed(target: str, names: Mapping[str, str], **fixed: Any) -> Run:
    """The same call by other names of its arguments; what was not given is `fixed`, if it has that."""

    async def run(step: Step, given: Given) -> ToolResult:
        known = {
            theirs: given.arguments[ours] for ours, theirs in names.items() if given.arguments.get(ours) is not None
        }
        return await step(target, {**fixed, **known})

    return run


def text(description: str, **more: Any) -> Json:
    """The schema of a text."""
    return {"type": "string", "description": description, **more}


def number(description: str, **more: Any) -> Json:
    """The schema of a whole number."""
    return {"type": "integer", "description": description, **more}


def flag(description: str, *, default: bool = False) -> Json:
    """The schema of yes or no."""
    return {"type": "boolean", "description": description, "default": default}


def texts(description: str, **more: Any) -> Json:
    """The schema of a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description, **more}


def a_file(description: str) -> Json:
    """The schema of a file of the session's mount."""
    return {**FILE_SCHEMA, "description": description}
