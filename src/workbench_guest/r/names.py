"""Which names a cell added, removed or bound to another object, by where the objects lie: nothing is kept or computed.

R copies what has two names before it changes it, so a changed copy is another object; what it changes in place is not.
"""

from __future__ import annotations

from typing import Any

# Told in one receipt; the rest is counted.
MOST_TOLD = 200


def changes(before: dict[str, int], after: dict[str, int]) -> dict[str, Any]:
    """As the metadata of a reply has it."""
    kinds = {
        "added": [name for name in after if name not in before],
        "removed": [name for name in before if name not in after],
        "rebound": [name for name in after if name in before and before[name] != after[name]],
    }
    told: dict[str, Any] = {}
    room = MOST_TOLD
    for kind, names in kinds.items():
        told[kind] = sorted(names)[:room]
        room -= len(told[kind])
    told["more"] = sum(map(len, kinds.values())) - (MOST_TOLD - room)
    return told
