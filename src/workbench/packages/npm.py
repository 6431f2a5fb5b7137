"""Packages of Node, put into overlays by the machine's npm. Whether one may be there is for the lists to say."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from workbench.contracts.packages import refusal
from workbench.model.ids import MountId
from workbench.model.packages import Installed, Language, PackageRule, Pin, Wanted
from workbench.packages.limits import InstallLimits
from workbench.packages.node_lists import NodeRequirement, parsed
from workbench.packages.node_scripts import useless_without
from workbench.packages.overlays import check_weight, in_thread, locked, staged, swap, watched, within
from workbench.packages.running import Ran, environment, run

MODULES = "node_modules"
_LOCK, _PROJECT = "package-lock.json", "package.json"
# npm writes down here what is really there; the other one has packages for other machines too.
_HIDDEN_LOCK = f"{MODULES}/.package-lock.json"
_NO_NPM = "npm is not on the machine of this workbench: its operator can install it (apt-get install npm)"
# How npm says that it got through to nobody. A registry that answers with a failure of its own is as good as none.
_UNREACHABLE = re.compile(
    r"ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|E50[0-9]"
)
_NOT_CACHED = "ENOTCACHED"
# Addresses, repositories and paths all have one of these marks; versions and tags have none.
_ELSEWHERE = re.compile(r"[:/]")
_ALIAS = "npm:"
_ADDRESS = re.compile(r"https?://\S*?([^/\s]*)(?=\s|$)")
_MOST_PACKAGES = 1500
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class _Planned:
    """What npm wants to have in a tree."""

    pins: frozenset[Pin]
    with_scripts: tuple[str, ...]


class NpmInstaller:
    """Keeps, for each mount, `<root>/<mount>/node/node_modules` with the project and lock files that it was made from.

    Each install is made in a folder of its own and put in place by one rename, so that a session's programs see all
    of it or nothing. Install scripts are never run, and git is not asked.
    """

    language = Language.NODE

    def __init__(self, root: Path, cache: Path, limits: InstallLimits, registry: str = "") -> None:
        self._root = root
        self._cache = cache
        self._limits = limits
        self._registry = registry
        # Found by npm through HOME: the machine's own configuration, with its registry and its certificates.
        self._env = environment(os.environ)

    async def install(self, wanted: Wanted, admit: Callable[[str], None], tell: Callable[[str], None]) -> Installed:
        """See the contract. One who asks for another version by name gets it: programs of Node begin anew each time."""
        asked = [parsed(requirement) for requirement in wanted.requirements]
        for one in asked:
            if why := useless_without(one.name):
                raise refusal(why, PackageRule.SCRIPTS_SKIPPED)
        if shutil.which("npm", path=self._env["PATH"]) is None:
            raise refusal(_NO_NPM)
        home = self._root / wanted.mount / "node"
        async with (
            within(self._limits.timeout_s, f"installing {', '.join(map(str, asked))}"),
            locked(self._cache / "locks" / f"{wanted.mount}-node.lock"),
        ):
            before = await in_thread(_there, home)
            present = {one.name: _present(home, one) for one in asked}
            missing = [one for one in asked if present[one.name] is None]
            if missing:
                tell(f"looking up {', '.join(map(str, missing))}")
                async with staged(home) as new:
                    await self._build(home, new, missing, admit, tell)
                    await in_thread(swap, new, home)
            after = await in_thread(_there, home)
        return Installed(
            pins=tuple(sorted(after - before, key=str)),
            present=tuple(pin for pin in present.values() if pin is not None)
            + tuple(pin for one in missing if (pin := _version(home, one.name)) in before and pin is not None),
        )

    async def installed(self, mount: MountId) -> tuple[str, ...]:
        """As the contract says."""
        return tuple(sorted(map(str, await in_thread(_there, self._root / mount / "node"))))

    async def aclose(self) -> None:
        """Each install ends what it started; nothing runs besides."""

    async def _build(
        self,
        home: Path,
        new: Path,
        missing: list[NodeRequirement],
        admit: Callable[[str], None],
        tell: Callable[[str], None],
    ) -> None:
        """The tree with what is missing, in `new`."""
        wants = _dependencies(home) | {one.name: one.versions for one in missing}
        (new / _PROJECT).write_text(json.dumps({"name": "packages", "private": True, "dependencies": wants}))
        if (home / _LOCK).exists():
            # What is there stays in its version, unless it is asked for by another.
            shutil.copyfile(home / _LOCK, new / _LOCK)
        await self._npm(new, "--package-lock-only", *self._age())
        planned = _planned(json.loads((new / _LOCK).read_text()))
        for name in sorted({pin.name for pin in planned.pins} - set(wants) - {pin.name for pin in _there(home)}):
            admit(name)
        tell(f"installing {len(planned.pins)} packages for {', '.join(map(str, missing))}")
        if (home / MODULES).exists():
            await in_thread(_linked, home / MODULES, new / MODULES)
        await watched(self._npm(new, "--prefer-offline", *self._age()), new / MODULES, self._limits.max_bytes)
        await in_thread(check_weight, new / MODULES, self._limits.max_bytes)
        for one in missing:
            if _version(new, one.name) is None:
                raise refusal(f"npm installed nothing called {one.name}: it is not made for this machine")
        if planned.with_scripts:
            tell(f"install scripts were not run: {', '.join(planned.with_scripts)}")

    def _age(self) -> tuple[str, ...]:
        if not self._limits.min_age_days:
            return ()
        oldest = datetime.now(UTC) - timedelta(days=self._limits.min_age_days)
        # A whole day, so that what npm keeps of its answers can be used again.
        return (f"--before={oldest:%Y-%m-%d}",)

    async def _npm(self, folder: Path, *more: str) -> None:
        """`npm install` of what the folder says; from the cache alone if there is no network.

        Raises:
            PackageRefused: it failed.
        """
        ran = await self._run(folder, *more)
        if ran.code and _UNREACHABLE.search(_code(ran)):
            ran = await self._run(folder, *more, "--offline")
            if ran.code and _code(ran) == _NOT_CACHED:
                raise refusal("npm's registry cannot be reached, and what is needed was never installed here before")
        if ran.code:
            raise refusal(_told(ran, self._limits.min_age_days))

    async def _run(self, folder: Path, *more: str) -> Ran:
        # BARRIER: scripts of packages would run on the server, with its rights; held by
        # tests/unit/packages/test_npm.py.
        # Only what the registry has: an address that a package names would be asked from out here.
        safe = ("--ignore-scripts=true", "--git=/nonexistent/git", "--global=false", "--dry-run=false",
                "--allow-git=none", "--allow-remote=none", "--allow-file=none", "--allow-directory=none")  # fmt: skip
        quiet = ("--audit=false", "--fund=false", "--update-notifier=false", "--progress=false", "--loglevel=error",
                 "--logs-max=0", "--json")  # fmt: skip
        patience = ("--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=1000",
                    f"--fetch-timeout={int(self._limits.timeout_s * 1000)}")  # fmt: skip
        where = (f"--prefix={folder}", f"--cache={self._cache / 'npm'}", "--omit=dev", "--workspaces=false",
                 "--omit-lockfile-registry-resolved=false", "--install-links=true", "--package-lock=true",
                 "--package-lock-only=false", "--bin-links=true",
                 *([f"--registry={self._registry}"] if self._registry else []))  # fmt: skip
        return await run(
            ["npm", "install", *safe, *quiet, *patience, *where, *more],
            env=self._env,
            cwd=folder,
            timeout_s=self._limits.timeout_s,
        )


def _planned(lock: Mapping[str, Any]) -> _Planned:
    """What a lock file holds for this machine. Raises: PackageRefused for what is not from the registry."""
    entries = {path: entry for path, entry in lock.get("packages", {}).items() if path and _for_here(entry)}
    if len(entries) > _MOST_PACKAGES:
        raise refusal(f"it needs {len(entries):,} packages, and {_MOST_PACKAGES:,} are the most")
    pins: set[Pin] = set()
    for path, entry in entries.items():
        name = _name(path, entry)
        # BARRIER: a dependency of an admitted package may be written as an address, a repository or a path, which the
        # lists know nothing of; held by tests/unit/packages/test_npm.py.
        kinds = ("dependencies", "optionalDependencies", "peerDependencies")
        specs = {name: spec for kind in kinds for name, spec in entry.get(kind, {}).items()}
        strange = [spec for spec in specs.values() if _ELSEWHERE.search(str(spec)) and not str(spec).startswith(_ALIAS)]
        if strange or entry.get("link") or str(entry.get("resolved", "https:")).split(":")[0] not in ("https", "http"):
            where = strange[0] if strange else entry.get("resolved")
            raise refusal(f"{name} wants something that is not on the registry: {str(where)[:100]}")
        pins.add(Pin(name=name, version=str(entry.get("version", ""))))
    scripts = sorted({_name(path, entry) for path, entry in entries.items() if entry.get("hasInstallScript")})
    return _Planned(frozenset(pins), tuple(scripts))


def _name(path: str, entry: Mapping[str, Any]) -> str:
    # Under another name it says which it really is.
    return str(entry.get("name") or path.rpartition(f"{MODULES}/")[2])


def _for_here(entry: Mapping[str, Any]) -> bool:
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return all(
        here in named or (all(one.startswith("!") for one in named) and f"!{here}" not in named)
        for here, named in (("linux", entry.get("os", ())), (machine, entry.get("cpu", ())))
        if named
    )


def _there(home: Path) -> frozenset[Pin]:
    try:
        lock = json.loads((home / _HIDDEN_LOCK).read_text())
    except FileNotFoundError:
        return frozenset()
    return frozenset(
        Pin(name=_name(path, entry), version=str(entry.get("version", ""))) for path, entry in lock["packages"].items()
    )


def _dependencies(home: Path) -> dict[str, str]:
    try:
        return dict(json.loads((home / _PROJECT).read_text())["dependencies"])
    except FileNotFoundError:
        return {}


def _version(home: Path, name: str) -> Pin | None:
    """At the top of the tree, where programs find it."""
    try:
        described = json.loads((home / MODULES / name / _PROJECT).read_text())
    except FileNotFoundError:
        return None
    return Pin(name=name, version=str(described.get("version", "")))


def _present(home: Path, asked: NodeRequirement) -> Pin | None:
    there = _version(home, asked.name)
    return there if there is not None and asked.versions in ("*", there.version) else None


def _linked(source: Path, target: Path) -> None:
    """A copy whose files are the same ones: npm writes none anew, but for its own notes."""
    shutil.copytree(source, target, symlinks=True, copy_function=os.link)
    notes = target / ".package-lock.json"
    text = notes.read_bytes()
    notes.unlink()
    notes.write_bytes(text)


def _failure(ran: Ran) -> Mapping[str, Any]:
    try:
        said = json.loads(ran.stdout)
    except ValueError:
        return {}
    error = said.get("error") if isinstance(said, dict) else None
    return error if isinstance(error, dict) else {}


def _code(ran: Ran) -> str:
    return str(_failure(ran).get("code", ""))


def _told(ran: Ran, days: int) -> str:
    error = _failure(ran)
    said = str(error.get("summary") or ran.stderr or f"npm ended with {ran.code}")
    # Where the operator's registry is, is not the agent's affair.
    summary = re.sub(r"\s+", " ", _ADDRESS.sub(r"\1", said)).strip()[:300]
    if error.get("code") == "E404":
        return f"npm's registry has no such package: {summary.rpartition(' ')[2]}"
    if error.get("code") in ("ETARGET", "ENOVERSIONS") and days:
        return f"{summary.rstrip('.')}; versions must be at least {days} days old here"
    return f"npm cannot install it: {summary}"
