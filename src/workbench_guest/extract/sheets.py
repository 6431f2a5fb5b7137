"""Text of Excel's workbooks: every sheet with its name, a row a line."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from workbench_guest.extract.parts import Parts
from workbench_guest.extract.rows import ROWS_A_PIECE, as_line
from workbench_guest.extract.safe_xml import End, Start, Text
from workbench_guest.extract.values import Document, Piece, Source

_MAX_COLUMN = 16_384
# Of the formats that Excel knows without being told.
_DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
_QUOTED = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.I)
_DATE_LETTERS = re.compile(r"[ymdhs]", re.I)
# Excel counts from a day that never was; with these the days after February 1900 are right.
_EPOCH, _EPOCH_1904 = datetime.datetime(1899, 12, 30), datetime.datetime(1904, 1, 1)  # noqa: DTZ001 - dates without a zone


@dataclass(slots=True)
class _Book:
    sheets: list[tuple[str, str]] = field(default_factory=list)
    """name and part"""
    shared: list[str] = field(default_factory=list)
    dates: set[int] = field(default_factory=set)
    """styles that show a number as a date"""
    epoch: datetime.datetime = _EPOCH


def read_sheets(source: Source) -> Document:
    """All sheets.

    Raises:
        Unreadable: it is encrypted, broken, or too large once unpacked.
    """
    parts = Parts(source)
    book = _book(parts, parts.main())
    return Document(pages=len(book.sheets), pieces=_pieces(parts, book))


def _book(parts: Parts, main: str) -> _Book:
    book = _Book()
    relations = parts.relations(main)
    targets = {relation.id: relation.target for relation in relations}
    for event in parts.events(main):
        if not isinstance(event, Start):
            continue
        if event.name == "workbookPr" and event.attributes.get("date1904") in ("1", "true"):
            book.epoch = _EPOCH_1904
        if event.name == "sheet" and (target := targets.get(event.attributes.get("r:id", ""))):
            book.sheets.append((event.attributes.get("name", ""), target))
    for relation in relations:
        if relation.kind == "sharedStrings" and parts.has(relation.target):
            book.shared = list(_shared(parts, relation.target))
        if relation.kind == "styles" and parts.has(relation.target):
            book.dates = _date_styles(parts, relation.target)
    return book


def _shared(parts: Parts, name: str) -> Iterator[str]:
    found: list[str] = []
    texts = phonetic = 0
    for event in parts.events(name):
        if isinstance(event, Text):
            if texts and not phonetic:
                found.append(event.text)
            continue
        step = 1 if isinstance(event, Start) else -1
        if event.name == "t":
            texts += step
        elif event.name == "rPh":
            # How it is spoken, written above the text itself.
            phonetic += step
        elif event.name == "si" and isinstance(event, End):
            yield "".join(found)
            found.clear()


def _date_styles(parts: Parts, name: str) -> set[int]:
    formats = set(_DATE_FORMATS)
    dates: set[int] = set()
    style, inside = 0, False
    for event in parts.events(name):
        if isinstance(event, End):
            inside = inside and event.name != "cellXfs"
        elif isinstance(event, Start):
            if event.name == "numFmt":
                shown = _QUOTED.sub("", event.attributes.get("formatCode", ""))
                if _DATE_LETTERS.search(shown) and "general" not in shown.lower():
                    formats.add(int(event.attributes.get("numFmtId", "-1")))
            elif event.name == "cellXfs":
                inside = True
            elif event.name == "xf" and inside:
                if int(event.attributes.get("numFmtId", "0")) in formats:
                    dates.add(style)
                style += 1
    return dates


def _pieces(parts: Parts, book: _Book) -> Iterator[Piece]:
    for name, target in book.sheets:
        if not parts.has(target):
            continue
        yield Piece(text=f"## Sheet: {name}")
        lines: list[str] = []
        for row in _rows(parts, target, book):
            if line := as_line(row):
                lines.append(line)
            if len(lines) == ROWS_A_PIECE:
                yield Piece(text="\n".join(lines), after="\n")
                lines.clear()
        yield Piece(text="\n".join(lines), after="\n")


@dataclass(slots=True)
class _Cell:
    kind: str = "n"
    style: int = 0
    value: list[str] = field(default_factory=list)
    formula: list[str] = field(default_factory=list)


def _rows(parts: Parts, target: str, book: _Book) -> Iterator[list[str]]:
    row: list[str] = []
    cell = _Cell()
    into: list[str] | None = None
    for event in parts.events(target):
        if isinstance(event, Text):
            if into is not None:
                into.append(event.text)
        elif isinstance(event, Start):
            if event.name == "c":
                cell = _Cell(kind=event.attributes.get("t", "n"), style=int(event.attributes.get("s", "0")))
                column = _column(event.attributes.get("r", ""), len(row))
                row += [""] * (column - len(row))
            elif event.name in ("v", "t"):
                into = cell.value
            elif event.name == "f":
                into = cell.formula
        else:
            if event.name in ("v", "t", "f"):
                into = None
            elif event.name == "c":
                row.append(_shown(cell, book))
            elif event.name == "row":
                yield row
                row = []


def _column(reference: str, following: int) -> int:
    """Counted from 0; a cell without a reference follows the one before."""
    number = 0
    for letter in reference:
        if not letter.isalpha():
            break
        number = number * 26 + ord(letter.upper()) - ord("A") + 1
    return max(following, min(number, _MAX_COLUMN) - 1)


def _shown(cell: _Cell, book: _Book) -> str:
    value = "".join(cell.value)
    if not value:
        # Nobody has calculated it yet.
        return "=" + "".join(cell.formula) if cell.formula else ""
    if cell.kind == "s":
        number = int(value)
        return book.shared[number] if 0 <= number < len(book.shared) else ""
    if cell.kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if cell.kind == "n":
        return _number(value, cell.style in book.dates, book.epoch)
    return value


def _number(value: str, is_date: bool, epoch: datetime.datetime) -> str:
    try:
        number = float(value)
        if not is_date:
            # As many digits as Excel keeps: the seventeenth is noise of the conversion.
            return value if value.lstrip("-").isdigit() else f"{number:.15g}"
        moment = epoch + datetime.timedelta(seconds=round(number * 86_400))
    except (ValueError, OverflowError):
        return value
    if 0 <= number < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat(" ")
