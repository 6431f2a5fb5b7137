"""Turning a page by the few degrees that it lay wrong on the glass."""

from __future__ import annotations

import itertools
from typing import Any

# As far as anybody lays a page; further is a photograph.
_MOST_DEGREES = 12.0
_SMALL = 700
# Below this recognition does not mind, and turning only blurs.
_TOLERATED = 0.4
# How much clearer the lines have to become, for it not to be chance.
_CLEARER = 1.05


def straightened(grey: Any) -> Any:
    """The page with its lines level, as far as it has lines."""
    from PIL import Image

    angle = _angle(grey)
    if abs(angle) < _TOLERATED:
        return grey
    return grey.rotate(angle, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)


def _angle(grey: Any) -> float:
    from PIL import Image, ImageOps

    small = ImageOps.invert(grey)
    small.thumbnail((_SMALL, _SMALL), Image.Resampling.BOX)

    def levelness(angle: float) -> float:
        """Lines that are level make rows of black beside rows of white."""
        turned = small.rotate(angle, resample=Image.Resampling.BILINEAR)
        rows = turned.convert("F").resize((1, turned.height), Image.Resampling.BOX).tobytes("raw", "F")
        values = memoryview(rows).cast("f")
        return sum((one - other) ** 2 for one, other in itertools.pairwise(values))

    best = 0.0
    at_rest = levelness(0.0)
    for step in (2.0, 0.5, 0.1):
        reach = _MOST_DEGREES if step == 2.0 else step * 4
        tries = [best + step * turn for turn in range(-round(reach / step), round(reach / step) + 1)]
        best = max(tries, key=levelness)
    return best if levelness(best) > _CLEARER * at_rest else 0.0
