"""Lists and installers of every language, as the settings want them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import uv

from workbench.contracts.packages import PackageInstaller, PackageLists, refusal
from workbench.errors import WorkbenchError
from workbench.model.image import Image
from workbench.model.packages import Language
from workbench.packages.apt_r import AptInstaller
from workbench.packages.index import uv_environment
from workbench.packages.limits import InstallLimits
from workbench.packages.node_lists import NodeLists
from workbench.packages.npm import NpmInstaller
from workbench.packages.python_lists import PythonLists
from workbench.packages.r_lists import RLists
from workbench.packages.uv import Base, UvInstaller


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagesPlace:
    """What of the settings and of this machine counts here."""

    root: Path
    """whose children are overlays"""
    kept: Path
    """for what is fetched"""
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    index: str
    registry: str
    limits: InstallLimits
    environ: Mapping[str, str]
    image: Callable[[], Image]
    """that sandboxes have now; raises if there is none"""


def open_lists(place: PackagesPlace) -> Mapping[Language, PackageLists]:
    """One for each language."""
    return {
        Language.PYTHON: PythonLists(allow=place.allow, deny=place.deny),
        Language.NODE: NodeLists(allow=place.allow, deny=place.deny),
        Language.R: RLists(allow=place.allow, deny=place.deny),
    }


def open_installers(place: PackagesPlace) -> Mapping[Language, PackageInstaller]:
    """One for each language; the caller closes them. Nothing is started or made before it is needed."""
    return {
        Language.PYTHON: UvInstaller(
            uv=uv.find_uv_bin(),
            root=place.root,
            kept=place.kept / "python",
            base=lambda: _base(place.image),
            limits=place.limits,
            environment=uv_environment(place.environ, place.index),
        ),
        Language.NODE: NpmInstaller(place.root, place.kept / "node", place.limits, place.registry),
        Language.R: AptInstaller(place.root, place.kept / "r", place.limits),
    }


def _base(find: Callable[[], Image]) -> Base:
    try:
        image = find()
    except WorkbenchError as problem:
        raise refusal(f"the image of the sandboxes cannot be found: {problem.message}") from problem
    prefix = Path(image.python).parent.parent
    lib = next(iter(sorted(prefix.glob("lib/python3.*"))), prefix / "lib/python3")
    return Base(
        python=image.python,
        digest=image.digest,
        site=(lib / "site-packages", *([Path(image.late).parent / "packages"] if image.late else [])),
        version=lib.name.removeprefix("python"),
    )
