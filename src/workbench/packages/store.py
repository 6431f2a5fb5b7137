"""The store: every distribution that was ever fetched, unpacked once; overlays are links to it.

Only the server reaches it. An entry is complete or not there at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

_ABOUT = "about.json"
_FILES = "files"
# Enough for a few hundred packages; the least used go first, and overlays that have them keep them.
MOST_BYTES = 20 * 1024**3
_UNFINISHED = ".partial-"
# Longer than any install takes.
_LEFT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One distribution, unpacked."""

    files: Path
    size: int
    """in bytes"""


class Store:
    """A folder of entries."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._making_room = threading.Lock()

    def find(self, key: str) -> Entry | None:
        """The entry, noted as used."""
        place = self._folder / key
        try:
            about = json.loads((place / _ABOUT).read_text(encoding="utf-8"))
            os.utime(place)
        except (FileNotFoundError, ValueError):
            return None
        if not (place / _FILES).is_dir():
            return None
        return Entry(files=place / _FILES, size=about["size"])

    def begin(self) -> Path:
        """A folder to unpack into; `keep` or `drop` ends it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        place = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
        (place / _FILES).mkdir()
        return place / _FILES

    def keep(self, key: str, unpacked: Path) -> Entry:
        """Make an entry of what was unpacked; one that somebody else made meanwhile counts."""
        size = size_of(unpacked)
        _open_to_everyone(unpacked)
        (unpacked.parent / _ABOUT).write_text(json.dumps({"size": size}), encoding="utf-8")
        try:
            unpacked.parent.rename(self._folder / key)
        except OSError:
            self.drop(unpacked)
        self._make_room(key)
        entry = self.find(key)
        assert entry is not None
        return entry

    def drop(self, unpacked: Path) -> None:
        """Forget what was begun. May be called twice."""
        shutil.rmtree(unpacked.parent, ignore_errors=True)

    def _make_room(self, but: str) -> None:
        with self._making_room:
            found = [
                (used, size, one) for one in self._folder.iterdir() if (seen := _seen(one)) for used, size in [seen]
            ]
            total = sum(size for _, size, _ in found)
            for _, size, place in sorted(found):
                if total <= self._most_bytes:
                    return
                if place.name != but:
                    total -= size
                    self._remove(place)

    def _remove(self, place: Path) -> None:
        """By a rename first: nobody finds half of an entry."""
        with contextlib.suppress(OSError):
            gone = self._folder / f"{_UNFINISHED}{uuid.uuid4().hex}"
            place.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _sweep(self) -> None:
        """What a server that was killed left unfinished."""
        for place in self._folder.glob(f"{_UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if time.time() - place.stat().st_mtime > _LEFT_S:
                    shutil.rmtree(place, ignore_errors=True)


def _seen(place: Path) -> tuple[float, int] | None:
    """When an entry was last used, and its size; None for what is none, or is just going."""
    try:
        return place.stat().st_mtime, json.loads((place / _ABOUT).read_text(encoding="utf-8"))["size"]
    except (OSError, ValueError):
        return None


def size_of(folder: Path) -> int:
    """In bytes, of all that is in it."""
    return sum(os.lstat(os.path.join(parent, name)).st_size for parent, _, names in os.walk(folder) for name in names)


def _open_to_everyone(folder: Path) -> None:
    """Sandboxes have uids of their own: a strict umask of the server's must not lock them out."""
    for parent, folders, names in os.walk(folder):
        for name in (".", *folders, *names):
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                mode = os.stat(path).st_mode
                wanted = mode | 0o444 | (0o111 if mode & 0o100 else 0)
                if wanted != mode:
                    os.chmod(path, wanted)
