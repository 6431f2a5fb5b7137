"""What an operator has added to an image: a recipe derived from the shipped one, with a lock of its own.

    <data>/image/<name>/additions.json    what was added, to which shipped lock, and how often it was made anew
    <data>/image/<name>/requirements.lock the shipped lock, and what was added with all that it needs, by hashes
    <data>/image/<name>/in-use            the image that was chosen by `use`; without it, that of the recipe

Only whole files are ever seen, and none changes before its image is built: what fails changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from workbench.errors import InvalidRequest, NotFound, SandboxUnavailable
from workbench.images.build import build_image, find_image, image_folder, read_image
from workbench.images.installing import pip, run
from workbench.images.recipe import PYTHON, Recipe, derived, load_recipe
from workbench.model.image import Image

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)(?:\[[A-Za-z0-9._,-]{1,100}\])?"
    r"(?:==(?P<version>[0-9A-Za-z.!+_-]{1,60}))?"
)
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")
_RESOLVE_TIMEOUT_S = 600
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What was added, as it was asked for."""

    requirements: tuple[str, ...] = ()
    shipped: str = ""
    """of the lock that they were resolved beside"""
    generation: int = 0


class ChosenImage:
    """The image of one data folder: as it is shipped, or with additions, or an earlier one."""

    def __init__(self, data_dir: Path, images_dir: Path, name: str = PYTHON) -> None:
        self._folder = data_dir / "image" / name
        self._images_dir = images_dir
        self._name = name

    @property
    def additions(self) -> Additions:
        """As they are written down."""
        try:
            fields = json.loads((self._folder / "additions.json").read_text())
        except FileNotFoundError:
            return Additions()
        return Additions(
            requirements=tuple(fields["requirements"]), shipped=fields["shipped"], generation=fields["generation"]
        )

    @property
    def recipe(self) -> Recipe:
        """What an image is built from now, whichever one is in use.

        Raises:
            NotFound: there is none of that name.
        """
        return self._recipe_of(self.additions, self._folder / "requirements.lock")

    def _recipe_of(self, additions: Additions, lock: Path) -> Recipe:
        shipped = load_recipe(self._name)
        return derived(shipped, lock if additions.requirements else shipped.lock, additions.generation)

    @property
    def chosen(self) -> str:
        """The digest that was chosen by `use`; empty if none was."""
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "in-use").read_text().strip()
        return ""

    def find(self) -> Image:
        """The image in use.

        Raises:
            NotFound: it is not built.
        """
        if not (chosen := self.chosen):
            return find_image(self._images_dir, self.recipe)
        try:
            return read_image(self._images_dir / f"{self._name}-{chosen}")
        except FileNotFoundError:
            raise NotFound(
                f"image {self._name} {chosen}, chosen by `workbench image use`, is not there any more: choose another "
                f"of `workbench image list`, or `workbench image use {self._name}`"
            ) from None

    def build(self, tell: Tell) -> Image:
        """Have the recipe's image built. With additions beside another shipped lock, they are resolved anew.

        Raises:
            SandboxUnavailable: it cannot be.
        """
        additions = self.additions
        if additions.requirements and additions.shipped != self._shipped_digest():
            tell("the shipped image has changed: what was added is looked up beside it")
            return self._change(additions, tell)
        return build_image(self._images_dir, self.recipe, tell)

    def add(self, requirements: tuple[str, ...], tell: Tell) -> Image:
        """Build it with these as well, and use it.

        Raises:
            InvalidRequest: one is no name of a package, or is in the shipped image.
            SandboxUnavailable: they cannot be had beside what the image has; it stays as it is.
        """
        additions = self.additions
        kept = {_named(one): one for one in additions.requirements}
        for one in requirements:
            kept[self._checked(one)] = one
        return self._change(replace(additions, requirements=tuple(kept.values())), tell)

    def remove(self, names: tuple[str, ...], tell: Tell) -> Image:
        """Build it without these, and use it.

        Raises:
            NotFound: one was never added.
        """
        additions = self.additions
        kept = {_named(one): one for one in additions.requirements}
        for one in names:
            if kept.pop(_named(one), None) is None:
                added = ", ".join(sorted(kept)) or "nothing"
                why = (
                    "is shipped with the image and stays" if _named(one) in self._shipped_pins() else "was never added"
                )
                raise NotFound(f"{one} {why}; what can be removed: {added}")
        return self._change(replace(additions, requirements=tuple(kept.values())), tell)

    def rebuild(self, tell: Tell) -> Image:
        """Make it anew, with what was added in its newest versions, and use it. The one before stays to go back to.

        Raises:
            SandboxUnavailable: it cannot be; the image stays as it is.
        """
        additions = self.additions
        return self._change(replace(additions, generation=additions.generation + 1), tell)

    def use(self, which: str) -> Image:
        """From now on that of the recipe, by the name of the image; or one that was built before, by its digest.

        Raises:
            NotFound: it is not built.
        """
        name, _, digest = which.rpartition("-")
        if which == self._name:
            image = find_image(self._images_dir, self.recipe)
            (self._folder / "in-use").unlink(missing_ok=True)
            return image
        found = [one for one in self.built() if name in ("", self._name) and one.digest.startswith(digest)]
        if len(found) != 1 or not digest:
            known = ", ".join(one.digest for one in self.built()) or "none"
            what = "several images are" if len(found) > 1 else "no built image is"
            raise NotFound(f"{what} called {which!r}; there are: {self._name} (what the recipe says), {known}")
        self._write("in-use", found[0].digest)
        return found[0]

    def built(self) -> list[Image]:
        """All of this name that are complete, the newest first; of every data folder that shares the images."""
        found: list[tuple[float, Image]] = []
        for folder in self._images_dir.glob(f"{self._name}-*"):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found.append(((folder / "image.json").stat().st_mtime, read_image(folder)))
        return [image for _, image in sorted(found, key=lambda one: -one[0])]

    def _change(self, additions: Additions, tell: Tell) -> Image:
        """First the image, then what says so."""
        additions = replace(additions, shipped=self._shipped_digest())
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self._folder / "requirements.lock"
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self._folder) as passing:
            fresh = Path(passing) / "requirements.lock"
            if additions.requirements:
                self._resolve(additions, fresh, tell)
            recipe = self._recipe_of(additions, fresh)
            image = build_image(self._images_dir, recipe, tell)
            if additions.requirements:
                fresh.rename(lock)
        self._write("additions.json", json.dumps(asdict(additions), indent=2))
        (self._folder / "in-use").unlink(missing_ok=True)
        return image

    def _resolve(self, additions: Additions, into: Path, tell: Tell) -> None:
        """The shipped lock stays to the letter; what comes besides is pinned by what was found now."""
        shipped = load_recipe(self._name)
        base = build_image(self._images_dir, shipped, tell)
        tell(f"looking up {', '.join(additions.requirements)}, beside what the image has")
        pins = self._shipped_pins()
        constraints = into.with_name("constraints.txt")
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        report = into.with_name("report.json")
        words = ("--quiet", "--dry-run", "--ignore-installed", "--report", str(report), "-c", str(constraints))
        try:
            run(pip(base.python, "install", *words, *additions.requirements), timeout_s=_RESOLVE_TIMEOUT_S)
        except SandboxUnavailable as problem:
            raise SandboxUnavailable(
                f"{', '.join(additions.requirements)} cannot be had as wheels beside what the image has; the image "
                f"stays as it is. Choose other names or versions:\n{problem.message}"
            ) from problem
        lines = [shipped.lock.read_text().rstrip("\n"), "# Added by `workbench image add`."]
        for found in json.loads(report.read_text())["install"]:
            name, version = found["metadata"]["name"], found["metadata"]["version"]
            if canonical(name) not in pins:
                digest = found["download_info"]["archive_info"]["hashes"]["sha256"]
                lines.append(f"{canonical(name)}=={version} --hash=sha256:{digest}")
        into.write_text("\n".join(lines) + "\n")

    def _checked(self, requirement: str) -> str:
        name = _named(requirement)
        late = load_recipe(self._name).late
        if late is not None and name == canonical(late.requirement.partition("==")[0]):
            raise InvalidRequest(f"{late.requirement} is part of the image: `workbench image build --late` brings it")
        if (pinned := self._shipped_pins().get(name)) is not None:
            raise InvalidRequest(f"{name} {pinned} is in the image as it is shipped; add something that is not")
        return name

    def _shipped_pins(self) -> dict[str, str]:
        """Name and version, of what this interpreter would install."""
        base = image_folder(self._images_dir, load_recipe(self._name))
        known = base / "image.json"
        pins = pins_of(load_recipe(self._name).lock.read_text())
        if known.exists():
            # Which of two pins is for this interpreter, its own folder tells.
            for info in base.glob("lib/python*/site-packages/*.dist-info"):
                name, _, version = info.name.removesuffix(".dist-info").partition("-")
                if canonical(name) in pins:
                    pins[canonical(name)] = version
        return pins

    def _shipped_digest(self) -> str:
        return hashlib.sha256(load_recipe(self._name).lock.read_bytes()).hexdigest()[:12]

    def _write(self, name: str, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self._folder / f".{name}"
        partial.write_text(text)
        os.replace(partial, self._folder / name)


def _named(requirement: str) -> str:
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise InvalidRequest(f"not a package: {requirement[:80]!r}; for instance: polars, or polars==1.2.3")
    return canonical(match["name"])


def canonical(name: str) -> str:
    """As indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of(lock: str) -> dict[str, str]:
    """Name and version of each line that pins something."""
    found = {}
    for line in lock.splitlines():
        if (match := _PINNED.match(line)) is not None:
            found[canonical(match["name"])] = match["version"]
    return found
