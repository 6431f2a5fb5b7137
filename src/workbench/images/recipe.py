"""A recipe: what an image is made from, read from a folder of `images/`."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.errors import NotFound
from workbench.model.image import WarmSet

PYTHON = "python"
"""the image that sandboxes run on"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatePart:
    """What is too large to be waited for: it arrives after the image, in a folder that images share."""

    requirement: str
    """name and version; its build depends on where it comes from, so that no hash of it can be told"""
    module: str
    """which importing proves that it is there"""
    lock: Path
    """what it needs besides, with hashes"""

    @property
    def digest(self) -> str:
        """Of these and the interpreter that they are built for."""
        return _digest(self.lock.read_bytes(), self.requirement.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A lock file, and what of it every sandbox finds already imported."""

    name: str
    lock: Path
    preload: tuple[str, ...]
    entry: str | None = None
    """what of the guest its sandboxes run first"""
    late: LatePart | None = None
    warm: tuple[WarmSet, ...] = ()
    generation: int = 0
    """how often the same was made anew"""

    @property
    def digest(self) -> str:
        """Of the lock, what is preloaded and late, and the interpreter that will run it."""
        parts = [self.lock.read_bytes(), "\n".join(self.preload).encode()]
        if self.late is not None:
            warm = ((one.name, *one.modules) for one in self.warm)
            parts.append("\n".join([self.late.digest, *(" ".join(words) for words in warm)]).encode())
        if self.generation:
            parts.append(str(self.generation).encode())
        return _digest(*parts)


def _digest(*parts: bytes) -> str:
    interpreter = f"{os.path.realpath(sys.executable)} {sys.version}"
    return hashlib.sha256(b"\0".join((*parts, interpreter.encode()))).hexdigest()[:12]


def recipes_folder() -> Path:
    """In an installed wheel beside this package, in a clone at its top."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_recipes", package.parent.parent / "images"):
        if folder.is_dir():
            return folder
    raise NotFound("the recipes of the images are missing from this installation; install it again")


def load_recipe(name: str) -> Recipe:
    """The recipe of that name, as it is shipped.

    Raises:
        NotFound: there is none.
    """
    folder = recipes_folder() / name
    try:
        described = json.loads((folder / "recipe.json").read_text())
    except FileNotFoundError:
        known = ", ".join(sorted(child.name for child in recipes_folder().iterdir() if child.is_dir()))
        raise NotFound(f"no recipe for image {name!r}; there are: {known}") from None
    late = described.get("late")
    return Recipe(
        name=name,
        lock=folder / "requirements.lock",
        preload=tuple(described["preload"]),
        entry=described.get("entry"),
        late=None if late is None else LatePart(**late, lock=folder / "late.lock"),
        warm=tuple(WarmSet(name=one["name"], modules=tuple(one["modules"])) for one in described.get("warm", ())),
    )


def derived(recipe: Recipe, lock: Path, generation: int) -> Recipe:
    """The same with another lock, or made once more."""
    return replace(recipe, lock=lock, generation=generation)
