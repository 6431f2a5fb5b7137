"""Packages of R, put into overlays from the distribution by apt and dpkg, without root and without a compiler.

Versions are the distribution's; whether a package may be there is for the lists to say.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from workbench.contracts.packages import refusal
from workbench.model.ids import MountId
from workbench.model.packages import Installed, Language, PackageRule, Pin, Wanted
from workbench.packages.limits import InstallLimits
from workbench.packages.overlays import check_weight, in_thread, locked, staged, watched, weight, within
from workbench.packages.r_lists import PREFIXES, debian_name
from workbench.packages.running import Ran, environment, run

LIBRARY = "library"
# In each folder of a library: from which package of the distribution it is. It comes and goes with the folder.
_MARK = ".from"
_LISTS = Path("/var/lib/apt/lists")
_WHERE = ("usr/lib/R/site-library", "usr/lib/R/library")
# BARRIER: these become arguments of apt-get, where a path or an option would be obeyed; held by
# tests/unit/packages/test_apt_r.py.
_PACKAGE = re.compile(r"r-(?:cran|bioc)-[a-z0-9][a-z0-9.+-]*")
_INST = re.compile(r"^Inst (?P<name>\S+) (?:\[(?P<old>[^\]]+)\] )?\((?P<version>\S+)", re.MULTILINE)
_NO_APT = "packages of R are installed by apt-get, which the machine of this workbench does not have"
_NO_LISTS = "this machine has no lists of what the distribution has: its operator can get them (apt-get update)"
_MOST_PACKAGES = 300
_FEW = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One line of apt's plan."""

    pin: Pin
    upgrades: bool
    """another version is on the machine"""


class AptInstaller:
    """Keeps, for each mount, `<root>/<mount>/r/library`. A package appears there whole, after those that it needs.

    What is on the machine already, sandboxes have too, and the plan leaves it out.
    """

    language = Language.R

    def __init__(self, root: Path, cache: Path, limits: InstallLimits) -> None:
        self._root = root
        self._cache = cache
        self._limits = limits
        self._env = environment(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C.UTF-8")

    async def install(self, wanted: Wanted, admit: Callable[[str], None], tell: Callable[[str], None]) -> Installed:
        """See the contract. Requirements are names of R or of Debian: `DESeq2`, `r-bioc-deseq2`."""
        asked = list(dict.fromkeys(debian_name(name) for name in wanted.requirements))
        for name in asked:
            if not _PACKAGE.fullmatch(name):
                raise refusal(f"{name[:100]!r} is not a package of R in the distribution", PackageRule.NOT_SUPPORTED)
        if any(shutil.which(program, path=self._env["PATH"]) is None for program in ("apt-get", "dpkg-deb")):
            raise refusal(_NO_APT)
        home = self._root / wanted.mount / "r"
        async with (
            within(self._limits.timeout_s, f"installing {', '.join(asked)}"),
            locked(self._cache / "locks" / f"{wanted.mount}-r.lock"),
        ):
            there = _there(home)
            missing = [name for name in asked if name not in {pin.name for pin in there}]
            if missing:
                tell(f"looking up {', '.join(missing)}")
            pins = await self._plan(missing, there, admit) if missing else ()
            if pins:
                tell(f"installing {len(pins)} packages for {', '.join(missing)}")
                async with staged(home) as new:
                    await self._unpack(pins, new)
                    _check_modules(wanted.modules, (home / LIBRARY, new / LIBRARY))
                    await in_thread(_weigh, home, new, self._limits.max_bytes)
                    await in_thread(_moved, new / LIBRARY, home / LIBRARY)
        planned = {pin.name for pin in pins}
        present = [pin for pin in there if pin.name in asked]
        on_machine = [name for name in missing if name not in planned]
        return Installed(
            pins=pins, present=(*present, *[Pin(name=name, version=await self._version(name)) for name in on_machine])
        )

    async def installed(self, mount: MountId) -> tuple[str, ...]:
        """As the contract says."""
        return tuple(sorted(map(str, await in_thread(_there, self._root / mount / "r"))))

    async def aclose(self) -> None:
        """Each install ends what it started; nothing runs besides."""

    async def _plan(self, names: list[str], there: frozenset[Pin], admit: Callable[[str], None]) -> tuple[Pin, ...]:
        """What is to be unpacked, each after what it needs."""
        ran = await self._apt("install", "-s", *names)
        if ran.code:
            raise refusal(_told(ran))
        steps = _steps(ran.stdout)
        _check(names, steps)
        pins = tuple(step.pin for step in steps if step.pin not in there)
        for pin in pins:
            if pin.name not in names:
                admit(pin.name)
        return pins

    async def _unpack(self, pins: tuple[Pin, ...], new: Path) -> None:
        archives = self._cache / "debs"
        archives.mkdir(parents=True, exist_ok=True)
        # One at a time: two that download the same file into one folder would write it both.
        async with locked(self._cache / "locks" / "debs.lock"):
            ran = await self._apt("download", *[f"{pin.name}={pin.version}" for pin in pins], cwd=archives)
        if ran.code:
            raise refusal(_told(ran))
        (new / LIBRARY).mkdir()
        for pin in pins:
            archive = _archive(archives, pin)
            into = new / "unpacked" / pin.name
            into.mkdir(parents=True)
            ran = await watched(self._run("dpkg-deb", "-x", str(archive), str(into)), new, self._limits.max_bytes)
            if ran.code:
                raise refusal(_told(ran))
            await in_thread(_taken, into, new / LIBRARY, pin)

    async def _version(self, name: str) -> str:
        ran = await self._run("dpkg-query", "-W", "-f=${Version}", name)
        return ran.stdout.strip() if ran.code == 0 else ""

    async def _apt(self, command: str, *arguments: str, cwd: Path = Path("/")) -> Ran:
        # As root it would download as another user, who may not write into our folder.
        own = ("-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=1")
        return await self._run("apt-get", command, "-qq", "--no-install-recommends", *own, *arguments, cwd=cwd)

    async def _run(self, *argv: str, cwd: Path = Path("/")) -> Ran:
        return await run(argv, env=self._env, cwd=cwd, timeout_s=self._limits.timeout_s)


def _steps(plan: str) -> list[_Step]:
    return [
        _Step(pin=Pin(name=found["name"].partition(":")[0], version=found["version"]), upgrades=bool(found["old"]))
        for found in _INST.finditer(plan)
    ]


def _check(names: list[str], steps: list[_Step]) -> None:
    """Raises: PackageRefused if the plan has anything that cannot simply be put beside what is there."""
    system = [step.pin.name for step in steps if not step.pin.name.startswith(PREFIXES)]
    if system:
        few = ", ".join(system[:_FEW]) + (", …" if len(system) > _FEW else "")
        raise refusal(
            f"{', '.join(names)} needs {len(system)} system package{'s' * (len(system) > 1)} ({few}): "
            f"the operator can put it into the image or onto the machine: apt-get install {' '.join(names)}"
        )
    if upgraded := [step.pin for step in steps if step.upgrades]:
        raise refusal(
            f"{', '.join(names)} needs {upgraded[0].name} in version {upgraded[0].version}, and there is another",
            PackageRule.CONFLICT,
        )
    if len(steps) > _MOST_PACKAGES:
        raise refusal(f"it needs {len(steps)} packages, and {_MOST_PACKAGES} are the most")


def _archive(folder: Path, pin: Pin) -> Path:
    # The rest of the name is the architecture; the colon after an epoch is written as in addresses.
    found = sorted(folder.glob(f"{pin.name}_{pin.version.replace(':', '%3a')}_*.deb"))
    if not found:
        raise refusal(f"apt-get did not bring {pin}")
    return found[0]


def _taken(unpacked: Path, library: Path, pin: Pin) -> None:
    """The folders of R's library out of what a package holds; manuals and the like stay behind."""
    for where in _WHERE:
        if (unpacked / where).is_dir():
            for folder in (unpacked / where).iterdir():
                (folder / _MARK).write_text(f"{pin.name} {pin.version}")
                folder.rename(library / folder.name)
    shutil.rmtree(unpacked)


def _moved(library: Path, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for folder in (into.parent, into):
        folder.chmod(0o755)
    # In the order in which they were unpacked, so that a library whose folder is seen has what it needs.
    for folder in sorted(library.iterdir(), key=lambda one: (one / _MARK).stat().st_mtime_ns):
        target = into / folder.name
        if target.exists():
            # Another version, of a distribution that went on; aside first, as a full folder is not written over.
            target.rename(library / f"{folder.name}.old")
        folder.rename(target)


def _there(home: Path) -> frozenset[Pin]:
    pins: set[Pin] = set()
    for mark in (home / LIBRARY).glob(f"*/{_MARK}"):
        name, _, version = mark.read_text().partition(" ")
        pins.add(Pin(name=name, version=version))
    return frozenset(pins)


def _weigh(home: Path, new: Path, most: int) -> None:
    check_weight(new, most - weight(home))


def _check_modules(modules: Iterable[str], libraries: Iterable[Path]) -> None:
    """R's names have capitals, and Debian's have none. Raises: PackageRefused with the right one."""
    have = [one.name for library in libraries if library.is_dir() for one in library.iterdir()]
    for module in modules:
        right = [one for one in have if one.lower() == module.lower()]
        if right and module not in right:
            raise refusal(f"no package is called {module!r}; did you mean {right[0]!r}?", PackageRule.NOT_SUPPORTED)


def _told(ran: Ran) -> str:
    errors = [line[2:].strip() for line in ran.stderr.splitlines() if line.startswith("E:")]
    # Where the operator's mirror is, is not the agent's affair.
    errors = [re.sub(r"https?://\S*/", "", line) for line in errors]
    said = "; ".join(errors)[:300] or ran.stderr.strip()[:300] or f"it ended with {ran.code}"
    if "Unable to locate package" in said:
        if not any(_LISTS.glob("*_Packages*")):
            return _NO_LISTS
        return f"the distribution of this machine does not have it: {said}"
    if re.search(r"Failed to fetch|Temporary failure|Could not (?:resolve|connect)|Unable to connect", said):
        return f"the distribution's archive cannot be reached, and it was never installed here before: {said}"
    return f"apt-get cannot install it: {said}"
