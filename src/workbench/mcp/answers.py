"""What a tool answers, before it becomes a message of the protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types

# Keys of `_meta` carry a prefix that is ours.
RECEIPT_KEY = "open-workbench/receipt"
OUTCOME_KEY = "open-workbench/outcome"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The call that gets on from here: complete, to be made as it is."""

    tool: str
    arguments: dict[str, Any]

    def shown(self) -> dict[str, Any]:
        """As clients see it."""
        return {"tool": self.tool, "arguments": self.arguments}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image that a cell showed."""

    mime_type: str
    data: str
    """base64"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A file that can be read from this server as a resource."""

    uri: str
    name: str
    mime_type: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. `structured` is what the tool's output schema describes, with `next` if there is one."""

    structured: dict[str, Any]
    next: Next | None = None
    """in every answer that is not a success"""
    never_began: bool = False
    """an error of ours or of the request: nothing ran. What ran has a result, however it ended."""
    text: dict[str, Any] | None = None
    """what is written out for the model, if not all of `structured`"""
    pictures: tuple[Picture, ...] = ()
    links: tuple[Link, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)

    def result(self) -> types.CallToolResult:
        """The message."""
        step = {} if self.next is None else {"next": self.next.shown()}
        structured = {**self.structured, **step}
        written = json.dumps({**(self.text or self.structured), **step}, ensure_ascii=False)
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=written)]
        content += [
            types.ImageContent(type="image", data=one.data, mime_type=one.mime_type)
            for one in self.pictures
            if one.mime_type in _PICTURES
        ]
        content += [
            types.ResourceLink(
                type="resource_link", uri=one.uri, name=one.name, mime_type=one.mime_type or None, size=one.size
            )
            for one in self.links
        ]
        return types.CallToolResult(
            content=content,
            structured_content=structured,
            is_error=self.never_began,
            _meta=self.meta or None,
        )


def pictures_in(displays: tuple[dict[str, str], ...]) -> tuple[Picture, ...]:
    """The best picture of each display that has one."""
    found = []
    for data in displays:
        kind = next((kind for kind in _PICTURES if kind in data), None)
        if kind is not None:
            found.append(Picture(mime_type=kind, data="".join(data[kind].split())))
    return tuple(found)
