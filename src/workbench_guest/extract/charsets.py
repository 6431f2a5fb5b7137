"""From bytes to text, without being told the encoding."""

from __future__ import annotations

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
          (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))  # fmt: skip
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.I)
_DECLARED_WITHIN = 2048
# Tab, newlines, form feed, backspace and escape occur in texts; the rest of the controls do not.
_CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS = 0.01


def encoding_of(head: bytes) -> str:
    """The encoding that fits; one always does, as the last resort takes every byte."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if wide := _wide(head):
        return wide
    if _is_utf8(head):
        return "utf-8"
    if (declared := _DECLARED.search(head[:_DECLARED_WITHIN])) and (known := _known(declared[1].decode("ascii"))):
        return known
    try:
        head.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def decoded(content: bytes) -> str:
    """The text, without a byte order mark, and with plain newlines."""
    name = encoding_of(content)
    text = content.decode(name, "replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decoded_head(head: bytes) -> str | None:
    """The beginning of a text, or None if it is not text."""
    text = decoded(head)
    if len(_CONTROLS.findall(text)) > _MOST_CONTROLS * len(text):
        return None
    return text


def _wide(head: bytes) -> str | None:
    """UTF-16 without a mark, by the zeros that most letters have in one half."""
    some = head[:4096]
    even, odd = some[0::2].count(0), some[1::2].count(0)
    half = len(some) // 2
    if half < 2:
        return None
    if odd > half * 0.4 and even < half * 0.05:
        return "utf-16-le"
    return "utf-16-be" if even > half * 0.4 and odd < half * 0.05 else None


def _is_utf8(head: bytes) -> bool:
    try:
        # Not final: the beginning of a file may end within a character.
        codecs.getincrementaldecoder("utf-8")().decode(head, final=False)
    except UnicodeDecodeError:
        return False
    return True


def _known(name: str) -> str | None:
    try:
        found = codecs.lookup(name)
    except LookupError:
        return None
    # Only encodings of text: base64 and its like are codecs as well.
    return found.name if getattr(found, "_is_text_encoding", True) else None
