"""Text of Word's documents: headers, body, notes, comments, footers."""

from __future__ import annotations

from collections.abc import Iterator

from workbench_guest.extract.flow import Flow
from workbench_guest.extract.parts import Parts
from workbench_guest.extract.values import Document, Piece, Source

_BEFORE = ("header",)
_AFTER = ("footnotes", "endnotes", "comments", "footer")


def read_word(source: Source) -> Document:
    """The document; its pages exist only once it is printed, so it counts as one.

    Raises:
        Unreadable: it is encrypted, broken, or too large once unpacked.
    """
    parts = Parts(source)
    return Document(pages=1, pieces=_pieces(parts, parts.main()))


def _pieces(parts: Parts, main: str) -> Iterator[Piece]:
    relations = parts.relations(main)
    # First pages and even ones often have the same header again.
    seen: set[str] = {""}
    for kind in (*_BEFORE, "", *_AFTER):
        names = [main] if not kind else [relation.target for relation in relations if relation.kind == kind]
        for name in names:
            if not parts.has(name):
                continue
            flow = Flow()
            flow.take(parts.events(name))
            text = flow.text()
            if text.strip() not in seen:
                seen.add(text.strip())
                yield Piece(text=text)
