"""Packages of a session from outside: which its Python has, and which are to be installed before code runs."""

from __future__ import annotations

import json
import re
import shlex

from workbench.core import requests
from workbench.core.errands import Errands, Shell, last_words
from workbench.core.installs import InstallAsked, Installs, InstallTold
from workbench.core.places import Places
from workbench.errors import InvalidRequest, SandboxUnavailable

# As package indexes have them, without extras.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_MOST_NAMES, _MOST_VERSION = 100, 100
# Isolated: neither the home folder nor variables decide what is found, only what the kernel imports from by itself.
_ASK = """
import importlib.metadata as known, json, os, sys
packages = os.environ.get("WORKBENCH_PACKAGES_FOLDER") or "/mnt/packages"
sys.path.append(packages + "/python%d.%d" % sys.version_info[:2])
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = known.version(name)
    except known.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class Packages:
    """One project's."""

    def __init__(self, errands: Errands, places: Places, installs: Installs) -> None:
        self._errands = errands
        self._places = places
        self._installs = installs

    async def install(self, request: requests.InstallPackages) -> tuple[InstallTold, ...]:
        """What came of each; one that is refused does not keep the others out."""
        session = await self._places.enter(request.session)
        return tuple(
            [
                await self._installs.install(
                    session, InstallAsked(language=request.language, requirements=(requirement,))
                )
                for requirement in request.requirements
            ]
        )

    async def find(self, request: requests.FindPackages) -> dict[str, str]:
        """Name, as it was asked for, and version of those that are there."""
        if len(request.names) > _MOST_NAMES:
            raise InvalidRequest(f"ask for at most {_MOST_NAMES} packages, not {len(request.names)}")
        for name in request.names:
            if not _NAME.fullmatch(name):
                raise InvalidRequest(f"not the name of a package: {name[:60]!r}; for instance: pandas")

        async def work(shell: Shell) -> dict[str, str]:
            end = await shell.run(f"PATH=$all python3 -I -c {shlex.quote(_ASK)} {' '.join(request.names)}")
            if end.exit_code != 0:
                raise SandboxUnavailable(f"the sandbox's Python does not tell its packages: {last_words(end)[:200]}")
            return _checked(end.stdout.text, request.names)

        return await self._errands.run(request.session, work)


def _checked(text: str, names: tuple[str, ...]) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SandboxUnavailable("the sandbox's Python does not tell its packages")
    return {name: str(found[name])[:_MOST_VERSION] for name in names if name in found}
