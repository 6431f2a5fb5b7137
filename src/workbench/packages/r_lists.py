"""What is known of R's packages: those that the distribution has, by the names of their Debian packages."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workbench.contracts.packages import refusal
from workbench.errors import PackageRefused
from workbench.model.packages import Language, PackagePolicy, PackageRule
from workbench.packages.naming import nearest, shipped

# What R allows: letters, digits and dots, beginning with a letter and not ending with a dot.
# BARRIER: names become arguments of apt-get, where a path or an option would be obeyed; held by
# tests/unit/packages/test_r_lists.py.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9.]*[A-Za-z0-9]")
_MOST_NAME = 100
PREFIXES = ("r-cran-", "r-bioc-")
BASE = frozenset({
    "base", "compiler", "datasets", "graphics", "grDevices", "grid", "methods", "parallel", "splines", "stats",
    "stats4", "tcltk", "tools", "utils",
})  # fmt: skip
# Well-known, and not in Debian 12; said with what does the same.
_INSTEAD = {
    "xgboost": "gbm or ranger",
    "lightgbm": "gbm or ranger",
    "openxlsx2": "openxlsx",
    "arrow": "data.table, or pyarrow of Python",
    "duckdb": "RSQLite, or duckdb of Python",
    "pacman": "library() alone: what is missing is installed",
    "torch": "nnet, or torch of Python",
    "keras": "nnet, or keras of Python",
    "tensorflow": "nnet, or tensorflow of Python",
}


class RLists:
    """Names of the distribution, and the operator's own, which win: `dplyr` or `r-cran-dplyr`."""

    language = Language.R

    def __init__(self, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self._allow = {_bare(name).lower() for name in allow}
        self._deny = {_bare(name).lower() for name in deny}

    def providing(self, module: str, policy: PackagePolicy) -> str:
        """The Debian package of `library(module)`. Raises: PackageRefused."""
        return self.admitted(module, policy)

    def admitted(self, distribution: str, policy: PackagePolicy) -> str:
        """The Debian package. Raises: PackageRefused."""
        name = _bare(distribution)
        if not _NAME.fullmatch(name) or len(name) > _MOST_NAME:
            raise refusal(f"{distribution[:100]!r} is not a name of an R package", PackageRule.NOT_SUPPORTED)
        if policy is PackagePolicy.OFF:
            raise refusal("packages are not installed here", PackageRule.OFF)
        if name in BASE:
            raise refusal(f"{name} is a part of R itself, and is there already", PackageRule.NOT_SUPPORTED)
        if name.lower() in self._deny:
            raise refusal(f"{name} is not allowed by the operator of this workbench", PackageRule.NOT_SUPPORTED)
        package = debian_name(name)
        # The distribution may be another than the one that the shipped list is of.
        if package in shipped("r_debian12.txt") or policy is PackagePolicy.ANY or name.lower() in self._allow:
            return package
        raise _unknown(name)


def debian_name(name: str) -> str:
    """Of the package of R with this name, or of Debian; if the shipped list has it not, as if it were of CRAN."""
    if name.startswith(PREFIXES):
        return name
    candidates = [prefix + name.lower() for prefix in PREFIXES]
    return next((one for one in candidates if one in shipped("r_debian12.txt")), candidates[0])


def _bare(name: str) -> str:
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _unknown(name: str) -> PackageRefused:
    known = {_bare(package) for package in shipped("r_debian12.txt")}
    if name in _INSTEAD:
        hint = f"; use {_INSTEAD[name]}"
    elif meant := nearest(name.lower(), known):
        hint = f"; did you mean {meant!r}?"
    else:
        hint = ""
    message = f"no supported package provides {name!r}: the distribution has neither r-cran- nor r-bioc-{name.lower()}"
    return refusal(message + hint, PackageRule.NOT_SUPPORTED)
