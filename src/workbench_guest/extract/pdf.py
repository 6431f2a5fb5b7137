"""Text of PDF, page by page: by its text layer, or by recognition where it has none."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from workbench_guest.extract import limits
from workbench_guest.extract.values import Document, Piece, Source, Unreadable

# What is drawn for recognition: as fine as the scan is, within what recognition needs and can use.
_LEAST_DPI, _MOST_DPI = 200, 300
_POINTS = 72.0
# A page of pictures may carry a stamp or a page number as text.
_FEW_LETTERS = 20
_STAMP_LETTERS = 200
_COVERED = 0.5
# Fonts without a table of their letters give these: private ones, replacements, controls.
_MOST_UNKNOWN = 0.3
# Wider than any space between words of a justified line, in heights of a letter.
_CELL_GAP = 1.5


def read_pdf(source: Source, first: int) -> Document:
    """The pages from that one on.

    Raises:
        Unreadable: it is encrypted or broken.
    """
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(source.file)
        pages = len(pdf)
    except pypdfium2.PdfiumError as problem:
        if getattr(problem, "err_code", None) == pypdfium2.raw.FPDF_ERR_PASSWORD or "password" in str(problem).lower():
            raise Unreadable(
                f"{source.name} is encrypted: open it with its password, save it without one, and give that"
            ) from None
        raise Unreadable(f"{source.name} is a broken or cut off PDF ({problem}): get it again") from None
    if not pages:
        raise Unreadable(f"{source.name} has no pages: make it again")
    return Document(pages=pages, pieces=_pieces(pdf, source.name, first), resumable=True)


def _pieces(pdf: Any, name: str, first: int) -> Iterator[Piece]:
    for number in range(first, len(pdf)):
        yield _page(pdf, name, number)


def _page(pdf: Any, name: str, number: int) -> Piece:
    import pypdfium2

    try:
        page = pdf[number]
    except pypdfium2.PdfiumError as problem:
        return Piece(text="", warning=f"page {number + 1} of {name} is broken ({problem}): its text is missing")
    try:
        page = _with_what_was_filled_in(pdf, page, number)
        text = _layer(page)
        if not _needs_recognition(page, text):
            return Piece(text=text)
        recognised = _recognised(page, f"page {number + 1} of {name}")
        # The layer stays if there is nothing better: a page may have a title and a photograph.
        return recognised if len(recognised.text) > len(text) else Piece(text=text, warning=recognised.warning)
    finally:
        page.close()


def _with_what_was_filled_in(pdf: Any, page: Any, number: int) -> Any:
    """Fields and comments lie above the page; flattened, in memory only, they are part of its text and its picture."""
    from pypdfium2 import raw

    if not raw.FPDFPage_GetAnnotCount(page.raw):
        return page
    flat = raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY)
    if flat != raw.FLATTEN_SUCCESS:
        return page
    # The page has to be loaded again to show it.
    page.close()
    return pdf[number]


def _layer(page: Any) -> str:
    """The text layer in its own order; cells of a row, which stand far apart on one line, with ` | ` between."""
    from pypdfium2 import raw

    layer = page.get_textpage()
    try:
        count = raw.FPDFText_CountChars(layer.raw)
        letters = _Letters()
        box = raw.FS_RECTF()
        for index in range(count):
            code = raw.FPDFText_GetUnicode(layer.raw, index)
            generated = raw.FPDFText_IsGenerated(layer.raw, index) == 1
            if not generated and not raw.FPDFText_GetLooseCharBox(layer.raw, index, ctypes.byref(box)):
                continue
            letters.take(code, None if generated else (box.left, box.bottom, box.right, box.top))
        return letters.text()
    finally:
        layer.close()


_Box = tuple[float, float, float, float]


class _Letters:
    """Letters as they come, with their places; put together to lines."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._gap: list[str] = []
        """white space since the last letter"""
        self._last: _Box | None = None
        self._high = 0

    def take(self, code: int, box: _Box | None) -> None:
        if 0xD800 <= code <= 0xDBFF:
            self._high = code
            return
        if 0xDC00 <= code <= 0xDFFF and self._high:
            code = 0x10000 + ((self._high - 0xD800) << 10) + (code - 0xDC00)
        self._high = 0
        if code in (0, 0xFFFE, 0xFFFF) or 0xD800 <= code <= 0xDFFF:
            code = 0xFFFD
        # A hyphen that pdfium marks as the end of a broken word.
        letter = "-" if code == 2 else chr(code)
        if letter.isspace() or box is None:
            self._gap.append(letter)
            return
        self._out.append(self._between(box))
        self._out.append(letter)
        self._gap.clear()
        self._last = box

    def text(self) -> str:
        lines = "".join(self._out).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    def _between(self, box: _Box) -> str:
        gap = "".join(self._gap)
        if self._last is None:
            return ""
        _, bottom, right, top = self._last
        height = max(top - bottom, box[3] - box[1], 1.0)
        same_line = min(top, box[3]) - max(bottom, box[1]) > 0.5 * min(top - bottom, box[3] - box[1])
        if same_line and box[0] - right > _CELL_GAP * height:
            return " | "
        return gap


def _needs_recognition(page: Any, text: str) -> bool:
    letters = sum(not letter.isspace() for letter in text)
    unknown = sum(letter == "\ufffd" or "\ue000" <= letter <= "\uf8ff" or ord(letter) < 9 for letter in text)
    if letters and unknown > _MOST_UNKNOWN * letters:
        return True
    return letters < _STAMP_LETTERS and (letters < _FEW_LETTERS or _pictured(page) > _COVERED) and _drawn(page)


def _drawn(page: Any) -> bool:
    """Whether there is anything at all on the page."""
    return next(iter(page.get_objects(max_depth=1)), None) is not None


def _pictured(page: Any) -> float:
    """How much of the page is pictures, at most."""
    from pypdfium2 import raw

    width, height = page.get_size()
    area = 0.0
    for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = item.get_bounds()
        area += max(0.0, right - left) * max(0.0, top - bottom)
    return float(area / max(1.0, width * height))


def _resolution(page: Any) -> float:
    """Of the finest picture on the page; of letters that are drawn as curves there is none."""
    from pypdfium2 import raw

    finest = 0.0
    for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, _, right, _ = item.get_bounds()
        width, height = item.get_px_size()
        # A picture may lie on its side: the shorter way is never finer than it is.
        finest = max(finest, min(width, height) / max(1.0, right - left) * _POINTS)
    return min(max(finest, _LEAST_DPI), _MOST_DPI) if finest else _MOST_DPI


def _recognised(page: Any, name: str) -> Piece:
    from workbench_guest.extract.ocr import recognise

    width, height = page.get_size()
    scale = min(_resolution(page) / _POINTS, (limits.MAX_OCR_PIXELS / max(1.0, width * height)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        picture = bitmap.to_pil().copy()
    finally:
        bitmap.close()
    return recognise(picture, name)
