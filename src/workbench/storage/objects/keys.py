"""Names of files as names of objects: readable, reversible, and of characters that every store takes."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Bytes that stores change, refuse or cannot list: controls, the backslash, what is no text, and the two characters that
# XML does not have (U+FFFE and U+FFFF). `%` begins these.
_UNSAFE = re.compile(rb"[\x00-\x1f\x7f\\%]|\xef\xbf[\xbe\xbf]")
_ENCODED = re.compile(rb"%([0-9A-F]{2})")


def name_of(path: bytes) -> str:
    """Of the file at that path, behind the prefix of its mount."""
    safe = _UNSAFE.sub(lambda found: b"".join(b"%%%02X" % one for one in found[0]), path)
    text = safe.decode("utf-8", "surrogateescape")
    # A byte that is no text comes as half a character, whose number tells which byte it was.
    return "".join(f"%{ord(one) - 0xDC00:02X}" if 0xDC80 <= ord(one) <= 0xDCFF else one for one in text)


def path_of(name: str) -> bytes:
    """Of the file that the object is."""
    return _ENCODED.sub(lambda found: bytes([int(found[1], 16)]), name.encode())


def folders_of(path: bytes) -> Iterator[bytes]:
    """All that a file is in, the innermost first."""
    at = path.rfind(b"/")
    while at > 0:
        yield path[:at]
        at = path.rfind(b"/", 0, at)
