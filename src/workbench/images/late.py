"""Bring what arrives after an image: PyTorch. It is fetched beside everything else, and put in place at once, so that
sandboxes which live already can import it from then on.

    <images>/<name>-late-<digest>/packages/   on the path of every Python of the image; until then, who says "arriving"
    <images>/<name>-late-<digest>/late.json   written last: it is there
    <images>/<name>-late-<digest>/.work/      wheels that are whole, for a second try; what is being unpacked
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import SandboxUnavailable
from workbench.images.installing import only_one, open_to_everyone, pip, run
from workbench.images.recipe import LatePart
from workbench.model.image import Image

# What only builds for graphics cards need; gigabytes of it.
_FOR_GRAPHICS_CARDS = ("nvidia", "cuda", "triton", "pytorch-triton")
_PLAN_TIMEOUT_S = 600
# Between two lines of progress.
_TELL_EVERY_S = 5.0
# An import looks at a folder again once its time has changed, and file systems count in steps of up to this.
_TICK_S = 0.05
# Neither imported nor read from; the compiler of PyTorch is for who has a C++ compiler, and for those it works as well.
_NOT_COMPILED = r"/(tests|_inductor|testing/_internal)/"
_LEFT_OUT = ("bin", "share", "__pycache__")
_ARRIVING = """\
raise ImportError(
    "{module} is part of this image and is still arriving: try again in some minutes. `workbench image list` tells "
    "whether it is there, and `workbench image build --late` brings it",
    name="{module}",
)
"""
_PROVE = """
import importlib, importlib.metadata as known, sys
from packaging.requirements import Requirement
folder, module, name = sys.argv[1:]
sys.path.insert(0, folder)  # before the words for who is too early
importlib.import_module(module)
missing = []
for wanted in map(Requirement, known.requires(name) or ()):
    if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
        try:
            if not wanted.specifier.contains(known.version(wanted.name), prereleases=True):
                missing.append(str(wanted))
        except known.PackageNotFoundError:
            missing.append(str(wanted))
if missing:
    sys.exit(f"{module} was imported, but needs also: {', '.join(missing)}")
print(known.version(name))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateState:
    """Whether it is there."""

    version: str = ""
    """empty if it is not there"""
    arriving: bool = False
    """somebody brings it just now"""
    so_far_bytes: int = 0


def late_folder(images_dir: Path, name: str, part: LatePart) -> Path:
    """Shared by all images of this name with the same late part."""
    return images_dir / f"{name}-late-{part.digest}"


def late_mark(images_dir: Path, name: str, part: LatePart) -> Path:
    """The file that says that it is there."""
    return late_folder(images_dir, name, part) / "late.json"


def make_room(images_dir: Path, name: str, part: LatePart) -> Path:
    """The folder that it will be in, with words for who is too early. May be called twice."""
    folder = late_folder(images_dir, name, part)
    packages = folder / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    if not late_mark(images_dir, name, part).exists():
        stand_in = packages / f"{part.module}.py"
        stand_in.write_text(_ARRIVING.format(module=part.module))
        stand_in.chmod(0o644)
    for one in (folder, packages):
        one.chmod(0o755)
    return packages


def late_state(images_dir: Path, image: Image) -> LateState | None:
    """As it is now; None for an image without a late part."""
    if not image.late:
        return None
    mark = Path(image.late)
    with contextlib.suppress(FileNotFoundError):
        return LateState(version=json.loads(mark.read_text())["version"])
    return LateState(arriving=_is_held(_lock(images_dir, image.name)), so_far_bytes=_size(mark.parent / ".work"))


def bring_late(
    images_dir: Path, name: str, part: LatePart, *, python: str, index: str, tell: Callable[[str], None]
) -> None:
    """Have it there, unless it is.

    `index` is where it comes from if what the machine's pip is configured with would bring a build for graphics cards.

    Raises:
        SandboxUnavailable: it cannot be had; the message says what to do. What was fetched is kept for the next time.
    """
    images_dir.mkdir(parents=True, exist_ok=True)
    with only_one(_lock(images_dir, name), lambda: tell(f"{part.requirement} is being brought by another; waiting")):
        if late_mark(images_dir, name, part).exists():
            return
        packages = make_room(images_dir, name, part)
        try:
            _Bringing(packages, part, python, index, tell).to_end()
        except (SandboxUnavailable, OSError) as problem:
            said = problem.message if isinstance(problem, SandboxUnavailable) else str(problem)
            raise SandboxUnavailable(
                f"{part.requirement} could not be brought: {said}\nsandboxes work without it. Put its wheel where pip "
                "looks (PIP_FIND_LINKS, PIP_INDEX_URL or pip's configuration), or set WORKBENCH_TORCH_INDEX to an "
                "index that has its build for the CPU; then run `workbench image build --late` again"
            ) from problem


def _lock(images_dir: Path, name: str) -> Path:
    return images_dir / f".{name}-late.lock"


class _Bringing:
    """One try."""

    def __init__(self, packages: Path, part: LatePart, python: str, index: str, tell: Callable[[str], None]) -> None:
        self._packages = packages
        self._part = part
        self._python = python
        self._index = index
        self._tell = tell
        self._work = packages.parent / ".work"
        self._began = self._told = time.monotonic()

    def to_end(self) -> None:
        wheels = self._work / "wheels"
        wheels.mkdir(parents=True, exist_ok=True)
        self._fetch(wheels, "needed", ("--require-hashes", "-r", str(self._part.lock)))
        if not any(wheels.glob(f"{self._part.module}-*.whl")):
            self._tell(f"fetching {self._part.requirement}; about 200 MB, sandboxes work meanwhile")
            self._fetch(wheels, "itself", (*self._where_from(), self._part.requirement))
        version, staged = self._unpacked(sorted(wheels.glob("*.whl")))
        size = _size(staged)
        self._put_in_place(staged)
        mark = self._packages.parent / "late.json"
        partial = mark.with_name(".late.json")
        partial.write_text(json.dumps({"requirement": self._part.requirement, "version": version, "bytes": size}))
        partial.chmod(0o644)
        partial.rename(mark)
        shutil.rmtree(self._work, ignore_errors=True)
        self._tell(f"{self._part.module} {version} is there, after {time.monotonic() - self._began:.0f} s")

    def _fetch(self, wheels: Path, what: str, words: tuple[str, ...]) -> None:
        """Whole wheels only: what was broken off is fetched again, what is there already is not."""
        partial = self._work / what
        shutil.rmtree(partial, ignore_errors=True)
        known = ("--find-links", str(wheels))
        self._run(pip(self._python, "download", "--quiet", "--no-deps", *known, "--dest", str(partial), *words))
        for wheel in partial.iterdir():
            wheel.rename(wheels / wheel.name)

    def _where_from(self) -> tuple[str, ...]:
        """Nothing to say to pip if what it is configured with has a build for the CPU."""
        report = self._work / "plan.json"
        words = ("--quiet", "--dry-run", "--ignore-installed", "--report", str(report), self._part.requirement)
        try:
            self._run(pip(self._python, "install", *words), timeout_s=_PLAN_TIMEOUT_S)
        except SandboxUnavailable:
            self._tell(f"pip, as it is configured here, does not find it; asking {self._index}")
            return ("--index-url", self._index)
        planned = [one["metadata"]["name"].lower() for one in json.loads(report.read_text())["install"]]
        if any(one.startswith(_FOR_GRAPHICS_CARDS) for one in planned):
            self._tell(f"pip, as it is configured here, has builds for graphics cards alone; asking {self._index}")
            return ("--index-url", self._index)
        return ()

    def _unpacked(self, wheels: list[Path]) -> tuple[str, Path]:
        """Proved by importing it, before anybody sees it."""
        staged = self._work / "staged"
        shutil.rmtree(staged, ignore_errors=True)
        self._tell(f"unpacking {self._part.requirement} and what it needs")
        words = ("--quiet", "--no-index", "--no-deps", "--no-compile", "--target", str(staged))
        self._run(pip(self._python, "install", *words, *map(str, wheels)))
        cores = str(len(os.sched_getaffinity(0)))
        as_seen = ("-s", str(staged), "-p", str(self._packages))
        self._run(
            [self._python, "-I", "-m", "compileall", "-q", "-j", cores, "-x", _NOT_COMPILED, *as_seen, str(staged)]
        )
        distribution = self._part.requirement.partition("==")[0]
        said = self._run([self._python, "-I", "-B", "-c", _PROVE, str(staged), self._part.module, distribution])
        open_to_everyone(staged)
        return said.split()[-1], staged

    def _put_in_place(self, staged: Path) -> None:
        """What it is imported by comes last: who can import it finds all that it needs."""
        entries = [one for one in sorted(staged.iterdir()) if one.name not in _LEFT_OUT and one.suffix != ".pth"]
        entries.sort(key=lambda one: one.name == self._part.module)
        for entry in entries:
            target = self._packages / entry.name
            if entry.name == self._part.module:
                time.sleep(_TICK_S)
            # Of a try that was broken off between here and the mark.
            shutil.rmtree(target, ignore_errors=True)
            entry.rename(target)
        # A package is found before a module of its name; only now nobody needs the words any more.
        (self._packages / f"{self._part.module}.py").unlink(missing_ok=True)

    def _run(self, command: list[str], timeout_s: float | None = None) -> str:
        # Its own folder for what is being fetched: measured, and gone with the rest.
        passing = self._work / "tmp"
        passing.mkdir(exist_ok=True)
        env = {**os.environ, "TMPDIR": str(passing)}
        bounds = {} if timeout_s is None else {"timeout_s": timeout_s}
        return run(command, env=env, meanwhile=self._progress, **bounds)

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._told >= _TELL_EVERY_S:
            self._told = now
            megabytes = _size(self._work) // 2**20
            self._tell(f"{self._part.module} is arriving: {megabytes} MB so far, {now - self._began:.0f} s")


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _is_held(lock: Path) -> bool:
    try:
        with lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
