"""The lists of Python packages as values: which distribution provides which module, and what is refused and why.

Loaded once a process, when first asked for. Who may have what is decided in `python_lists`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from workbench.model.packages import PackageRule
from workbench.packages.list_files import columns, rows

_LANGUAGE = "python"
_NONE = "-"
_RULES = {"not-supported": PackageRule.NOT_SUPPORTED, "install-failed": PackageRule.FAILED}
_RUNS = re.compile(r"[-_.]+")


def normalised(name: str) -> str:
    """As PEP 503 compares names of distributions, and as the index writes them."""
    return _RUNS.sub("-", name).lower()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why something that is known is not installed."""

    distributions: tuple[str, ...]
    """that an operator may allow nevertheless; empty if there are none"""
    rule: PackageRule
    reason: str
    """what follows the name in the message, with the next step"""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A name that is asked for in error."""

    right: str | None
    reason: str
    """what follows the name in the message"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTables:
    """Everything that is known of Python packages without asking anybody."""

    modules: Mapping[str, str]
    """the supported distribution of each module, in dotted notation"""
    distributions: Mapping[str, tuple[str, ...]]
    """the modules of each supported distribution; none if it only brings others"""
    namespaces: frozenset[str]
    """modules that several distributions share, such as `google.cloud`"""
    generic: frozenset[str]
    """modules that are files of the agent's own"""
    refused_modules: Mapping[str, Refused]
    refused_distributions: Mapping[str, Refused]
    wrong: Mapping[str, Wrong]
    """by normalised name"""


@cache
def tables() -> PythonTables:
    """All but the popular names."""
    distributions = {
        name: tuple(module for module in modules if module != _NONE)
        for name, *modules in (row.split() for row in rows(_LANGUAGE, "supported"))
    }
    modules = {module: name for name, provided in distributions.items() for module in provided}
    refused_modules: dict[str, Refused] = {}
    refused_distributions: dict[str, Refused] = {}
    for names, behind, rule, reason in columns(_LANGUAGE, "refused"):
        refused = Refused(() if behind == _NONE else tuple(behind.split()), _RULES[rule], reason)
        refused_modules |= dict.fromkeys(names.split(), refused)
        refused_distributions |= dict.fromkeys(refused.distributions, refused)
    return PythonTables(
        modules=MappingProxyType(modules),
        distributions=MappingProxyType(distributions),
        namespaces=_shared(modules),
        generic=frozenset(rows(_LANGUAGE, "generic")),
        refused_modules=MappingProxyType(refused_modules),
        refused_distributions=MappingProxyType(refused_distributions),
        wrong=MappingProxyType(
            {
                asked: Wrong(None if right == _NONE else right, reason)
                for asked, right, reason in columns(_LANGUAGE, "wrong")
            }
        ),
    )


@cache
def popular() -> frozenset[str]:
    """Names of distributions that very many use; apart, because most operators never need them."""
    return frozenset(rows(_LANGUAGE, "popular"))


def parents(module: str) -> Iterable[str]:
    """The module and the packages that it is in, from the longest: `a.b.c`, `a.b`, `a`."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def _shared(modules: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        parent for module in modules for parent in parents(module.rpartition(".")[0]) if parent not in modules
    )
