"""Make an image from its recipe, once; later calls find it. Runs pip, so it belongs to set-up and never to the host."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from workbench.errors import NotFound
from workbench.images.installing import only_one, open_to_everyone, pip, run
from workbench.images.late import late_folder, late_mark, make_room
from workbench.images.recipe import Recipe
from workbench.model.image import Image, WarmSet

_DESCRIPTION = "image.json"
# matplotlib looks at every font of the machine once; done here, no sandbox does it.
_WARM_UP = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
# By which every Python of the image finds what arrives later; after all that the image itself has.
_PATH_FILE = "workbench-late.pth"


def image_folder(images_dir: Path, recipe: Recipe) -> Path:
    """Where this recipe's image is or will be."""
    return images_dir / f"{recipe.name}-{recipe.digest}"


def find_image(images_dir: Path, recipe: Recipe) -> Image:
    """The image, if it is complete.

    Raises:
        NotFound: it was never built, or the building was broken off.
    """
    try:
        return read_image(image_folder(images_dir, recipe))
    except FileNotFoundError:
        raise NotFound(f"image {recipe.name} is not built yet: run `workbench image build`") from None


def read_image(folder: Path) -> Image:
    """What was built there.

    Raises:
        FileNotFoundError: nothing, or not to its end.
    """
    fields = json.loads((folder / _DESCRIPTION).read_text())
    return Image(
        name=fields["name"],
        digest=fields["digest"],
        python=fields["python"],
        roots=tuple(fields["roots"]),
        preload=tuple(fields["preload"]),
        entry=fields.get("entry"),
        env=tuple((key, value) for key, value in fields["env"]),
        late=fields.get("late", ""),
        warm=tuple(WarmSet(name=one["name"], modules=tuple(one["modules"])) for one in fields.get("warm", ())),
    )


def build_image(images_dir: Path, recipe: Recipe, tell: Callable[[str], None]) -> Image:
    """Find the image, or make it.

    Raises:
        SandboxUnavailable: pip or the interpreter failed; the message has its last lines.
    """
    images_dir.mkdir(parents=True, exist_ok=True)
    with only_one(images_dir / f".{recipe.name}.lock", lambda: tell("waiting for another that builds an image")):
        try:
            return find_image(images_dir, recipe)
        except NotFound:
            return _make(images_dir, recipe, tell)


def _make(images_dir: Path, recipe: Recipe, tell: Callable[[str], None]) -> Image:
    folder = image_folder(images_dir, recipe)
    # Without a description it is the rest of a building that was broken off.
    shutil.rmtree(folder, ignore_errors=True)
    tell(f"making image {recipe.name} in {folder}")
    run([sys.executable, "-m", "venv", str(folder)])
    python = folder / "bin" / "python"
    tell(f"installing what {recipe.lock.name} pins (about a gigabyte)")
    run(pip(python, "install", "--quiet", "--compile", "--require-hashes", "-r", str(recipe.lock)))
    env = {"MPLCONFIGDIR": str(folder / "matplotlib"), "MPLBACKEND": "agg"}
    tell("importing everything once")
    run([str(python), "-I", "-c", _WARM_UP, *recipe.preload], env={**os.environ, **env})
    roots = [str(folder), sys.base_prefix, os.path.realpath(sys.base_prefix)]
    late = ""
    if recipe.late is not None:
        late = str(late_mark(images_dir, recipe.name, recipe.late))
        roots.append(str(late_folder(images_dir, recipe.name, recipe.late)))
        packages = make_room(images_dir, recipe.name, recipe.late)
        (_site_packages(python) / _PATH_FILE).write_text(f"{packages}\n")
    open_to_everyone(folder)
    image = Image(
        name=recipe.name,
        digest=recipe.digest,
        python=str(python),
        roots=tuple(dict.fromkeys(roots)),
        preload=recipe.preload,
        entry=recipe.entry,
        env=tuple(env.items()),
        late=late,
        warm=recipe.warm,
    )
    # Written last: its presence says that the image is complete.
    partial = folder / f".{_DESCRIPTION}"
    partial.write_text(json.dumps(asdict(image), indent=2))
    partial.rename(folder / _DESCRIPTION)
    return image


def _site_packages(python: Path) -> Path:
    return Path(run([str(python), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
