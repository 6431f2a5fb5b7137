"""What is shown of a long text: its head and its tail, with a line between that says what is left out.

Fed piece by piece, so that nobody has to hold the whole.
"""

from __future__ import annotations

from collections import deque

# Of results, stdout and stderr each.
INLINE_CHARACTERS = 40_000


class Excerpt:
    """Head and tail of a text that comes in pieces; what is over `most` characters is counted and let go."""

    def __init__(self, most: int = INLINE_CHARACTERS) -> None:
        self._most = most
        self._head: list[str] = []
        self._head_room = most // 2
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._tail_room = most - most // 2
        self._newlines = 0
        self._ends_a_line = True
        self.characters = 0

    def add(self, text: str) -> None:
        """The next piece."""
        if not text:
            return
        self.characters += len(text)
        self._newlines += text.count("\n")
        self._ends_a_line = text.endswith("\n")
        if self._head_room:
            self._head.append(text[: self._head_room])
            text = text[self._head_room :]
            self._head_room -= len(self._head[-1])
        if text:
            self._add_to_tail(text[-self._tail_room :])

    def skip(self, characters: int, newlines: int) -> None:
        """Count what is left out at this place already, because somebody has shortened the text before."""
        self.characters += characters
        self._newlines += newlines

    def _add_to_tail(self, text: str) -> None:
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    @property
    def lines(self) -> int:
        """Of the whole; a last line without an end counts."""
        return self._newlines + (not self._ends_a_line)

    @property
    def is_cut(self) -> bool:
        """Whether there is more than is shown."""
        return self.characters > self._most

    def shown(self) -> str:
        """All of it; or its head and its tail, which with the line between them are never over the limit."""
        head, tail = "".join(self._head), "".join(self._tail)[-self._tail_room :]
        if not self.is_cut:
            return head + tail
        # The line takes its room from the head: the end of an output is where the error is.
        room = max(0, len(head) - len(_cut_line(self.characters, self._newlines)))
        head = head[:room]
        left_out = self.characters - len(head) - len(tail)
        return head + _cut_line(left_out, self._newlines - head.count("\n") - tail.count("\n")) + tail


def _cut_line(characters: int, lines: int) -> str:
    return f"\n[... {characters:,} characters with {lines:,} line ends are left out here ...]\n"


def excerpt(text: str, most: int = INLINE_CHARACTERS) -> str:
    """The same for a text that is here already."""
    whole = Excerpt(most)
    whole.add(text)
    return whole.shown()
