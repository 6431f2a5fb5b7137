"""Names that were meant: the nearest of a list to one that is not on it."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
from collections.abc import Iterable

# Of 1. Below this, what is offered has as often nothing to do with what was meant.
_ALIKE = 0.8
# Letters by which a typing error makes a name longer or shorter.
_SLIP = 2


@functools.cache
def shipped(file: str) -> frozenset[str]:
    """The names of a list in `lists/`; lines with # are about the list."""
    text = importlib.resources.files("workbench.packages").joinpath("lists", file).read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def nearest(name: str, names: Iterable[str]) -> str:
    """That one is most like; empty if none is much like it. Dashes, dots and underscores count little."""
    plain = _plain(name)
    near = {one: _plain(one) for one in names if abs(len(one) - len(name)) <= _SLIP}
    same = sorted(one for one, bare in near.items() if bare == plain)
    if same:
        return same[0]
    by_plain = {bare: one for one, bare in sorted(near.items(), reverse=True)}
    found = difflib.get_close_matches(plain, sorted(by_plain), n=1, cutoff=_ALIKE)
    return by_plain[found[0]] if found else ""


def _plain(name: str) -> str:
    return name.lower().translate({ord(mark): None for mark in "-._"})
