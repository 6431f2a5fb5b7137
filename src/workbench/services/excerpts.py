"""What is quoted of a service that refused: a bounded, printable part of its words, without our credential."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable
from typing import Any

from workbench.services.plain_text import plain_text

MOST_QUOTED = 300
"""characters of theirs in a message of ours"""
# Of a page of HTML that is all markup at its top.
_MOST_READ_BYTES = 64 * 1024
_HIDDEN = "[hidden]"
# A secret of three letters would turn every text to dots, and be no secret.
_SHORTEST_SECRET = 4
_WORDS = ("message", "detail", "error", "title", "info")


def excerpt(body: bytes, secrets: Iterable[str]) -> str:
    """The words of the answer, on one line; empty if it has none."""
    told = _told(body[:_MOST_READ_BYTES].decode("utf-8", "replace"))
    # BARRIER: services quote the key that they refuse. Made printable first: what is taken out in between could put a
    # key together that was not there to be found; held by tests/unit/services/test_excerpts.py.
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in told).split())
    line = without(line, secrets)
    return line if len(line) <= MOST_QUOTED else f"{line[: MOST_QUOTED - 1]}…"


def without(text: str, secrets: Iterable[str]) -> str:
    """The same, with each secret hidden, also as it would stand in a URL or in JSON."""
    for secret in secrets:
        if len(secret) < _SHORTEST_SECRET:
            continue
        for form in {secret, urllib.parse.quote(secret, safe=""), json.dumps(secret)[1:-1]}:
            text = re.sub(re.escape(form), _HIDDEN, text, flags=re.IGNORECASE)
    return text


def _told(text: str) -> str:
    try:
        return _words(json.loads(text)) or text
    except (ValueError, RecursionError):
        return plain_text(text) if text.lstrip().startswith("<") else text


def _words(value: Any) -> str:
    """Where services put them: a text, `message`, or a table below `error`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next((words for name in _WORDS if (words := _words(value.get(name)))), "")
    return ""
