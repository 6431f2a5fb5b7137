"""Text of HTML: headings, lists and tables as lines; scripts and styles left out. Nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from workbench_guest.extract.rows import as_line

_SKIPPED = {"script", "style", "template", "svg", "math", "object", "iframe"}
_BLOCKS = {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div",
           "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head",
           "header", "hr", "legend", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary", "title",
           "ul"}  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACES = re.compile(r"[ \t\r\n\f]+")
_EMPTY_LINES = re.compile(r"\n{3,}")
# Characters at a time.
_PIECE = 256 * 1024


def html_to_text(page: str) -> str:
    """What a reader would see, line by line."""
    return _EMPTY_LINES.sub("\n\n", "\n".join(html_pieces(page))).strip("\n")


def html_pieces(page: str) -> Iterator[str]:
    """The same, some lines at a time."""
    parser = _Page()
    for at in range(0, len(page), _PIECE):
        parser.feed(page[at : at + _PIECE])
        yield parser.taken()
    parser.close()
    yield parser.rest()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = []
        self._line: list[str] = []
        self._skipped = self._pre = 0
        # Of every open table, its open row; of every open cell, what was said before it began.
        self._rows: list[list[str]] = []
        self._held: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipped += 1
        elif tag == "br":
            self._break()
        elif tag == "table":
            self._break()
            self._rows.append([])
        elif tag == "tr":
            self._end_row()
        elif tag in ("td", "th"):
            self._end_cell()
            if self._rows:
                self._held.append([])
        elif tag == "img" and (said := dict(attrs).get("alt")):
            self._say(f" {said} ")
        elif tag in _BLOCKS:
            self._break()
            self._pre += tag == "pre"
            self._line += [mark] if (mark := "- " if tag == "li" else _HEADINGS.get(tag, "")) else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _SKIPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipped = max(0, self._skipped - 1)
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag == "tr":
            self._end_row()
        elif tag == "table" and self._rows:
            self._end_row()
            self._rows.pop()
        elif tag in _BLOCKS:
            self._break()
            if tag == "pre":
                self._pre = max(0, self._pre - 1)
            if tag in ("p", "table", "ul", "ol", "title", *_HEADINGS) and not self._held:
                self._lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._say(data)

    def taken(self) -> str:
        """The lines that are whole, once."""
        text = _EMPTY_LINES.sub("\n\n", "\n".join(self._lines))
        self._lines.clear()
        return text

    def rest(self) -> str:
        """The lines since, with those of what was never closed."""
        while self._rows:
            self._end_row()
            self._rows.pop()
        self._break()
        return self.taken()

    def _say(self, text: str) -> None:
        if self._held:
            self._held[-1].append(text)
        elif self._pre:
            *lines, last = text.split("\n")
            for line in lines:
                self._line.append(line)
                self._break()
            self._line.append(last)
        else:
            self._line.append(_SPACES.sub(" ", text))

    def _break(self) -> None:
        if self._held:
            self._held[-1].append(" ")
            return
        line = "".join(self._line)
        self._line.clear()
        if self._pre:
            self._lines.append(line.rstrip())
        elif line.strip():
            self._lines.append(_SPACES.sub(" ", line).strip())

    def _end_cell(self) -> None:
        # A cell belongs to the innermost table; those of outer ones stay open.
        if self._rows and len(self._held) >= len(self._rows):
            self._rows[-1].append("".join(self._held.pop()))

    def _end_row(self) -> None:
        if not self._rows:
            return
        self._end_cell()
        line = as_line(self._rows[-1])
        self._rows[-1].clear()
        if not line:
            return
        if self._held:
            self._held[-1].append(f" {line} ")
        else:
            self._lines.append(line)
