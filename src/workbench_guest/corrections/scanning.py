"""A scan of Python text that need not compile: which characters are code, which are in strings, which in comments."""

from __future__ import annotations

from dataclasses import dataclass, field

CODE, STRING, COMMENT = "c", "s", "#"


@dataclass(slots=True)
class Scan:
    """Of one text."""

    kinds: str = ""
    """one letter for each character; the delimiters of a string belong to it"""
    whole: bool = True
    """all strings are closed"""
    inner_lines: set[int] = field(default_factory=set)
    """lines, from 0, that begin inside of a string"""
    joined_lines: set[int] = field(default_factory=set)
    """lines, from 0, that go on from the line before: in brackets, or after a backslash"""


def scan(text: str) -> Scan:
    """Never fails: a string that is not closed ends with its line, or with the text."""
    found = Scan()
    kinds: list[str] = []
    place, line, depth = 0, 0, 0
    while place < len(text):
        letter = text[place]
        if letter == "#":
            end = text.find("\n", place)
            end = len(text) if end < 0 else end
            kinds.append(COMMENT * (end - place))
            place = end
        elif letter in "\"'":
            end, closed = _string_end(text, place)
            found.whole = found.whole and closed
            inner = text.count("\n", place, end)
            found.inner_lines.update(range(line + 1, line + inner + 1))
            line += inner
            kinds.append(STRING * (end - place))
            place = end
        else:
            depth = max(0, depth + (letter in "([{") - (letter in ")]}"))
            if letter == "\n":
                line += 1
                if depth or text[max(0, place - 1) : place] == "\\":
                    found.joined_lines.add(line)
            kinds.append(CODE)
            place += 1
    found.kinds = "".join(kinds)
    return found


def _string_end(text: str, start: int) -> tuple[int, bool]:
    """Behind it, and whether it is closed."""
    mark = text[start]
    is_long = text[start : start + 3] == mark * 3
    closing = mark * 3 if is_long else mark
    place = start + len(closing)
    while place < len(text):
        # Also in a raw string: there it stays in the text, and keeps the quote from ending it all the same.
        if text[place] == "\\":
            place += 2
        elif text.startswith(closing, place):
            return place + len(closing), True
        elif text[place] == "\n" and not is_long:
            return place, False
        else:
            place += 1
    return len(text), False


def outside(text: str, kinds: str, what: str) -> bool:
    """Whether a character stands in code."""
    at = text.find(what)
    while at >= 0:
        if kinds[at] == CODE:
            return True
        at = text.find(what, at + 1)
    return False
