"""Wheels without contents, for builds that only the image has and no index, such as `torch==2.13.0+cpu`.

With them a plan can name what is there, with what that needs, and is not made around another build of it. They are
never installed: what the image has is no part of what is missing.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

_KIND = "Wheel-Version: 1.0\nGenerator: workbench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# The same bytes for the same build.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def stand_in_for_local_builds(site: Iterable[Path], kept: Path) -> Path | None:
    """A folder with one for each distribution in `site` whose version has a local label; None if there are none."""
    found = importlib.metadata.distributions(path=[str(one) for one in site])
    described = {f"{one.name} {one.version}": one for one in found if "+" in one.version}
    texts = {name: (one.read_text("METADATA") or "").partition("\n\n")[0] for name, one in sorted(described.items())}
    if not texts:
        return None
    folder = kept / hashlib.sha256("\n".join([*texts, *texts.values()]).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in described.items():
        stem = f"{re.sub(r'[-_.]+', '_', one.name).lower()}-{one.version}"
        place = folder / f"{stem}-py3-none-any.whl"
        if not place.exists():
            _write(place, f"{stem}.dist-info", texts[name])
    return folder


def _write(place: Path, folder: str, description: str) -> None:
    partial = place.with_name(f".{place.name}")
    with zipfile.ZipFile(partial, "w") as wheel:
        for name, text in (("METADATA", f"{description}\n"), ("WHEEL", _KIND), ("RECORD", "")):
            wheel.writestr(zipfile.ZipInfo(f"{folder}/{name}", _LONG_AGO), text)
    partial.rename(place)
