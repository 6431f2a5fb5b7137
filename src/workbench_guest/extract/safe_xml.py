"""XML as a stream of events: no tree, no document type, no entity but the five of XML itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO
from xml.parsers import expat

from workbench_guest.extract import limits
from workbench_guest.extract.values import Unreadable

_CHUNK = 64 * 1024
_BETWEEN = " "


@dataclass(frozen=True, slots=True)
class Start:
    """An element begins. Names come without their namespace; attributes of relationships as `r:name`."""

    name: str
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class End:
    """An element ends."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """Characters; the text of one element may come in several."""

    text: str


Event = Start | End | Text


def events(stream: IO[bytes], name: str) -> Iterator[Event]:
    """What is in it, in order.

    Raises:
        Unreadable: it is not XML, declares a document type, or is nested too deeply.
    """
    waiting: list[Event] = []
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limits.MAX_XML_DEPTH:
            raise Unreadable(f"{name} is nested too deeply to be read: make it again without so many levels")
        waiting.append(Start(_local(tag), {_attribute(key): value for key, value in attributes.items()}))

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        waiting.append(End(_local(tag)))

    def refuse(*_: object) -> None:
        # BARRIER: without a document type there are no entities, and so neither bombs nor other files in the text;
        # held by tests/extract/test_hostile_files.py.
        raise Unreadable(
            f"{name} declares a document type, which no Office program does, and is not read: make it again"
        )

    parser = expat.ParserCreate(namespace_separator=_BETWEEN)
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: waiting.append(Text(text))
    parser.StartDoctypeDeclHandler = refuse
    try:
        final = False
        while not final:
            chunk = stream.read(_CHUNK)
            final = not chunk
            parser.Parse(chunk, final)
            yield from waiting
            waiting.clear()
    except expat.ExpatError as problem:
        raise Unreadable(f"{name} is broken ({problem}): open it where it was made, and save it again") from None


def _local(name: str) -> str:
    return name.rpartition(_BETWEEN)[2]


def _attribute(name: str) -> str:
    space, _, local = name.rpartition(_BETWEEN)
    return f"r:{local}" if space.endswith("/relationships") else local
