"""A recipe: what an image is made from, read from a folder of `images/`."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A lock file, and what of it every sandbox finds already imported."""

    name: str
    lock: Path
    preload: tuple[str, ...]
    entry: str | None = None
    """what of the guest its sandboxes run first"""

    @property
    def digest(self) -> str:
        """Of the lock, the preload list and the interpreter that will run it."""
        interpreter = f"{os.path.realpath(sys.executable)} {sys.version}"
        parts = (self.lock.read_bytes(), "\n".join(self.preload).encode(), interpreter.encode())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def recipes_folder() -> Path:
    """In an installed wheel beside this package, in a clone at its top."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_recipes", package.parent.parent / "images"):
        if folder.is_dir():
            return folder
    raise NotFound("the recipes of the images are missing from this installation; install it again")


def load_recipe(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        NotFound: there is none.
    """
    folder = recipes_folder() / name
    try:
        described = json.loads((folder / "recipe.json").read_text())
    except FileNotFoundError:
        known = ", ".join(sorted(child.name for child in recipes_folder().iterdir() if child.is_dir()))
        raise NotFound(f"no recipe for image {name!r}; there are: {known}") from None
    return Recipe(
        name=name,
        lock=folder / "requirements.lock",
        preload=tuple(described["preload"]),
        entry=described.get("entry"),
    )
