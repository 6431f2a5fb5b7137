"""Plans: which distributions, exactly, an install would bring; made by uv, and remembered for a while.

A remembered plan makes the next session's install a matter of links; a stale one is used when the index cannot be
reached.
"""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.model.packages import Pin

# Within a day an index seldom has anything new that is old enough to be taken.
_FRESH_S = 24 * 3600.0
_MOST_PLANS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One distribution of a plan."""

    pin: Pin
    hashes: tuple[str, ...]
    """`sha256:…` of every wheel that may be taken"""
    size: int = 0
    """of the wheel, in bytes; 0 if the index does not tell"""

    @property
    def key(self) -> str:
        """Its name in the store: what it is, and from which wheels it can be."""
        digest = hashlib.sha256("\n".join(self.hashes).encode()).hexdigest()[:12]
        return f"{self.pin.name}-{self.pin.version}-{digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is needed, also what the image has."""

    items: tuple[Item, ...]


def read_plan(text: str) -> Plan:
    """Of what `uv pip compile --format pylock.toml` prints, which is a lock file as PEP 751 has it.

    Raises:
        ValueError: it is not one.
    """
    items = []
    for package in tomllib.loads(text).get("packages", []):
        wheels = package.get("wheels", [])
        if not wheels:
            raise ValueError(f"{package['name']} has no wheel")
        items.append(
            Item(
                pin=Pin(name=package["name"], version=package["version"]),
                hashes=tuple(sorted(f"{kind}:{value}" for one in wheels for kind, value in one["hashes"].items())),
                size=max((int(one.get("size", 0)) for one in wheels), default=0),
            )
        )
    return Plan(items=tuple(items))


class PlanMemory:
    """On disk, a small file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str, *, stale: bool = False) -> Plan | None:
        """The plan, if it is fresh; an older one only for who takes a stale one."""
        place = self._folder / f"{key}.json"
        try:
            if not stale and time.time() - place.stat().st_mtime > _FRESH_S:
                return None
            kept = json.loads(place.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return Plan(items=tuple(_item(one) for one in kept))

    def keep(self, key: str, plan: Plan) -> None:
        """Until it is old, and beyond."""
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f".{key}.{time.monotonic_ns()}"
        partial.write_text(json.dumps([asdict(one) for one in plan.items]), encoding="utf-8")
        partial.rename(self._folder / f"{key}.json")
        self._make_room()

    def _make_room(self) -> None:
        """A guest can ask for one thing in many spellings."""
        kept = list(self._folder.glob("*.json"))
        if len(kept) > _MOST_PLANS:
            for place in sorted(kept, key=lambda one: one.stat().st_mtime)[: len(kept) // 4]:
                place.unlink(missing_ok=True)


def plan_key(requirements: Sequence[str], constraints: Mapping[str, str], *about: str) -> str:
    """The same for the same question."""
    asked = [sorted(requirements), sorted(constraints.items()), about]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def _item(kept: dict[str, object]) -> Item:
    pin, hashes, size = kept["pin"], kept["hashes"], kept["size"]
    assert isinstance(pin, dict)
    assert isinstance(hashes, list)
    assert isinstance(size, int)
    return Item(pin=Pin(**pin), hashes=tuple(hashes), size=size)
