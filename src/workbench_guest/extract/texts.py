"""What is text already: plain, source code, JSON, XML, Markdown, and tables and pages made of text."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from workbench_guest.extract import limits
from workbench_guest.extract.charsets import decoded
from workbench_guest.extract.rows import ROWS_A_PIECE, as_line
from workbench_guest.extract.values import Document, Piece, Source, Unreadable

_SAMPLE = 64 * 1024
_DELIMITERS = ",;\t|"


def read_text(kind: str, source: Source) -> Document:
    """A text, a table of csv or a page of html.

    Raises:
        Unreadable: it is too large.
    """
    if source.size > limits.MAX_TEXT_BYTES:
        most = limits.MAX_TEXT_BYTES // limits.MIB
        raise Unreadable(
            f"{source.name} is too large for a text: {source.size // limits.MIB} MB, at most {most} MB are read; "
            "read it by code in pieces"
        )
    text = decoded(source.file.read())
    if kind == "csv":
        return Document(pages=1, pieces=_tables(text, "\t" if source.name.lower().endswith(".tsv") else None))
    if kind == "html":
        from workbench_guest.extract.markup import html_pieces

        return Document(pages=1, pieces=(Piece(text=piece, after="\n") for piece in html_pieces(text)))
    return Document(pages=1, pieces=iter((Piece(text=text),)))


def _tables(text: str, delimiter: str | None) -> Iterator[Piece]:
    csv.field_size_limit(limits.MAX_TEXT_BYTES)
    delimiter = delimiter or _delimiter(text[:_SAMPLE])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    while lines := [as_line(row) for row in itertools.islice(reader, ROWS_A_PIECE)]:
        yield Piece(text="\n".join(lines), after="\n")


def _delimiter(sample: str) -> str:
    """The one that cuts the lines most evenly."""
    lines = [line for line in sample.split("\n")[:50] if line.strip()][:-1] or sample.split("\n")[:1]

    def evenness(delimiter: str) -> tuple[float, int]:
        counts = [len(row) - 1 for row in csv.reader(lines, delimiter=delimiter)] or [0]
        usual = max(set(counts), key=counts.count)
        return (counts.count(usual) / len(counts) if usual else 0.0, usual)

    return max(_DELIMITERS, key=evenness)
