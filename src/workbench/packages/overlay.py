"""The Python part of an overlay: a flat folder of hard links to the store, grown one distribution at a time.

Readers are live: nothing half-linked is ever found under its name, and what is there is never changed or taken away.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from workbench.model.packages import Pin
from workbench.packages.store import Entry

_STAGING = ".staging"


class Overlay:
    """Of one mount; who adds to it has made sure that nobody else does."""

    def __init__(self, folder: Path, site: str) -> None:
        self.folder = folder
        self.site = folder / site
        """what is on the path of every Python of the session"""
        self._state = folder / f"{site}.json"

    def pins(self) -> dict[str, str]:
        """Versions of what is in it, by name."""
        return {name: version for name, (version, _) in self._kept().items()}

    def weight(self) -> int:
        """Bytes of what is in it."""
        return sum(size for _, size in self._kept().values())

    def add(self, pins: Mapping[Pin, Entry]) -> None:
        """Link these entries of the store into it; each is whole before the next begins.

        Raises:
            OSError: it cannot be done, say because the session is being deleted.
        """
        # Made by the host with the sandbox, and removed with the session: not brought back by who comes late.
        self.site.mkdir(exist_ok=True)
        # Sandboxes have uids of their own.
        self.site.chmod(0o755)
        kept = self._kept()
        for pin, entry in pins.items():
            staging = self.folder / _STAGING
            shutil.rmtree(staging, ignore_errors=True)
            try:
                # BARRIER: links to files of the store, which every session with this package shares: nobody inside may
                # write them; held by tests/packages/test_python_overlay.py.
                shutil.copytree(entry.files, staging, copy_function=os.link, symlinks=True)
                _merge(staging, self.site)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
            kept[pin.name] = (pin.version, entry.size)
            self._keep(kept)

    def _kept(self) -> dict[str, tuple[str, int]]:
        try:
            told = json.loads(self._state.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return {name: (version, size) for name, (version, size) in told.items()}

    def _keep(self, kept: Mapping[str, tuple[str, int]]) -> None:
        partial = self._state.with_name(f".{self._state.name}")
        partial.write_text(json.dumps(kept, sort_keys=True), encoding="utf-8")
        partial.chmod(0o644)
        partial.rename(self._state)


def _merge(source: Path, target: Path) -> None:
    """By renames: a package appears whole. Folders that several distributions share are gone through."""
    # What tells that a distribution is there comes last.
    for child in sorted(source.iterdir(), key=lambda one: (one.name.endswith(".dist-info"), one.name)):
        place = target / child.name
        if not os.path.lexists(place):
            child.rename(place)
        elif child.is_dir() and place.is_dir():
            _merge(child, place)
