"""PackageLists and PackageInstaller: what may be installed, and who does it. One of each for a language.

For the author of the next one: the core has decided that a session may have something before it asks an installer, and
everything that an installer answers or raises is told to the agent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workbench.errors import PackageRefused
from workbench.model.ids import MountId
from workbench.model.packages import Installed, Language, PackagePolicy, PackageRule, Wanted


def refusal(message: str, rule: PackageRule = PackageRule.FAILED) -> PackageRefused:
    """The message is one sentence for the agent: what is refused, why, and what to do instead."""
    return PackageRefused(message, {"rule": rule})


def rule_of(problem: PackageRefused) -> PackageRule:
    """By which it was refused."""
    return PackageRule(problem.context.get("rule", PackageRule.FAILED))


class PackageLists(Protocol):
    """What is known of the packages of a language. Pure: asks nobody, and looks nothing up on an index."""

    @property
    def language(self) -> Language:
        """Whose packages."""
        ...

    def providing(self, module: str, policy: PackagePolicy) -> str:
        """The distribution that is installed for an import of `module`, in dotted notation.

        Raises:
            PackageRefused: there is none under this policy; the message names the right package, or the nearest, or
                the replacement, if there is one.
        """
        ...

    def admitted(self, distribution: str, policy: PackagePolicy) -> str:
        """The name of a distribution that was asked for by name, as the index writes it.

        Raises:
            PackageRefused: not under this policy; the message has the nearest name.
        """
        ...


class PackageInstaller(Protocol):
    """Puts packages into overlays. Owned by who wired it. Many installs at once are the normal case."""

    @property
    def language(self) -> Language:
        """Whose packages."""
        ...

    async def install(self, wanted: Wanted, admit: Callable[[str], None], tell: Callable[[str], None]) -> Installed:
        """Plan, check each item of the plan by `admit`, then put exactly those into the overlay.

        `admit` is called with the name of every distribution of the plan that was not asked for, and raises
        PackageRefused if it may not be there. `tell` takes a few words on what is being done. Installs into one
        overlay happen one after the other, also among processes. If the caller is cancelled, nothing half-done is
        left.

        Raises:
            PackageRefused: it cannot be; the overlay is as it was.
        """
        ...

    async def installed(self, mount: MountId) -> tuple[str, ...]:
        """`name==version` of everything in the overlay."""
        ...

    async def aclose(self) -> None:
        """End what runs."""
        ...
