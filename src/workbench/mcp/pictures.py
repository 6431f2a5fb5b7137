"""Pictures that cells show: what they say they are is looked at, as their bytes come from whatever ran inside."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

_MAGIC: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
"""kinds that clients show, the best first, and how they begin"""
# Models take no larger ones, and clients fail over them.
_MOST_BYTES = 5_000_000
_WHAT_TO_DO = "make them smaller, or save them under /mnt/files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image that a cell showed."""

    mime_type: str
    data: str
    """base64"""
    problem: str = ""
    """why it is not shown, if it is not"""

    @property
    def bytes(self) -> int:
        """About."""
        return len(self.data) * 3 // 4


def is_picture(kind: str) -> bool:
    """Whether clients show such a one."""
    return kind in _MAGIC


def pictures_in(displays: tuple[dict[str, str], ...]) -> tuple[Picture, ...]:
    """The best picture of each display that has one; those that cannot be shown, with the reason."""
    found = []
    for data in displays:
        kinds = [_checked(kind, data[kind]) for kind in _MAGIC if kind in data]
        if kinds:
            found.append(next((one for one in kinds if not one.problem), kinds[0]))
    return tuple(found)


def _checked(kind: str, text: str) -> Picture:
    # BARRIER: what runs inside decides what is shown to a client as an image; held by tests/unit/mcp/test_answers.py.
    data = "".join(text.split())
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Picture(mime_type=kind, data=data, problem=f"what was displayed as {kind} is not base64")
    is_one = raw.startswith(_MAGIC[kind]) and (kind != "image/webp" or raw[8:12] == b"WEBP")
    if not is_one:
        return Picture(mime_type=kind, data=data, problem=f"what was displayed as {kind} is none")
    if len(raw) > _MOST_BYTES:
        words = f"a picture of {len(raw):,} bytes is left out: at most {_MOST_BYTES:,} are shown; {_WHAT_TO_DO}"
        return Picture(mime_type=kind, data=data, problem=words)
    return Picture(mime_type=kind, data=data)


def left_out_words(left_out: list[Picture]) -> str:
    """For pictures that there was no room for."""
    if not left_out:
        return ""
    total = sum(one.bytes for one in left_out)
    what = "1 picture is" if len(left_out) == 1 else f"{len(left_out)} pictures are"
    return f"{what} left out for their size ({total:,} bytes): {_WHAT_TO_DO}."
