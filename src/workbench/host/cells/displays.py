"""Which rich outputs a result carries: the first ones, as they look after all their updates, without what is too large.

Formats that are too large go into files of their own; displays for which there is no room at all go into one together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from workbench.model.execution import Display, Piece, PieceKind

# A result travels in one answer, and an agent looks at a handful of pictures.
MOST_DISPLAYS = 50
MOST_BYTES = 8 * 1024 * 1024
# A page or a chart above it has a library or raw data in it, and nobody reads that in an answer.
MOST_OF_A_FORMAT = 512 * 1024
# Models take no larger pictures than 5,000,000 bytes, which are so many characters of base64.
MOST_OF_A_PICTURE = 6_700_000
_PLAIN, _SVG = "text/plain", "image/svg+xml"
# Of displays that are left out and may be updated.
_MOST_IDS = 10_000
# Characters of a type or an id. Real ones have a few dozen; longer ones are made only to be long.
MOST_OF_A_NAME = 200
_ENDINGS = {
    _PLAIN: "txt",
    "text/html": "html",
    "text/markdown": "md",
    "text/latex": "tex",
    "text/csv": "csv",
    _SVG: "svg",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
    "application/json": "json",
    "application/javascript": "js",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """One that is in the result."""

    display: Display
    number: int
    """of the piece that it comes from"""
    large: Mapping[str, int]
    """formats that are not in it, and how long they are"""
    misnamed: int = 0
    """formats that are not in it, nor in files, as their types are too long"""

    @property
    def files(self) -> dict[str, str]:
        """By format: what the file is called that it goes into."""
        return {mime: f"display-{self.number}-{at}.{_ending(mime)}" for at, mime in enumerate(self.large)}

    @property
    def bytes(self) -> int:
        """About what it takes in an answer, which names the formats in files as well."""
        return size_of(self.display) + sum(map(_bytes_of, self.large))


class DisplayKeeper:
    """A pure function of the pieces: fed the same ones again, it keeps and leaves out the same ones."""

    def __init__(self, most: int = MOST_DISPLAYS, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._begin()

    def _begin(self) -> None:
        self._kept: list[Kept] = []
        self._left_out_ids: set[str] = set()
        self._number = 0
        self.bytes = 0
        self.left_out = 0

    @property
    def kept(self) -> tuple[Kept, ...]:
        """In the order they came."""
        return tuple(self._kept)

    @property
    def files(self) -> dict[int, dict[str, str]]:
        """By the number of a piece: which of its formats go into files, and how those are called."""
        return {one.number: one.files for one in self._kept if one.large}

    def clear(self) -> None:
        """What came so far is not shown any more, and pieces are counted from here."""
        self._begin()

    def add(self, piece: Piece) -> bool:
        """Whether all of it is in the result now, or in files of its own; what is not belongs into the common file."""
        if piece.display is None:
            return True
        self._number += 1
        if piece.kind is PieceKind.UPDATE:
            return self._update(piece.display)
        shown = without_text(piece.display) if piece.display.is_result else piece.display
        return self._append(shown) if shown.data else True

    def _append(self, shown: Display) -> bool:
        kept = _without_large(shown, self._number)
        if len(self._kept) < self._most and self._has_room(kept, 0):
            self._kept.append(kept)
            self.bytes += kept.bytes
            return True
        self.left_out += 1
        # BARRIER: the guest chooses the id, which may be nearly a whole message; held by
        # tests/unit/host/test_cell_output.py.
        if 0 < len(shown.display_id) <= MOST_OF_A_NAME and len(self._left_out_ids) < _MOST_IDS:
            self._left_out_ids.add(shown.display_id)
        return False

    def _update(self, update: Display) -> bool:
        """In all places that show this id. One that is in the file is updated there, by a later line; one of an earlier
        cell is told as an update.
        """
        if not update.display_id or update.display_id in self._left_out_ids:
            return False
        at = [number for number, one in enumerate(self._kept) if one.display.display_id == update.display_id]
        if not at:
            return self._append(replace(update, is_update=True))
        whole = True
        for number in at:
            before = self._kept[number]
            after = _without_large(replace(before.display, data=update.data, metadata=update.metadata), self._number)
            if not self._has_room(after, before.bytes):
                self.left_out += 1
                whole = False
                after = Kept(_too_large(before.display), self._number, {})
            self.bytes += after.bytes - before.bytes
            self._kept[number] = after
        return whole

    def _has_room(self, kept: Kept, freed: int) -> bool:
        return self.bytes - freed + kept.bytes <= self._most_bytes


def _without_large(display: Display, number: int) -> Kept:
    # BARRIER: the guest chooses the types, and a result holds each of them; held by tests/host/test_hostile_kernels.py.
    named = {mime: value for mime, value in display.data.items() if len(mime) <= MOST_OF_A_NAME}
    large = {mime: len(value) for mime, value in named.items() if len(value) > _most_of(mime)}
    small = {mime: value for mime, value in named.items() if mime not in large}
    return Kept(replace(display, data=small), number, large, len(display.data) - len(named))


def _too_large(display: Display) -> Display:
    return replace(display, data={_PLAIN: "[updated since; too large to be shown here]"}, metadata="{}")


def _most_of(mime: str) -> int:
    return MOST_OF_A_PICTURE if is_base64(mime) else MOST_OF_A_FORMAT


def is_base64(mime: str) -> bool:
    """As the Jupyter protocol has what is not text."""
    return mime != _SVG and (mime == "application/pdf" or mime.partition("/")[0] in ("image", "audio", "video"))


def _ending(mime: str) -> str:
    # BARRIER: the guest chooses the type, and gets no part of a file's name for it; held by
    # tests/unit/host/test_cell_output.py.
    return _ENDINGS.get(mime) or ("json" if mime.endswith("json") else "bin" if is_base64(mime) else "txt")


def size_of(display: Display) -> int:
    """About what it takes in an answer: pictures are base64, and other text is at most four bytes a character."""
    texts = (*display.data, *display.data.values(), display.metadata, display.display_id)
    return sum(map(_bytes_of, texts))


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def without_text(result: Display) -> Display:
    """The last value in its richer formats; its text is in `results` already."""
    return replace(result, data={mime: value for mime, value in result.data.items() if mime != _PLAIN})


def text_of(result: Display) -> str:
    """The text of the last value."""
    return result.data.get(_PLAIN, "")
