"""Text of pictures: every frame of a TIFF, the first of what moves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from workbench_guest.extract import limits
from workbench_guest.extract.ocr import recognise
from workbench_guest.extract.values import Document, Piece, Source, Unreadable

_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF", "MPO")
# Screenshots and photographs of a page: letters of ten pixels are too small to be told apart.
_SMALL_PIXELS = 2_500_000
_ENLARGED = 2


def read_picture(source: Source, first: int) -> Document:
    """The frames from that one on.

    Raises:
        Unreadable: it is broken, or too large.
    """
    from PIL import Image, UnidentifiedImageError

    # Checked by us, with a message that says what to do.
    Image.MAX_IMAGE_PIXELS = None
    try:
        picture = Image.open(source.file, formats=_FORMATS)
        frames = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as problem:
        raise Unreadable(f"{source.name} is a broken or unknown picture ({problem}): get it again") from None
    return Document(pages=frames, pieces=_pieces(picture, source.name, first, frames), resumable=True)


def _pieces(picture: Any, name: str, first: int, frames: int) -> Iterator[Piece]:
    for number in range(first, frames):
        of = f"frame {number + 1} of {name}" if frames > 1 else name
        try:
            if frames > 1:
                picture.seek(number)
            grey = _grey(picture, of)
        except (OSError, SyntaxError, ValueError, EOFError) as problem:
            yield Piece(text="", warning=f"{of} is broken or cut off ({problem}): get it again")
            continue
        yield recognise(grey, of)


def _grey(picture: Any, name: str) -> Any:
    from PIL import Image, ImageOps

    width, height = picture.size
    if width * height > limits.MAX_PIXELS:
        raise Unreadable(
            f"{name} is too large: {width} x {height} pixels, at most {limits.MAX_PIXELS // 1_000_000} million are "
            "read; make it smaller"
        )
    # A JPEG can be decoded at half the size, without ever being whole in memory.
    picture.draft("L", (int(width * _shrunk(width, height)), int(height * _shrunk(width, height))))
    if "A" in picture.getbands() or "transparency" in picture.info:
        clear = picture.convert("RGBA")
        white = Image.new("RGBA", clear.size, "white")
        white.alpha_composite(clear)
        grey = white.convert("L")
    elif picture.mode.startswith("I"):
        # Sixteen bits a pixel, of which eight are enough.
        grey = picture.convert("F").point(lambda value: value / 256).convert("L")
    else:
        grey = picture.convert("L")
    grey = ImageOps.exif_transpose(grey)
    width, height = grey.size
    if (scale := _shrunk(width, height)) < 1:
        return grey.resize((int(width * scale), int(height * scale)), Image.Resampling.LANCZOS)
    if width * height < _SMALL_PIXELS:
        return grey.resize((width * _ENLARGED, height * _ENLARGED), Image.Resampling.LANCZOS)
    return grey


def _shrunk(width: int, height: int) -> float:
    return min(1.0, math.sqrt(limits.MAX_OCR_PIXELS / max(1, width * height)))
