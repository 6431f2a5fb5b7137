"""Which code is served sooner by an interpreter that has imported something large already. A guess by its text; where
it is wrong, an import takes as long as it takes anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Names of warm sets, which are those of the modules: what takes seconds to import, and not everybody needs.
WARM_SETS = ("torch",)
_NAMES = "|".join(WARM_SETS)
# One statement: `import a, torch as t` or `from torch.nn import …`.
_IMPORT = re.compile(
    r"[ \t]*(?:import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*|from[ \t]+)({names})\b".replace(
        "{names}", _NAMES
    )
)
# More is not looked at: it would take longer than it is worth.
_MOST_LOOKED_AT = 200_000


def warm_for_code(*codes: str) -> str:
    """The warm set that the first of these with such an import, at any depth, needs; empty for none."""
    for code in codes:
        for line in code[:_MOST_LOOKED_AT].splitlines():
            # Most lines end here. A text with such a line in it is taken for code: then one is warm in vain.
            if any(name in line for name in WARM_SETS):
                for statement in line.split(";"):
                    if (found := _IMPORT.match(statement)) is not None:
                        return found[1]
    return ""


def warm_for_packages(requirements: Iterable[str]) -> str:
    """The same for a session that is made with packages, by their names with or without versions."""
    for one in requirements:
        name = re.split(r"[^A-Za-z0-9._-]", one.strip(), maxsplit=1)[0].lower()
        if name in WARM_SETS:
            return name
    return ""
