"""Models wrap what they were asked for in a fence, whatever they were told; code that reads it wants none."""

from __future__ import annotations

import re

_TICKS = "```"
_LANGUAGE = re.compile(r"[\w+.#-]*")
# Before a value or on a line of its own, as is left of a fence without its ticks.
_LEADING_WORD = re.compile(r"\Ajson(?:[ \t]*\r?\n|\s*(?=[\[{]))", re.IGNORECASE)


def unfenced(text: str) -> str:
    """Without white space around it, one ``` fence around all of it, and a leading word `json`."""
    text = text.strip()
    inside = text[len(_TICKS) : -len(_TICKS)]
    # With more of them inside, it is a document with code in it.
    if len(text) >= 2 * len(_TICKS) and text.startswith(_TICKS) and text.endswith(_TICKS) and _TICKS not in inside:
        first, newline, rest = inside.partition("\n")
        text = (rest if newline and _LANGUAGE.fullmatch(first.strip()) else inside).strip()
    return _LEADING_WORD.sub("", text)
