"""Make an image from its recipe, once; later calls find it. Runs pip, so it belongs to set-up and never to the host."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from workbench.errors import NotFound, SandboxUnavailable
from workbench.images.recipe import Recipe
from workbench.model.image import Image

_DESCRIPTION = "image.json"
# A slow mirror and a small machine; a stuck download must still end.
_INSTALL_TIMEOUT_S = 1800
# matplotlib looks at every font of the machine once; done here, no sandbox does it.
_WARM_UP = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"


def image_folder(images_dir: Path, recipe: Recipe) -> Path:
    """Where this recipe's image is or will be."""
    return images_dir / f"{recipe.name}-{recipe.digest}"


def find_image(images_dir: Path, recipe: Recipe) -> Image:
    """The image, if it is complete.

    Raises:
        NotFound: it was never built, or the building was broken off.
    """
    try:
        fields = json.loads((image_folder(images_dir, recipe) / _DESCRIPTION).read_text())
    except FileNotFoundError:
        raise NotFound(f"image {recipe.name} is not built yet: run `workbench image build`") from None
    return Image(
        name=fields["name"],
        digest=fields["digest"],
        python=fields["python"],
        roots=tuple(fields["roots"]),
        preload=tuple(fields["preload"]),
        entry=recipe.entry,
        env=tuple((key, value) for key, value in fields["env"]),
    )


def build_image(images_dir: Path, recipe: Recipe, tell: Callable[[str], None]) -> Image:
    """Find the image, or make it.

    Raises:
        SandboxUnavailable: pip or the interpreter failed; the message has its last lines.
    """
    images_dir.mkdir(parents=True, exist_ok=True)
    with _only_one(images_dir / f".{recipe.name}.lock"):
        try:
            return find_image(images_dir, recipe)
        except NotFound:
            return _make(image_folder(images_dir, recipe), recipe, tell)


def _make(folder: Path, recipe: Recipe, tell: Callable[[str], None]) -> Image:
    # Without a description it is the rest of a building that was broken off.
    shutil.rmtree(folder, ignore_errors=True)
    tell(f"making image {recipe.name} in {folder}")
    _run([sys.executable, "-m", "venv", str(folder)])
    python = folder / "bin" / "python"
    tell(f"installing what {recipe.lock.name} pins (about 450 MB)")
    _run([str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--compile",
          "--require-hashes", "--only-binary", ":all:", "-r", str(recipe.lock)])  # fmt: skip
    env = {"MPLCONFIGDIR": str(folder / "matplotlib"), "MPLBACKEND": "agg"}
    tell("importing everything once")
    _run([str(python), "-I", "-c", _WARM_UP, *recipe.preload], env={**os.environ, **env})
    _open_to_everyone(folder)
    image = Image(
        name=recipe.name,
        digest=recipe.digest,
        python=str(python),
        roots=tuple(dict.fromkeys([str(folder), sys.base_prefix, os.path.realpath(sys.base_prefix)])),
        preload=recipe.preload,
        entry=recipe.entry,
        env=tuple(env.items()),
    )
    # Written last: its presence says that the image is complete.
    partial = folder / f".{_DESCRIPTION}"
    partial.write_text(json.dumps(asdict(image), indent=2))
    partial.rename(folder / _DESCRIPTION)
    return image


def _open_to_everyone(folder: Path) -> None:
    """Sandboxes have a uid of their own: a strict umask of whoever built the image must not lock them out."""
    for parent, folders, names in os.walk(folder):
        for name in (".", *folders, *names):
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                mode = os.stat(path).st_mode
                os.chmod(path, mode | 0o444 | (0o111 if mode & 0o100 else 0))


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=_INSTALL_TIMEOUT_S, text=True, errors="replace", check=False)  # fmt: skip
    except subprocess.TimeoutExpired as problem:
        raise SandboxUnavailable(f"{' '.join(command[:4])} took over {_INSTALL_TIMEOUT_S} s") from problem
    if done.returncode:
        raise SandboxUnavailable(f"{' '.join(command[:4])} failed:\n{done.stdout[-2000:]}")


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two set-ups at once: the second waits, and finds the image made."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
