"""Packages that are missing: asked for outside the moment that an import fails, and found in /mnt/packages.

Loaded by every Python of a sandbox at its start, so this module imports nothing that is not there anyway.
"""

from __future__ import annotations

import os
import sys

FOLDER_VARIABLE, PYTHON_VARIABLE = "WORKBENCH_PACKAGES_FOLDER", "WORKBENCH_PYTHON"
_DEFAULT_FOLDER = "/mnt/packages"


def folder() -> str:
    """Where what was installed for this session is seen; an engine that isolates nothing has it elsewhere."""
    return os.environ.get(FOLDER_VARIABLE) or _DEFAULT_FOLDER


def site() -> str:
    """What of it is for Pythons of this version."""
    return f"{folder()}/python{sys.version_info.major}.{sys.version_info.minor}"


def begin() -> None:
    """Once in each Python: missing packages are found from now on. May be called twice."""
    if not _is_the_images():
        return
    place = site()
    if place not in sys.path:
        # Last, and not by site.addsitedir: what the image and the agent have comes first, and no `.pth` is run.
        sys.path.append(place)
    from workbench_guest.packages.finder import PackageFinder

    if not any(isinstance(one, PackageFinder) for one in sys.meta_path):
        sys.meta_path.append(PackageFinder())


def _is_the_images() -> bool:
    """Or an environment made of it: packages are made for that version and those libraries."""
    python = os.environ.get(PYTHON_VARIABLE, "")
    prefix = os.path.dirname(os.path.dirname(python))
    if not python or sys.prefix == prefix:
        return True
    return os.path.realpath(sys.base_prefix) == os.path.realpath(_base_of(prefix))


def _base_of(prefix: str) -> str:
    try:
        with open(f"{prefix}/pyvenv.cfg", encoding="utf-8") as file:
            told = dict(line.split(" = ", 1) for line in file.read().splitlines() if " = " in line)
    except OSError:
        return prefix
    return os.path.dirname(told.get("home", f"{prefix}/bin"))
