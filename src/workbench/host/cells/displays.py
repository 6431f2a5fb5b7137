"""Which rich outputs a result carries: the first ones, as they look after all their updates."""

from __future__ import annotations

from dataclasses import replace

from workbench.model.execution import Display, Piece, PieceKind

# A result travels in one answer, and an agent looks at a handful of pictures.
MOST_DISPLAYS = 50
MOST_BYTES = 8 * 1024 * 1024
_PLAIN = "text/plain"


class DisplayKeeper:
    """A pure function of the pieces: fed the same ones again, it keeps and leaves out the same ones."""

    def __init__(self, most: int = MOST_DISPLAYS, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: list[Display] = []
        self.bytes = 0
        self.left_out = 0

    @property
    def kept(self) -> tuple[Display, ...]:
        """In the order they came."""
        return tuple(self._kept)

    def add(self, piece: Piece) -> bool:
        """Whether all of it is in the result now; what is not belongs into the file."""
        if piece.display is None:
            return True
        if piece.kind is PieceKind.UPDATE:
            return self._update(piece.display)
        shown = without_text(piece.display) if piece.display.is_result else piece.display
        if not shown.data:
            return True
        if len(self._kept) < self._most and self._has_room(shown, 0):
            self._kept.append(shown)
            self.bytes += size_of(shown)
            return True
        self.left_out += 1
        return False

    def _update(self, update: Display) -> bool:
        """In all places that show this id. One that is in the file is updated there, by a later line."""
        at = [number for number, shown in enumerate(self._kept) if shown.display_id == update.display_id]
        if not at or not update.display_id:
            return False
        whole = True
        for number in at:
            before = self._kept[number]
            after = replace(before, data=update.data, metadata=update.metadata)
            if not self._has_room(after, size_of(before)):
                self.left_out += 1
                whole = False
                after = replace(before, data={_PLAIN: "[updated since; too large to be shown here]"}, metadata="{}")
            self.bytes += size_of(after) - size_of(before)
            self._kept[number] = after
        return whole

    def _has_room(self, display: Display, freed: int) -> bool:
        return self.bytes - freed + size_of(display) <= self._most_bytes


def size_of(display: Display) -> int:
    """About what it takes in an answer: pictures are base64, and other text is at most four bytes a character."""
    texts = (*display.data, *display.data.values(), display.metadata, display.display_id)
    return sum(len(text) if text.isascii() else len(text.encode(errors="replace")) for text in texts)


def without_text(result: Display) -> Display:
    """The last value in its richer formats; its text is in `results` already."""
    return replace(result, data={mime: value for mime, value in result.data.items() if mime != _PLAIN})


def text_of(result: Display) -> str:
    """The text of the last value."""
    return result.data.get(_PLAIN, "")
