"""Paragraphs and tables out of the XML of Word and PowerPoint, which name them alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from workbench_guest.extract.rows import as_line
from workbench_guest.extract.safe_xml import End, Event, Start, Text

# Older programs are offered the same text a second time.
_SKIPPED = {"Fallback", "instrText", "delText", "fldData"}
_LINE_BREAKS = {"br", "cr"}


@dataclass(slots=True)
class _Table:
    rows: list[list[str]] = field(default_factory=list)
    cell: list[str] | None = None
    """paragraphs of the cell that is open"""


class Flow:
    """Takes events, gives text: a paragraph a line, a row a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._tables: list[_Table] = []
        self._paragraphs: list[list[str]] = []
        """open ones: a text box lies within a paragraph"""
        self._runs = 0
        self._texts = 0
        self._skipped = 0
        self._starts: dict[str, Callable[[Start], None]] = {
            "p": lambda _: self._paragraphs.append([]),
            "pStyle": self._style,
            "numPr": lambda _: self._mark("- "),
            "tbl": lambda _: self._tables.append(_Table()),
            "tr": self._row,
            "tc": self._cell,
            "tab": lambda _: self._say("\t") if self._runs else None,
            "noBreakHyphen": lambda _: self._say("-"),
            "footnoteReference": lambda event: self._say(f"[{event.attributes.get('id', '')}]"),
            "endnoteReference": lambda event: self._say(f"[{event.attributes.get('id', '')}]"),
        }
        self._ends: dict[str, Callable[[], None]] = {
            "p": self._end_paragraph,
            "tc": self._end_cell,
            "tbl": self._end_table,
        }

    def take(self, incoming: Iterable[Event]) -> None:
        """All of a part."""
        for event in incoming:
            if isinstance(event, Text):
                if self._texts and not self._skipped:
                    self._say(event.text)
            elif isinstance(event, Start):
                self._start(event)
            else:
                self._end(event)

    def text(self) -> str:
        """What came together."""
        return "\n".join(self._lines).strip("\n")

    def _start(self, event: Start) -> None:
        if self._skipped or event.name in _SKIPPED:
            self._skipped += 1
        elif event.name == "t":
            self._texts += 1
        elif event.name == "r":
            self._runs += 1
        elif event.name in _LINE_BREAKS:
            self._say("\n")
        elif handle := self._starts.get(event.name):
            handle(event)

    def _end(self, event: End) -> None:
        if self._skipped:
            self._skipped -= 1
        elif event.name == "t":
            self._texts -= 1
        elif event.name == "r":
            self._runs -= 1
        elif handle := self._ends.get(event.name):
            handle()

    def _say(self, text: str) -> None:
        if self._paragraphs:
            self._paragraphs[-1].append(text)

    def _mark(self, mark: str) -> None:
        if self._paragraphs and not self._paragraphs[-1]:
            self._say(mark)

    def _style(self, event: Start) -> None:
        name = event.attributes.get("val", "").lower()
        if name == "title":
            self._mark("# ")
        elif name.startswith("heading") and name[7:].isdigit():
            self._mark("#" * min(int(name[7:]), 6) + " ")

    def _line(self, text: str) -> None:
        if self._tables and (cell := self._tables[-1].cell) is not None:
            cell.append(text)
        else:
            self._lines.append(text)

    def _end_paragraph(self) -> None:
        if self._paragraphs:
            self._line("".join(self._paragraphs.pop()))

    def _row(self, _: Start) -> None:
        if self._tables:
            self._tables[-1].rows.append([])

    def _cell(self, _: Start) -> None:
        if self._tables:
            self._tables[-1].cell = []

    def _end_cell(self) -> None:
        if self._tables and (cell := self._tables[-1].cell) is not None:
            if self._tables[-1].rows:
                self._tables[-1].rows[-1].append(" ".join(part for part in cell if part))
            self._tables[-1].cell = None

    def _end_table(self) -> None:
        if self._tables:
            for row in self._tables.pop().rows:
                self._line(as_line(row))
