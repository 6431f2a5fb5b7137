"""Checks rows of the table of Python packages against the index: see scripts/check-package-table."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import NotFound, PackageRefused
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.model.packages import PackagePolicy
from workbench.packages.python_lists import PythonLists
from workbench.packages.python_tables import normalised, tables
from workbench.packages.stand_ins import stand_in_for_local_builds
from workbench.settings import Settings

_PLAN_S, _FETCH_S, _IMPORT_S, _MAKE_S = 90.0, 300.0, 60.0, 120.0
_IMPORT_CPU_S = 20.0
"""of processor time, which a busy machine does not lengthen"""
_MOST_BYTES = 400_000_000
_WAITING = "7 days"
"""younger releases do not count, as in a sandbox"""
_LIBRARIES = re.compile(
    r"(ld-linux|libc|libm|libdl|librt|libpthread|libutil|libresolv|libnss_\w+|libgcc_s|libstdc\+\+|libz|libbz2|liblzma|"
    r"libzstd|libssl|libcrypto|libffi|libsqlite3|libuuid|libexpat|libncursesw|libtinfow?|libreadline|libcrypt|libpython3"
    r"|libanl|libmvec|libgomp|libfribidi|libnettle)[-.\d]"
)
"""that a slim Debian with Python has; and, of the last two, what is used where it is and not missed where it is not"""
_LIBRARY_NAME = re.compile(r"\.so(\.|$)")
_PROBE = Path(__file__).parent / "import_probe.py"
_TELL = (
    "import importlib.metadata as known, re\n"
    "for one in known.distributions(): print(re.sub(r'[-_.]+', '-', one.name).lower() + '==' + one.version)"
)
"""asks an interpreter itself: what arrives late lies in a folder of its own"""


@dataclass(frozen=True, slots=True)
class Place:
    """Beside what is checked: an interpreter, and the pins of the image."""

    python: str
    uv: str
    constraints: Path
    present: frozenset[str]
    """pins that the interpreter has already"""
    links: tuple[str, ...]
    """options by which builds of its own can be planned with"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one row."""

    name: str
    pin: str
    problem: str | None
    seconds: float

    def __str__(self) -> str:
        said = "right" if self.problem is None else f"wrong: {self.problem}"
        return f"{self.pin or self.name}  {said}  ({self.seconds:.1f} s)"


class Wrong(Exception):
    """The row does not hold; says why."""


def check(place: Place, name: str, modules: Sequence[str], importing: bool) -> Finding:
    """One row; never raises because of it."""
    began, pin = time.monotonic(), ""
    with tempfile.TemporaryDirectory(prefix="package-table-") as folder:
        try:
            plan = _plan(place, name, Path(folder))
            pin = next(one for one in plan if _name_of(one) == name)
            _check_plan([one for one in plan if one not in place.present])
            wheel = Path(folder, "wheel")
            _fetch(place, [pin], wheel)
            _check_modules(wheel, modules)
            if importing:
                _check_import(place, plan, modules, Path(folder))
            problem = None
        except Wrong as wrong:
            problem = str(wrong)
    return Finding(name, pin, problem, time.monotonic() - began)


def has_module(files: Iterable[str], module: str) -> bool:
    """Whether a wheel with these files has the module: a package, a file or an extension, or a folder of those."""
    path = module.replace(".", "/")
    endings = re.compile(re.escape(path) + r"(\.py|(\.[\w-]+)?\.so|/.*\.(py|so))")
    return any(endings.fullmatch(file) for file in files)


def _plan(place: Place, name: str, folder: Path) -> list[str]:
    asked = folder / "asked.in"
    asked.write_text(f"{name}\n", encoding="utf-8")
    said = _run(
        [place.uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", place.python,
         "--constraint", str(place.constraints), *place.links, *_fetch_rules(), str(asked)], _PLAN_S)  # fmt: skip
    return re.findall(r"^[\w.-]+==[^\s;]+", said, re.MULTILINE)


def _check_plan(plan: Iterable[str]) -> None:
    lists = PythonLists()
    for pin in plan:
        try:
            lists.admitted(_name_of(pin), PackagePolicy.ANY)
        except PackageRefused as refused:
            raise Wrong(f"needs what is refused: {refused.message}") from refused


def _fetch(place: Place, pins: Sequence[str], into: Path) -> None:
    _run(
        [place.uv, "pip", "install", "--quiet", "--no-deps", "--python", place.python, "--target", str(into),
         *_fetch_rules(), *pins], _FETCH_S)  # fmt: skip


def _check_modules(wheel: Path, modules: Sequence[str]) -> None:
    files = [str(path.relative_to(wheel)) for path in wheel.rglob("*")]
    absent = [module for module in modules if not has_module(files, module)]
    if absent:
        raise Wrong(f"the wheel has no {', '.join(absent)}")


def _check_import(place: Place, plan: Sequence[str], modules: Sequence[str], folder: Path) -> None:
    packages, home = folder / "packages", folder / "home"
    packages.mkdir()
    home.mkdir()
    if missing := [pin for pin in plan if pin not in place.present]:
        _fetch(place, missing, packages)
    size = sum(path.lstat().st_size for path in packages.rglob("*"))
    if size > _MOST_BYTES:
        raise Wrong(f"{size // 1_000_000} MB with all it needs")
    # Nothing of the machine but the interpreter: no programs, no display, and no network unless it cannot be cut off.
    said = _run(
        [*_without_network(), "env", "-i", "PATH=/nonexistent", "LANG=C.UTF-8", f"HOME={home}", "MPLBACKEND=agg",
         place.python, "-I", str(_PROBE), str(packages), *modules], _IMPORT_S, cwd=home)  # fmt: skip
    found = json.loads(said.splitlines()[-1])
    for module, problem in found["wrong"].items():
        raise Wrong(f"import {module}: {problem}")
    foreign = [name for name in found["libraries"] if _LIBRARY_NAME.search(name) and not _LIBRARIES.match(name)]
    if foreign := [name for name in foreign if ".cpython-" not in name]:
        raise Wrong(f"loads {', '.join(foreign)} of this machine")
    if found["seconds"] > _IMPORT_CPU_S:
        raise Wrong(f"import takes {found['seconds']:.0f} s")


def _without_network() -> list[str]:
    cut_off = ["unshare", "--map-root-user", "--net"]
    works = shutil.which("unshare") and subprocess.run([*cut_off, "true"], check=False, capture_output=True)
    if not works or works.returncode:
        raise SystemExit("check-package-table: --import needs `unshare --net`, so that nothing is fetched at import")
    return cut_off


def _fetch_rules() -> list[str]:
    return ["--only-binary", ":all:", "--exclude-newer", _WAITING]


def _name_of(pin: str) -> str:
    return normalised(pin.partition("==")[0])


def _run(command: Sequence[str], seconds: float, cwd: Path | None = None) -> str:
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, start_new_session=True
    ) as child:
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise Wrong(f"not done within {seconds:g} s") from None
    if child.returncode:
        raise Wrong(" ".join(err.split())[-300:] or f"exit code {child.returncode}")
    return out


def _place(folder: Path, python: str | None) -> Place:
    uv = os.fspath(importlib.import_module("uv").find_uv_bin())
    recipe = load_recipe("python")
    if python is None:
        try:
            python = find_image(Settings.from_env(os.environ).images_dir, recipe).python
        except NotFound:
            made = folder / "venv"
            _run([sys.executable, "-m", "venv", "--without-pip", str(made)], _MAKE_S)
            python = str(made / "bin" / "python")
    present = _run([python, "-I", "-c", _TELL], _MAKE_S).split()
    pinned = re.findall(r"^[\w.-]+==[^\\\n]+", recipe.lock.read_text(encoding="utf-8"), re.MULTILINE)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(present or pinned) + "\n", encoding="utf-8")
    site = _run([python, "-I", "-c", "import sys; print(*sys.path, sep='\\n')"], _MAKE_S).splitlines()
    local = stand_in_for_local_builds(map(Path, filter(os.path.isdir, site)), folder)
    return Place(python, uv, constraints, frozenset(present), ("--find-links", str(local)) if local else ())


def _chosen(arguments: argparse.Namespace) -> list[str]:
    known = tables().distributions
    if arguments.rows:
        unknown = [name for name in arguments.rows if name not in known]
        if unknown:
            raise SystemExit(f"check-package-table: no row for {', '.join(unknown)}")
        return list(arguments.rows)
    names = sorted(known)
    return random.Random(arguments.seed).sample(names, min(arguments.draw, len(names))) if arguments.draw else names


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="check-package-table", description=__doc__)
    parser.add_argument("rows", nargs="*", help="names of distributions; all rows if none are given")
    parser.add_argument("--draw", type=int, help="so many rows, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw; the same seed draws the same rows")
    parser.add_argument("--import", dest="importing", action="store_true", help="also install and import each")
    parser.add_argument("--jobs", type=int, default=2, help="so many rows at a time")
    parser.add_argument("--python", help="beside this interpreter instead of the image's")
    return parser.parse_args()


def main() -> int:
    """Print a line a row and a summary; 1 if a row is wrong."""
    arguments = _arguments()
    names = _chosen(arguments)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="package-table-") as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        place = _place(Path(folder), arguments.python)
        findings = [
            pool.submit(check, place, name, tables().distributions[name], arguments.importing) for name in names
        ]
        for finding in findings:
            found = finding.result()
            wrong += found.problem is not None
            print(found, flush=True)
    print(f"{len(names) - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
