"""Packages that code asks for while it runs: whether it may have them, who installs them, and what its result tells.

Asked from inside a sandbox, so nothing that is asked is believed: names are held against the lists, and only what is on
them is ever looked up. Reported by who did it, and not by the guest.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.contracts.clock import Clock
from workbench.contracts.packages import PackageInstaller, PackageLists, refusal, rule_of
from workbench.errors import InvalidRequest, PackageRefused
from workbench.model.execution import Correction, CorrectionKind
from workbench.model.ids import MountId
from workbench.model.packages import Installed, Language, PackagePolicy, PackageRule, Wanted
from workbench.model.session import Session

MOST_NAMES = 50
"""of one call"""
_MOST_MODULES = 16
# Each costs a look through all lists for what is nearest, and nobody means so many.
_MOST_UNKNOWN, _UNKNOWN_WITHIN_S = 30, 60.0
_MOST_CHARACTERS = 200
# What failed is not tried again at once by a loop that imports it; who mends the cause waits no longer than this.
_FAILED_FOR_S = 60.0
_MOST_REMEMBERED = 2000
_MOST_LINE = 10**7
# A module as code writes it: dotted for Python, `@scope/name` for Node.
_MODULE = re.compile(r"[^\W\d][\w.]*|@?[a-z0-9~][\w.~-]*(/[\w.~-]+)*", re.IGNORECASE)
# Names and versions only: no address, no path, no option, no marker.
# BARRIER: read on the server's own loop, so none of them may be ambiguous: a text that nearly fits would take for ever;
# held by tests/unit/core/test_installs.py.
_CLAUSE = r"(?:===?|~=|!=|[<>]=?) *[A-Za-z0-9.*+!_-]+ *"
_REQUIREMENTS = {
    Language.PYTHON: re.compile(
        r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?) *(?:\[[A-Za-z0-9,._ -]*\] *)?"
        rf"(?:{_CLAUSE}(?:, *{_CLAUSE})*,? *)?"
    ),
    Language.NODE: re.compile(r"(?P<name>(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*)(?:@[\w.^~<>=*|\s-]+)?"),
    Language.R: re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9.]*)"),
}
_SAID = {
    Language.PYTHON: "`import {}`",
    Language.NODE: "`require('{}')`",
    Language.R: "`library({})`",
}
_BY_NAME = {
    Language.PYTHON: "`%pip install {}`",
    Language.NODE: "`npm install {}`",
    Language.R: '`install.packages("{}")`',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallAsked:
    """By code: for modules that it imports, or for packages by name."""

    language: Language
    modules: tuple[str, ...] = ()
    """the longest name first: the first for which there is a package counts"""
    requirements: tuple[str, ...] = ()
    guarded: bool = False
    """the code has its own answer to the module being absent, so nothing is installed"""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallTold:
    """What came of it, for who asked and for the cell's result."""

    installed: tuple[str, ...] = ()
    """`name==version`"""
    present: tuple[str, ...] = ()
    refused: str = ""
    """why not, in a sentence; empty if it is there now"""
    correction: Correction | None = None


@dataclass(slots=True)
class _Failed:
    at: float
    problem: PackageRefused


@dataclass(slots=True)
class _Memory:
    """Failures of late, so that a loop over an import costs one try."""

    kept: OrderedDict[tuple[str, ...], _Failed] = field(default_factory=OrderedDict)
    unknown: OrderedDict[MountId, deque[float]] = field(default_factory=OrderedDict)
    """when names were asked for that are on no list"""

    def add(self, key: tuple[str, ...], failed: _Failed) -> None:
        self.kept[key] = failed
        if len(self.kept) > _MOST_REMEMBERED:
            self.kept.popitem(last=False)

    def check_known(self, mount: MountId, now: float) -> None:
        """BARRIER: what is nearest to a name costs the server time, and a guest can make up any number of names; held
        by tests/unit/core/test_installs.py.
        """
        asked = self.unknown.get(mount)
        if asked is not None and len(asked) == _MOST_UNKNOWN and now - asked[0] < _UNKNOWN_WITHIN_S:
            raise refusal(
                f"{_MOST_UNKNOWN} names that are on no list were asked for within a minute: wait for the next",
                PackageRule.NOT_SUPPORTED,
            )

    def was_unknown(self, mount: MountId, now: float) -> None:
        self.unknown.setdefault(mount, deque(maxlen=_MOST_UNKNOWN)).append(now)
        if len(self.unknown) > _MOST_REMEMBERED:
            self.unknown.popitem(last=False)


class Installs:
    """One per service."""

    def __init__(
        self,
        *,
        policy: PackagePolicy,
        lists: Mapping[Language, PackageLists],
        installers: Mapping[Language, PackageInstaller],
        clock: Clock,
    ) -> None:
        self._policy = policy
        self._lists = lists
        self._installers = installers
        self._clock = clock
        self._failed = _Memory()

    def policy_of(self, session: Session) -> PackagePolicy:
        """A session may have less than the server allows, never more."""
        own = session.spec.config.sandbox.packages
        return self._policy if own is None else self._policy.narrowed(own)

    async def install(
        self, session: Session, asked: InstallAsked, tell: Callable[[str], None] = lambda _: None
    ) -> InstallTold:
        """Never raises because of what was asked for; a refusal is told.

        Raises:
            InvalidRequest: what was asked for makes no sense.
        """
        if asked.language not in self._installers:
            raise InvalidRequest(f"nothing is installed for {asked.language}")
        began = self._clock.monotonic()
        try:
            wanted = await self._known(session, asked)
            if asked.guarded:
                return _optional(asked, wanted)
            done = await self._done(asked.language, wanted, tell)
        except PackageRefused as problem:
            return _refused(asked, problem)
        strange = self._unreviewed(asked.language, wanted) if done.pins else []
        return _told(asked, wanted, done, self._clock.monotonic() - began, strange)

    def _unreviewed(self, language: Language, wanted: Wanted) -> list[str]:
        """What was installed because the policy is wide: whoever reads the result is told each time."""
        lists, strange = self._lists[language], []
        # What an import led to has the index's own name, which nobody wrote.
        check = lists.providing if wanted.modules else lists.admitted
        for name in wanted.modules or [_name_in(language, one) for one in wanted.requirements]:
            try:
                check(name, PackagePolicy.SUPPORTED)
            except PackageRefused:
                strange.append(name)
        return strange

    async def _known(self, session: Session, asked: InstallAsked) -> Wanted:
        self._failed.check_known(session.mount, self._clock.monotonic())
        try:
            # Aside: a name that is on no list is compared with thousands.
            return await asyncio.to_thread(self._wanted, session, asked)
        except PackageRefused as problem:
            if rule_of(problem) is PackageRule.NOT_SUPPORTED:
                self._failed.was_unknown(session.mount, self._clock.monotonic())
            raise

    def _wanted(self, session: Session, asked: InstallAsked) -> Wanted:
        policy = self.policy_of(session)
        lists = self._lists[asked.language]
        if policy is PackagePolicy.OFF:
            raise self._switched_off(lists, asked)
        if asked.requirements:
            # BARRIER: whatever stands here is given to an installer; held by tests/unit/core/test_installs.py.
            names = [_name_in(asked.language, one) for one in asked.requirements]
            for name in names:
                lists.admitted(name, policy)
            return Wanted(mount=session.mount, requirements=asked.requirements)
        module, distribution = _providing(lists, asked.modules, policy)
        return Wanted(mount=session.mount, requirements=(distribution,), modules=(module,))

    def _switched_off(self, lists: PackageLists, asked: InstallAsked) -> PackageRefused:
        if asked.requirements:
            named = ", ".join(_name_in(asked.language, one) for one in asked.requirements)
            return refusal(f"installs are switched off here, so {named} is not installed", PackageRule.OFF)
        module, distribution = _providing(lists, asked.modules, PackagePolicy.SUPPORTED)
        return refusal(
            f"{module!r} is in the package {distribution}, which is not here, and installs are switched off; "
            "ask who runs this workbench",
            PackageRule.OFF,
        )

    async def _done(self, language: Language, wanted: Wanted, tell: Callable[[str], None]) -> Installed:
        key = (wanted.mount, language.value, *wanted.requirements)
        failed = self._failed.kept.get(key)
        if failed is not None and self._clock.monotonic() - failed.at < _FAILED_FOR_S:
            raise failed.problem
        lists = self._lists[language]
        try:
            # What a package needs may come with it, except what the operator rules out.
            return await self._installers[language].install(
                wanted, lambda name: _check_needed(lists, name, wanted), tell
            )
        except PackageRefused as problem:
            # What is in the way of two that came at once is not in the way of the next.
            if rule_of(problem) is not PackageRule.CONFLICT:
                self._failed.add(key, _Failed(self._clock.monotonic(), problem))
            raise

    async def installed(self, mount: MountId, language: Language = Language.PYTHON) -> tuple[str, ...]:
        """`name==version` of all that was installed for those of a mount."""
        return await self._installers[language].installed(mount)


def read_asked(arguments: Mapping[str, Any]) -> InstallAsked:
    """What code in a sandbox sent.

    Raises:
        InvalidRequest: it is not a question for packages.
    """
    try:
        language = Language(arguments.get("language", ""))
    except ValueError:
        raise InvalidRequest(f"no such language: {str(arguments.get('language'))[:40]!r}") from None
    modules = _names(arguments, "modules", _MOST_MODULES)
    requirements = _names(arguments, "requirements", MOST_NAMES)
    if bool(modules) == bool(requirements):
        raise InvalidRequest("either modules or requirements must be named")
    for module in modules:
        # BARRIER: what is no name reaches no list; held by tests/unit/core/test_installs.py.
        if not _MODULE.fullmatch(module):
            raise InvalidRequest(f"not the name of a module: {module[:60]!r}")
    line = arguments.get("line")
    return InstallAsked(
        language=language,
        modules=modules,
        requirements=requirements,
        guarded=arguments.get("guarded") is True,
        line=line if type(line) is int and 0 <= line < _MOST_LINE else 0,
    )


def _names(arguments: Mapping[str, Any], what: str, most: int) -> tuple[str, ...]:
    names = arguments.get(what) or []
    if not isinstance(names, list) or len(names) > most:
        raise InvalidRequest(f"{what} must be a list of at most {most} names")
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > _MOST_CHARACTERS:
            raise InvalidRequest(f"{what} must be names of at most {_MOST_CHARACTERS} characters")
    return tuple(name.strip() for name in names)


def _name_in(language: Language, requirement: str) -> str:
    found = _REQUIREMENTS[language].fullmatch(requirement) if len(requirement) <= _MOST_CHARACTERS else None
    if found is None:
        raise refusal(
            f"{requirement[:80]!r} is not a name with versions; addresses, paths and options are never installed from",
            PackageRule.NOT_SUPPORTED,
        )
    return found["name"]


def _providing(lists: PackageLists, modules: tuple[str, ...], policy: PackagePolicy) -> tuple[str, str]:
    """The first module for which there is a package, with it; the reason of the first if there is none."""
    problem: PackageRefused | None = None
    for module in modules:
        try:
            distribution = lists.providing(module, policy)
        except PackageRefused as refused:
            problem = problem or refused
        else:
            return _provided(lists, module, distribution, policy), distribution
    assert problem is not None
    raise problem


def _provided(lists: PackageLists, module: str, distribution: str, policy: PackagePolicy) -> str:
    """What of a dotted name is the package's own: `docx` of `docx.Document`, and all of `google.cloud.storage`."""
    while "." in module:
        shorter = module.rpartition(".")[0]
        try:
            if lists.providing(shorter, policy) != distribution:
                break
        except PackageRefused:
            break
        module = shorter
    return module


def _check_needed(lists: PackageLists, name: str, wanted: Wanted) -> None:
    try:
        lists.admitted(name, PackagePolicy.ANY)
    except PackageRefused as problem:
        raise refusal(f"{wanted.requirements[0]} needs {name}: {problem.message}", rule_of(problem)) from problem


def _said(language: Language, wanted: Wanted) -> str:
    return _SAID[language].format(", ".join(wanted.modules))


def _optional(asked: InstallAsked, wanted: Wanted) -> InstallTold:
    # R's own name of a package: of the distribution's, `install.packages` knows nothing.
    name = wanted.modules[0] if asked.language is Language.R else wanted.requirements[0]
    text = (
        f"{_said(asked.language, wanted)} failed and the code goes on without it, so nothing was installed; "
        f"{_BY_NAME[asked.language].format(name)} would bring it"
    )
    hint = Correction(kind=CorrectionKind.HINT, rule=PackageRule.OPTIONAL, text=text, line=asked.line)
    return InstallTold(refused=text, correction=hint)


def _told(asked: InstallAsked, wanted: Wanted, done: Installed, seconds: float, unreviewed: list[str]) -> InstallTold:
    pins, present = tuple(map(str, done.pins)), tuple(map(str, done.present))
    if not pins:
        return InstallTold(present=present)
    why = f" for {_said(asked.language, wanted)}" if wanted.modules else ""
    warning = f"; nobody has reviewed {', '.join(unreviewed)} for this workbench" if unreviewed else ""
    correction = Correction(
        kind=CorrectionKind.INSTALLED,
        rule=PackageRule.INSTALL,
        text=f"installed {', '.join(pins)}{why} in {seconds:.2f} s{warning}",
        line=asked.line,
        packages=pins,
        seconds=round(seconds, 3),
    )
    return InstallTold(installed=pins, present=present, correction=correction)


def _refused(asked: InstallAsked, problem: PackageRefused) -> InstallTold:
    rule = rule_of(problem)
    if asked.guarded and rule is not PackageRule.OFF:
        # The code knows what to do, and there is nothing better to offer.
        return InstallTold(refused=problem.message)
    hint = Correction(kind=CorrectionKind.HINT, rule=rule, text=problem.message, line=asked.line)
    return InstallTold(refused=problem.message, correction=hint)
