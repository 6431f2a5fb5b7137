"""Characters that look like Python's and are not, outside of strings and comments."""

from __future__ import annotations

from workbench_guest.corrections.stepping import Declined, Note, Stepped

# By what closes each.
QUOTES = {
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u00ab": "\u00bb",
    "\u2018": "\u2019",
    "\u2019": "\u2019",
    "\u201a": "\u2018\u2019",
}
_SINGLE = "\u2018\u2019\u201a"
_SPACE = "\u00a0"
_WIDE_SPACES = "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_NO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_MINUS, _EN_DASH = "\u2212", "\u2013"
# Full-width punctuation; neither the quotes nor the sign that begins a comment.
_FULL_WIDTH = {chr(0xFEE0 + ord(one)): one for one in "!%&()*+,-./:;<=>@[]^{|}~"}
_QUOTE_ENTITIES = ("&quot;", "&#39;", "&#x27;", "&#34;")
_ODD = frozenset([*QUOTES, _SPACE, *_WIDE_SPACES, *_NO_WIDTH, _MINUS, _EN_DASH, *_FULL_WIDTH])


def with_pythons_characters(text: str) -> Stepped | None:
    """The same with Python's own.

    Raises:
        Declined: a quote has no other, or a character has two readings.
    """
    # Where a string begins is not known as long as its quotes are entities.
    if _ODD.isdisjoint(text) or any(one in text for one in _QUOTE_ENTITIES):
        return None
    pen = _Pen(text)
    pen.run()
    return Stepped("".join(pen.out), tuple(pen.notes)) if pen.notes else None


class _Pen:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self.out: list[str] = []
        self.notes: list[Note] = []

    def run(self) -> None:
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == "#":
                end = self._text.find("\n", self._at)
                self._copy(len(self._text) if end < 0 else end)
            elif letter in "\"'":
                self._copy(self._string_end(letter))
            elif letter in QUOTES:
                self._quoted(letter)
            elif letter in _ODD:
                self._put(letter, self._plain(letter))
            else:
                self._copy(self._at + 1)

    def _copy(self, end: int) -> None:
        part = self._text[self._at : end]
        self._line += part.count("\n")
        self.out.append(part)
        self._at = end

    def _put(self, written: str, used: str) -> None:
        name = written if written.isprintable() and not written.isspace() else f"U+{ord(written):04X}"
        self.notes.append(Note(self._line, name, repr(used) if used in ("", " ") else used))
        self.out.append(used)
        self._at += 1

    def _string_end(self, mark: str) -> int:
        is_long = self._text.startswith(mark * 3, self._at)
        closing = mark * 3 if is_long else mark
        place = self._at + len(closing)
        while place < len(self._text):
            if self._text[place] == "\\":
                place += 2
            elif self._text.startswith(closing, place):
                return place + len(closing)
            elif self._text[place] == "\n" and not is_long:
                break
            else:
                place += 1
        raise Declined

    def _quoted(self, opening: str) -> None:
        closers = QUOTES[opening]
        place = self._at + 1
        while place < len(self._text) and self._text[place] not in closers:
            if self._text[place] in ("\n", opening):
                raise Declined
            place += 2 if self._text[place] == "\\" else 1
        if place >= len(self._text):
            raise Declined
        inside = self._text[self._at + 1 : place]
        marks = "'\"" if opening in _SINGLE else "\"'"
        mark = next((one for one in marks if one not in inside), None)
        if mark is None or "\n" in inside:
            raise Declined
        closing = self._text[place]
        self.notes.append(Note(self._line, f"{opening}…{closing}", f"{mark}…{mark}"))
        self.out.append(f"{mark}{inside}{mark}")
        self._at = place + 1

    def _plain(self, letter: str) -> str:
        before, after = self._text[self._at - 1 : self._at], self._text[self._at + 1 : self._at + 2]
        if letter in _FULL_WIDTH:
            return _FULL_WIDTH[letter]
        if letter == _SPACE:
            return " "
        if letter in _WIDE_SPACES:
            # How wide it is meant to be is anybody's guess where width has a meaning.
            if not self._text[self._text.rfind("\n", 0, self._at) + 1 : self._at].strip():
                raise Declined
            return " "
        if letter in _NO_WIDTH:
            # One name, or two words?
            if _in_name(before) and _in_name(after):
                raise Declined
            return ""
        if letter == _EN_DASH and before.isdigit() and after.isdigit():
            # From one to the other, or one minus the other?
            raise Declined
        return "-"


def _in_name(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
