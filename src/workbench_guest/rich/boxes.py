"""Box plots of matplotlib's, which are lines in a fixed order and know nothing of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# A box: its five corners, or as a patch those and how it closes.
_CORNERS = (5, 6)
_AFTER_A_BOX = 5
"""two whiskers, two caps, the median; as a patch the box is not among the lines"""
_Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Box:
    """One of them."""

    place: float
    numbers: tuple[float, float, float, float, float]
    """lower whisker, lower quartile, median, upper quartile, upper whisker"""
    is_vertical: bool


def boxes_in(lines: Sequence[Any], patches: Sequence[Any]) -> tuple[list[Box], set[int]]:
    """All there are, and by id what they are drawn with."""
    found: list[Box] = []
    used: set[int] = set()
    outlines = [patch for patch in patches if type(patch).__name__ == "PathPatch"]
    for at, line in enumerate(lines):
        if id(line) in used:
            continue
        own = [line] if len(_points(line)) in _CORNERS else outlines[:1]
        parts = list(lines[at + len(own) * (own[:1] == [line]) :][:_AFTER_A_BOX])
        if own and (box := _box(own[0], parts)) is not None:
            found.append(box)
            used.update(map(id, [*own, *parts]))
            outlines = outlines[own[0] is not line :]
    return found, used


def _box(outline: Any, parts: Sequence[Any]) -> Box | None:
    if len(parts) != _AFTER_A_BOX:
        return None
    corners, drawn = _points(outline), [_points(part) for part in parts]
    if len(corners) not in _CORNERS or any(len(points) != 2 for points in drawn):
        return None
    for is_vertical in (True, False):
        along, across = (1, 0) if is_vertical else (0, 1)
        low, high, low_cap, high_cap, median = drawn
        straight = all(points[0][across] == points[1][across] for points in (low, high))
        flat = all(points[0][along] == points[1][along] for points in (low_cap, high_cap, median))
        if straight and flat:
            ends = (low[1][along], low[0][along], median[0][along], high[0][along], high[1][along])
            return Box(place=low[0][across], numbers=ends, is_vertical=is_vertical)
    return None


def _points(artist: Any) -> _Points:
    data = artist.get_xydata() if hasattr(artist, "get_xydata") else artist.get_path().vertices
    return [(float(x), float(y)) for x, y in data[: _CORNERS[-1] + 2]]
