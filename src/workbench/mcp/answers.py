"""What a tool answers, before it becomes a message of the protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import mcp_types as types

from workbench.mcp.pictures import Picture, left_out_words
from workbench.model.truncation import excerpt

# Keys of `_meta` carry a prefix that is ours.
RECEIPT_KEY = "open-workbench/receipt"
OUTCOME_KEY = "open-workbench/outcome"
# Of an answer that is too large, each text is shortened to this first, and then to half as often as it takes.
_MOST_OF_A_TEXT = 64_000
_LEAST_OF_A_TEXT = 500
# So are lists and tables, in proportion; no shape of ours has so many fields that one were lost.
_CHARACTERS_PER_ITEM = 100
_LEAST_OF_ITEMS = 20
_MOST_PROBLEMS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The call that gets on from here: complete, to be made as it is."""

    tool: str
    arguments: dict[str, Any]

    def shown(self) -> dict[str, Any]:
        """As clients see it."""
        return {"tool": self.tool, "arguments": self.arguments}


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
    drawings: tuple[str, ...] = ()
    """SVG; the first that is left out"""
    links: tuple[Link, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)

    def result(self, most_bytes: int) -> types.CallToolResult:
        """The message, of at most so many bytes: clients refuse larger ones, and the answer would be lost."""
        shown = [one for one in self.pictures if not one.problem]
        answer = _without(self, [], [])
        made = _message(answer, shown)
        if _size(made) > most_bytes and answer.drawings:
            answer = replace(answer, drawings=())
            made = _message(answer, shown)
        # Programs find pictures in the structure too, models only as images: what is there twice goes first.
        if _size(made) > most_bytes and shown:
            answer = _without(answer, shown, [])
            made = _message(answer, shown)
        left_out: list[Picture] = []
        while (over := _size(made) - most_bytes) > 0 and shown:
            while over > 0 and shown:
                left_out.append(shown.pop())
                over -= len(left_out[-1].data)
            answer = _without(replace(self, drawings=()), [*shown, *left_out], left_out)
            made = _message(answer, shown)
        most_characters = _MOST_OF_A_TEXT
        while _size(made) > most_bytes and most_characters >= _LEAST_OF_A_TEXT:
            made = _message(_cut(answer, most_characters), shown)
            most_characters //= 2
        return made


def _without(answer: Answer, copies: list[Picture], left_out: list[Picture]) -> Answer:
    """Without these pictures in the structure, and with words about those that nobody sees."""
    data = {one.data for one in answer.pictures if one in copies or one.problem}
    said = [f"{one.problem[0].upper()}{one.problem[1:]}." for one in answer.pictures if one.problem]
    words = " ".join([*said[:_MOST_PROBLEMS], left_out_words(left_out)]).strip()
    if not data and not words:
        return answer
    return replace(
        answer,
        structured=_with_words(_without_data(answer.structured, data), words),
        text=None if answer.text is None else _with_words(answer.text, words),
    )


def _cut(answer: Answer, most: int) -> Answer:
    return replace(
        answer,
        structured=_shortened(answer.structured, most),
        text=None if answer.text is None else _shortened(answer.text, most),
        meta=_shortened(answer.meta, most),
    )


def _drawing(number: int, text: str) -> types.EmbeddedResource:
    uri = f"workbench://displays/{number}.svg"
    contents = types.TextResourceContents(uri=uri, mime_type="image/svg+xml", text=text)
    return types.EmbeddedResource(type="resource", resource=contents)


def _message(answer: Answer, pictures: list[Picture]) -> types.CallToolResult:
    step = {} if answer.next is None else {"next": answer.next.shown()}
    structured = {**answer.structured, **step}
    written = json.dumps({**(answer.text or answer.structured), **step}, ensure_ascii=False)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=written)]
    content += [types.ImageContent(type="image", data=one.data, mime_type=one.mime_type) for one in pictures]
    content += [_drawing(number, text) for number, text in enumerate(answer.drawings, 1)]
    content += [
        types.ResourceLink(
            type="resource_link", uri=one.uri, name=one.name, mime_type=one.mime_type or None, size=one.size
        )
        for one in answer.links
    ]
    return types.CallToolResult(
        content=content,
        structured_content=structured,
        is_error=answer.never_began,
        _meta=answer.meta or None,
    )


def _size(message: types.CallToolResult) -> int:
    """As transports write it."""
    return len(message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace"))


def _without_data(value: Any, data: set[str]) -> Any:
    """The same, with a word in the place of each text that is one of these."""
    if isinstance(value, dict):
        return {key: _without_data(one, data) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_data(one, data) for one in value]
    if isinstance(value, str) and value and "".join(value.split()) in data:
        return f"[{len(value):,} characters, left out here]"
    return value


def _with_words(shown: dict[str, Any], words: str) -> dict[str, Any]:
    """Where each family has words for the model."""
    if not words:
        return shown
    match shown:
        case {"data": {"session": {"instructions": str(said)}}}:
            session = {**shown["data"]["session"], "instructions": f"{said} {words}"}
            return {**shown, "data": {**shown["data"], "session": session}}
    return {**shown, "hint": f"{shown.get('hint') or ''} {words}".strip()}


def _shortened(value: Any, most: int) -> Any:
    items = max(_LEAST_OF_ITEMS, most // _CHARACTERS_PER_ITEM)
    if isinstance(value, dict):
        return {key: _shortened(one, most) for key, one in islice(value.items(), items)}
    if isinstance(value, list | tuple):
        return [_shortened(one, most) for one in value[:items]]
    return excerpt(value, most) if isinstance(value, str) else value
