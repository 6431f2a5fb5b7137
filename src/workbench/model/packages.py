"""Packages that code asks for: which may be installed, what was found out about a wish, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from workbench.model.ids import MountId


class Language(StrEnum):
    """Whose packages."""

    PYTHON = "python"
    NODE = "node"
    R = "r"


class PackagePolicy(StrEnum):
    """Which packages may be installed; each admits more than the one before."""

    OFF = "off"
    SUPPORTED = "supported"
    """those of the reviewed table"""
    POPULAR = "popular"
    """and those that very many use"""
    ANY = "any"
    """whatever the index has"""

    def narrowed(self, to: PackagePolicy) -> PackagePolicy:
        """The narrower of both."""
        order = list(PackagePolicy)
        return order[min(order.index(self), order.index(to))]


class PackageRule(StrEnum):
    """What an install or a refusal is called in the report; docs/reference/packages.md has a heading for each."""

    INSTALL = "install"
    NOT_SUPPORTED = "package-not-supported"
    """on no list that counts here, a generic name, or one that cannot be here at all"""
    FAILED = "install-failed"
    """admitted, but there is no usable package, it is too large or too slow, or the index cannot be reached"""
    OFF = "install-off"
    OPTIONAL = "optional-import"
    """the code has its own answer to the package being absent"""
    CONFLICT = "package-conflict"
    """another version is there already, and is kept"""
    SCRIPTS_SKIPPED = "install-scripts-skipped"
    """it is of no use without scripts that run while it is installed, and those are never run"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A distribution in one version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Distributions for one overlay."""

    mount: MountId
    """whose overlay"""
    requirements: tuple[str, ...]
    """in the language's own notation, names and versions only: no addresses, no paths, no options"""
    modules: tuple[str, ...] = ()
    """that must be in what is installed, in dotted notation; for imports"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What an install came to."""

    pins: tuple[Pin, ...]
    """that are in the overlay now and were not before; empty if everything was there already"""
    present: tuple[Pin, ...] = ()
    """of what was asked for: what was there already, in the image or in the overlay"""
