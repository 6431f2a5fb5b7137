"""Text of PowerPoint's slides, with their tables, diagrams and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench_guest.extract.flow import Flow
from workbench_guest.extract.parts import Parts
from workbench_guest.extract.safe_xml import End, Event, Start
from workbench_guest.extract.values import Document, Piece, Source


def read_slides(source: Source) -> Document:
    """The slides in the order they are shown in.

    Raises:
        Unreadable: it is encrypted, broken, or too large once unpacked.
    """
    parts = Parts(source)
    main = parts.main()
    targets = {relation.id: relation.target for relation in parts.relations(main)}
    slides = [
        targets[event.attributes["r:id"]]
        for event in parts.events(main)
        if isinstance(event, Start) and event.name == "sldId" and event.attributes.get("r:id") in targets
    ]
    return Document(pages=len(slides), pieces=_pieces(parts, slides))


def _pieces(parts: Parts, slides: list[str]) -> Iterator[Piece]:
    for number, slide in enumerate(slides, start=1):
        related = parts.relations(slide)
        texts = [_text(parts, slide)]
        texts += [_text(parts, relation.target) for relation in related if relation.kind == "diagramData"]
        notes = [_text(parts, relation.target) for relation in related if relation.kind == "notesSlide"]
        if said := "\n".join(text for text in notes if text):
            texts.append(f"Notes: {said}")
        found = "\n\n".join(text for text in texts if text)
        yield Piece(text=f"## Slide {number}\n\n{found}" if found else "")


def _text(parts: Parts, name: str) -> str:
    if not parts.has(name):
        return ""
    flow = Flow()
    flow.take(_without_numbers(parts.events(name)))
    return "\n".join(line for line in flow.text().split("\n") if line.strip())


def _without_numbers(incoming: Iterable[Event]) -> Iterator[Event]:
    """The number of a slide is a field on it, and on its notes."""
    inside = False
    for event in incoming:
        if isinstance(event, Start) and event.name == "fld":
            inside = event.attributes.get("type") == "slidenum"
        if not inside:
            yield event
        if isinstance(event, End) and event.name == "fld":
            inside = False
