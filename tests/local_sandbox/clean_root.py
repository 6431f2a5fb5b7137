"""A root folder with a stock Python and nothing else: no packages, no shell, no configuration, nothing of ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

# What no program that uses the library needs.
_LEFT_OUT = (
    "__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "ensurepip", "tkinter",
    "turtledemo", "config-*", "_tkinter*", "_test*",
)  # fmt: skip
_LIBRARY = re.compile(r"(/\S+) \(0x")


def make_clean_root(root: Path) -> str:
    """Fill it; the path of Python inside."""
    python = Path(os.path.realpath(sys.executable))
    stdlib = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    inside = root / stdlib.relative_to("/")
    shutil.copytree(stdlib, inside, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=False)
    _copy(python, root)
    extensions = [path for path in inside.rglob("*.so") if path.is_file()]
    libraries = {library for program in (python, *extensions) for library in _needed(program)}
    for library in libraries:
        _copy(library, root)
    for folder in ("tmp", "box"):
        (root / folder).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    return str(python)


def _needed(program: Path) -> set[Path]:
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=30, check=False).stdout
    return {Path(found) for found in _LIBRARY.findall(told)}


def _copy(path: Path, root: Path) -> None:
    """Under the name by which it is looked for, whatever it really is called."""
    target = root / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)


def entering(root: Path) -> list[str]:
    """What a command begins with to run in there: in namespaces of its own, but with this machine's loopback."""
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *as_root, "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "chroot", str(root)]
