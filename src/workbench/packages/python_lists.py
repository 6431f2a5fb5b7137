"""PythonLists: which Python distribution is installed for an import, and which may be asked for by name.

An import name is never taken for the name of a distribution unless the policy says so: more than half of the common
ones belong to somebody else. Whether anything is installed at all is left to the caller: to `off` the answer is as to
`supported`.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable

from workbench.contracts.packages import refusal
from workbench.errors import PackageRefused
from workbench.model.packages import Language, PackagePolicy, PackageRule
from workbench.packages.python_tables import Refused, normalised, parents, popular, tables

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
"""of a distribution, as PEP 508 has it; the length is ours"""
_NEAR = 0.75
"""how alike a name must be to be proposed; below it, difflib proposes unrelated words"""
_VERSIONED = re.compile(r"_v\d+\w*$")
"""of a service's modules, one for each version of its interface, beside one without"""
_SHOWN = 12
"""of the members of a namespace, so that the message stays one sentence"""


class PythonLists:
    """PackageLists for Python: the reviewed table, the popular names, and the operator's own lists, which win."""

    def __init__(self, *, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self._allow = frozenset(map(normalised, allow))
        self._deny = frozenset(map(normalised, deny))

    @property
    def language(self) -> Language:
        """Python."""
        return Language.PYTHON

    def providing(self, module: str, policy: PackagePolicy) -> str:
        """See PackageLists. The longest dotted name decides: `google.cloud.storage` before `google`."""
        if not all(part.isidentifier() for part in module.split(".")):
            raise _refused(f"{module[:80]!r} is not the name of a module; check the spelling")
        known = self._known(module)
        if known is not None:
            return self._unless_denied(known)
        self._check_own_or_shared(module)
        top = normalised(module.partition(".")[0])
        if (wrong := tables().wrong.get(top)) and wrong.right:
            raise _refused(
                f"no package is named after {module.partition('.')[0]!r}: as a package, {top!r} {wrong.reason}; "
                f"use {wrong.right!r}{_with_modules(wrong.right)}"
            )
        if top in tables().distributions:
            # What the package is called is no module of it, whatever the policy.
            raise _named_otherwise(module.partition(".")[0], top)
        if self._by_name(top, policy):
            return self._unless_denied(top)
        raise _no_provider(module, top, policy)

    def admitted(self, distribution: str, policy: PackagePolicy) -> str:
        """See PackageLists. The name comes back normalised, as the index writes it."""
        if not _NAME.fullmatch(distribution):
            raise _refused(
                f"{distribution[:80]!r} is not the name of a package; names have letters, digits, '-' and '.'"
            )
        name = self._unless_denied(normalised(distribution))
        known = tables()
        if name in self._allow or name in known.distributions:
            return name
        if wrong := known.wrong.get(name):
            instead = f"; use {wrong.right!r}" if wrong.right else ""
            raise _refused(f"the package {name!r} {wrong.reason}{instead}")
        if refused := known.refused_distributions.get(name):
            raise _explained(f"the package {name!r}", refused)
        if self._by_name(name, policy):
            return name
        raise _not_admitted(distribution, name, policy)

    def _known(self, module: str) -> str | None:
        """By the longest key that the tables have for the module, or the operator's own."""
        known = tables()
        for name in parents(module):
            if found := known.modules.get(name):
                return found
            if refused := known.refused_modules.get(name):
                allowed = next((item for item in refused.distributions if item in self._allow), None)
                if allowed is None:
                    raise _explained(repr(module), refused)
                return allowed
            if (own := normalised(name)) in self._allow:
                return own
        return None

    def _check_own_or_shared(self, module: str) -> None:
        """Refuse what is a file of the agent's own, a part of Python, or a namespace that many distributions share."""
        top = module.partition(".")[0]
        if top in tables().generic:
            raise _refused(
                f"no package is installed for {top!r}: it reads like a file of yours; write it, then import it"
            )
        if top in sys.stdlib_module_names:
            raise _refused(f"no package provides {module!r}: {top!r} is a part of Python; check the spelling")
        shared = next((name for name in parents(module) if name in tables().namespaces), None)
        if shared is not None:
            raise _namespace(module, shared)

    def _by_name(self, name: str, policy: PackagePolicy) -> bool:
        if policy is PackagePolicy.ANY:
            return True
        return policy is PackagePolicy.POPULAR and name in popular()

    def _unless_denied(self, name: str) -> str:
        if name in self._deny:
            raise _refused(f"the package {name!r} is denied by the operator of this workbench; do without it")
        return name


def _refused(message: str) -> PackageRefused:
    return refusal(message, PackageRule.NOT_SUPPORTED)


def _explained(subject: str, refused: Refused) -> PackageRefused:
    return refusal(f"{subject} {refused.reason}", refused.rule)


def _namespace(module: str, shared: str) -> PackageRefused:
    members = sorted(name for name in tables().modules if name.startswith(f"{shared}."))
    if module != shared and (near := _nearest(module, members)):
        return _refused(f"no supported package provides {module!r}; did you mean {near!r}?")
    members = [name for name in members if not _VERSIONED.search(name)] or members
    shown = ", ".join(members[:_SHOWN]) + (f" and {len(members) - _SHOWN} more" if len(members) > _SHOWN else "")
    return _refused(f"no package provides {module!r}: {shared!r} is shared by many; import one of {shown}")


def _no_provider(module: str, top: str, policy: PackagePolicy) -> PackageRefused:
    top_module = module.partition(".")[0]
    # Parts of Python are mistyped as well.
    known = {*tables().modules, *(name for name in sys.stdlib_module_names if not name.startswith("_"))}
    near = _nearest(module, known) or _nearest(top_module, known)
    if near is None and (distribution := _nearest(top, tables().distributions)):
        near = next(iter(tables().distributions[distribution]), None)
    return _refused(f"no supported package provides {top_module!r}; {_next_step(near, top, policy)}")


def _named_otherwise(module: str, distribution: str) -> PackageRefused:
    return _refused(
        f"no module is named {module!r}: the package {distribution!r} has {_modules_of(distribution)}; import that"
    )


def _with_modules(distribution: str) -> str:
    modules = _modules_of(distribution)
    return f", which has {modules}" if modules else ""


def _modules_of(distribution: str) -> str:
    return ", ".join(repr(one) for one in sorted(tables().distributions.get(distribution, ()))[:_SHOWN])


def _not_admitted(distribution: str, name: str, policy: PackagePolicy) -> PackageRefused:
    known = tables()
    provider = known.modules.get(distribution) or known.modules.get(name.replace("-", "_"))
    if provider:
        return _refused(f"no supported package is named {name!r}; its module comes with {provider!r}, install that")
    if name.replace("-", "_") in known.generic:
        return _refused(
            f"no supported package is named {name!r}; it reads like a file of yours, which needs no install"
        )
    near = _nearest(name, known.distributions)
    return _refused(f"the package {name!r} is not supported; {_next_step(near, name, policy)}")


def _next_step(near: str | None, name: str, policy: PackagePolicy) -> str:
    # What very many use is no slip of something else.
    if policy is not PackagePolicy.POPULAR and name in popular():
        return "use a supported one, or ask the operator for the policy 'popular', which has it"
    return f"did you mean {near!r}?" if near else "use a supported one, or ask the operator to allow it"


def _nearest(name: str, among: Iterable[str]) -> str | None:
    """Upper and lower case aside, since models write `Pil` as often as `pil`."""
    spelt = {item.lower(): item for item in among}
    found = difflib.get_close_matches(name.lower(), spelt, n=1, cutoff=_NEAR)
    return spelt[found[0]] if found else None
