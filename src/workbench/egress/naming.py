"""What a fetched file might be called: one name in a folder, whatever its server says."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote, unquote_to_bytes

import httpx2

_NAMELESS = "download"
_MOST_BYTES = 255
# Longer ones are nobody's names, and are not searched through.
_MOST_HEADER = 4096
_EXTENDED = re.compile(r"(?:^|;)\s*filename\*\s*=\s*(utf-8|iso-8859-1)'[^';]*'([^;\s\"]+)", re.IGNORECASE)
_QUOTED = re.compile(r'(?:^|;)\s*filename\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_PLAIN = re.compile(r'(?:^|;)\s*filename\s*=\s*([^;"\s]+)', re.IGNORECASE)
# They turn around what is shown behind them, so that `exe.txt` is shown for `txt.exe`.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def suggested_name(disposition: bytes, *urls: httpx2.URL) -> str:
    """By the header Content-Disposition, or else by the path of the first URL that ends with a name."""
    told = _told(_text(disposition)) if len(disposition) <= _MOST_HEADER else ""
    paths = (unquote(url.raw_path.decode("ascii").partition("?")[0].rpartition("/")[2]) for url in urls)
    return next((name for one in (told, *paths) if (name := _one_name(one))), _NAMELESS)


def _told(header: str) -> str:
    if found := _EXTENDED.search(header):
        return unquote_to_bytes(found[2]).decode(found[1], "replace")
    if found := _QUOTED.search(header):
        return re.sub(r"\\(.)", r"\1", found[1])
    found = _PLAIN.search(header)
    return found[1] if found else ""


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _one_name(text: str) -> str:
    """Without folders, and without what cannot be seen; empty if nothing is left."""
    # BARRIER: the name becomes a path in the mount; held by tests/unit/egress/test_naming.py.
    last = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
    name = "".join(one for one in last if not _unseen(one)).strip()
    if name in ("", ".", ".."):
        return ""
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > 20:
        stem, dot, ending = name, "", ""
    room = _MOST_BYTES - len((dot + ending).encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + dot + ending


def _unseen(character: str) -> bool:
    return character in _TURNING or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
