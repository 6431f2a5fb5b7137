"""Python packages, by uv: a plan beside what the image has, exact pins without dependencies into the store, links into
the overlay. Wheels only: nothing of a package runs while it is installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import importlib.metadata
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.contracts.packages import refusal
from workbench.errors import PackageRefused
from workbench.model.ids import MountId
from workbench.model.packages import Installed, Language, PackageRule, Pin, Wanted
from workbench.packages.limits import InstallLimits
from workbench.packages.overlay import Overlay
from workbench.packages.overlays import in_thread, locked, watched
from workbench.packages.plans import Item, Plan, PlanMemory, plan_key, read_plan
from workbench.packages.running import Ran, run
from workbench.packages.stand_ins import stand_in_for_local_builds
from workbench.packages.store import Entry, Store

# Wheels are fetched beside each other; a small machine has better things to do than more of them.
_AT_ONCE = 4
# Compiling spares every later import of it the time; a package that takes longer is left as it is.
_COMPILE_S = 20.0
_CACHE = "cache"
# What strangers wrote is read by the compiler on this machine: within two gigabytes.
_BOUNDED = ("/bin/sh", "-c", 'ulimit -v 2000000 && exec "$@"', "sh")
_NO_CONNECTION = re.compile(
    r"error sending request|dns error|connection refused|failed to fetch|network (is )?unreachable|timed out|"
    r"could not connect|tcp connect error|offline|network was disabled",
    re.IGNORECASE,
)
_MOST_SAID = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The image beside which packages are installed."""

    python: str
    digest: str
    site: tuple[Path, ...]
    """folders with what it has"""
    version: str
    """of the interpreter, as `3.11`"""


class UvInstaller:
    """A PackageInstaller. `base` gives the image that sandboxes have now."""

    language = Language.PYTHON

    def __init__(
        self,
        *,
        uv: str,
        root: Path,
        kept: Path,
        base: Callable[[], Base],
        limits: InstallLimits,
        environment: Mapping[str, str],
    ) -> None:
        self._uv = uv
        self._root = root
        self._base = base
        self._limits = limits
        self._environment = {
            **environment,
            "UV_CACHE_DIR": str(kept / "uv"),
            "UV_NO_CONFIG": "1",
            "UV_NO_PROGRESS": "1",
            # Somebody waits: an index that does not answer is told soon, and asked again by the next who needs it.
            "UV_HTTP_RETRIES": "1",
        }
        self._kept = kept
        self._store = Store(kept / "store")
        self._plans = PlanMemory(kept / "plans")
        self._fetching, self._planning = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_AT_ONCE)
        self._known: dict[str, dict[str, str]] = {}

    async def install(self, wanted: Wanted, admit: Callable[[str], None], tell: Callable[[str], None]) -> Installed:
        """As the contract has it."""
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                return await self._install(wanted, admit, tell)
        except TimeoutError:
            raise refusal(
                f"{', '.join(wanted.requirements)} could not be installed within {self._limits.timeout_s:g} s"
            ) from None

    async def _install(self, wanted: Wanted, admit: Callable[[str], None], tell: Callable[[str], None]) -> Installed:
        base = self._base()
        image = await self._image_pins(base)
        # One at a time for a session, from the plan on: who asks for many at once waits for its own.
        async with locked(self._kept / "locks" / wanted.mount):
            return await self._install_alone(base, image, wanted, admit, tell)

    async def _install_alone(
        self,
        base: Base,
        image: Mapping[str, str],
        wanted: Wanted,
        admit: Callable[[str], None],
        tell: Callable[[str], None],
    ) -> Installed:
        overlay = Overlay(self._root / wanted.mount, f"python{base.version}")
        asked = {distribution_name(one) for one in wanted.requirements}
        tell(f"looking up {', '.join(sorted(asked))}")
        plan = await self._plan(base, wanted.requirements, image, overlay.pins())
        present = {**image, **overlay.pins()}
        missing = [item for item in plan.items if item.pin.name not in present]
        for item in missing:
            if item.pin.name not in asked:
                admit(item.pin.name)
        self._check_size(overlay.weight() + sum(item.size for item in missing))
        tell(f"fetching {', '.join(str(item.pin) for item in missing)}")
        entries = dict(zip(missing, await self._fetch(base, missing), strict=True))
        self._check_size(overlay.weight() + sum(entry.size for entry in entries.values()))
        _check_modules(wanted, [entry.files for entry in entries.values()], [overlay.site, *base.site])
        added = await in_thread(self._link, overlay, entries)
        named = [item.pin for item in plan.items if item.pin.name in asked]
        return Installed(pins=tuple(added), present=tuple(pin for pin in named if pin not in added))

    async def installed(self, mount: MountId) -> tuple[str, ...]:
        """As the contract has it."""
        pins = Overlay(self._root / mount, f"python{self._base().version}").pins()
        return tuple(f"{name}=={version}" for name, version in sorted(pins.items()))

    async def aclose(self) -> None:
        """Nothing outlives an install."""

    def _link(self, overlay: Overlay, entries: Mapping[Item, Entry]) -> list[Pin]:
        try:
            overlay.add({item.pin: entry for item, entry in entries.items()})
        except OSError as problem:
            raise refusal(f"what was fetched could not be put in place: {problem.strerror}; try again") from problem
        return [item.pin for item in entries]

    async def _image_pins(self, base: Base) -> dict[str, str]:
        # What arrives late changes the folder that it comes into.
        mark = f"{base.digest} {[one.stat().st_mtime_ns for one in base.site if one.is_dir()]}"
        if mark not in self._known:
            self._known = {mark: await asyncio.to_thread(_pins_in, base.site)}
        return self._known[mark]

    async def _plan(
        self, base: Base, requirements: tuple[str, ...], image: Mapping[str, str], overlay: Mapping[str, str]
    ) -> Plan:
        """What the image and the overlay have is never changed: a plan that would is made anew with both as given."""
        plan = await self._remembered(base, requirements, image, {})
        if any(overlay.get(item.pin.name, item.pin.version) != item.pin.version for item in plan.items):
            plan = await self._remembered(base, requirements, image, overlay)
        return plan

    async def _remembered(
        self, base: Base, requirements: tuple[str, ...], image: Mapping[str, str], overlay: Mapping[str, str]
    ) -> Plan:
        constraints = {**image, **overlay}
        key = plan_key(requirements, constraints, base.digest, str(self._limits.min_age_days), self._source())
        if (plan := self._plans.find(key)) is not None:
            return plan
        async with self._planning:
            ran = await self._compile(base, requirements, constraints)
        if ran.code and _NO_CONNECTION.search(ran.stderr):
            if (stale := self._plans.find(key, stale=True)) is not None:
                return stale
            ran = await self._compile(base, requirements, constraints, "--offline")
            if ran.code:
                raise refusal(
                    f"{_shown(requirements)} is not in the cache, and the package index cannot be reached: ask who "
                    "runs this workbench"
                )
        if ran.code:
            raise _unplannable(requirements, constraints, overlay, ran)
        try:
            plan = read_plan(ran.stdout)
        except (ValueError, KeyError, TypeError) as problem:
            raise refusal(f"{_shown(requirements)}: the plan of the install cannot be read: {problem}") from problem
        self._plans.keep(key, plan)
        return plan

    def _source(self) -> str:
        return " ".join(self._environment.get(name, "") for name in ("UV_DEFAULT_INDEX", "UV_INDEX"))

    async def _compile(
        self, base: Base, requirements: tuple[str, ...], constraints: Mapping[str, str], *more: str
    ) -> Ran:
        self._kept.mkdir(parents=True, exist_ok=True)
        old_enough = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=self._limits.min_age_days)
        with tempfile.TemporaryDirectory(prefix=".plan-", dir=self._kept) as name:
            folder = Path(name)
            (folder / "wanted.txt").write_text("\n".join(requirements), encoding="utf-8")
            pinned = "\n".join(f"{name}=={version}" for name, version in constraints.items())
            (folder / "constraints.txt").write_text(pinned, encoding="utf-8")
            local = await asyncio.to_thread(stand_in_for_local_builds, base.site, self._kept / "stand-ins")
            if local is not None:
                more = (*more, "--find-links", str(local))
            return await self._run(
                "pip", "compile", "wanted.txt", "--format", "pylock.toml", "--quiet", "--no-header",
                "--python", base.python, "--only-binary", ":all:", "--constraints", "constraints.txt",
                "--exclude-newer", old_enough.strftime("%Y-%m-%dT00:00:00Z"), *more,
                cwd=folder,
            )  # fmt: skip

    async def _fetch(self, base: Base, items: list[Item]) -> list[Entry]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(base, item)) for item in items]
        except ExceptionGroup as problems:
            # One reason is enough, and the first is the one that ended the others.
            raise problems.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _one(self, base: Base, item: Item) -> Entry:
        found = await asyncio.to_thread(self._store.find, f"{base.version}-{item.key}")
        if found is not None:
            return found
        async with self._fetching:
            return await self._unpacked(base, item)

    async def _unpacked(self, base: Base, item: Item) -> Entry:
        place = self._store.begin()
        try:
            hashes = " ".join(f"--hash={one}" for one in item.hashes)
            wanted = place.parent / "wanted.txt"
            wanted.write_text(f"{item.pin} {hashes}\n", encoding="utf-8")
            arguments = (
                "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:",
                "--python", base.python, "--target", str(place), "--requirement", str(wanted),
            )  # fmt: skip
            # With a cache of its own, which goes with it: what is watched here is all that it writes.
            fetching = self._run(*arguments, cwd=place.parent, UV_CACHE_DIR=str(place.parent / _CACHE))
            ran = await watched(fetching, place.parent, self._limits.max_bytes)
            if ran.code:
                raise refusal(f"{item.pin} cannot be installed: {_reason(ran.stderr)}")
            await in_thread(_only_the_package, place)
            with contextlib.suppress(TimeoutError):
                compiling = (*_BOUNDED, base.python, "-I", "-m", "compileall", "-q", "-s", str(place), str(place))
                await run(compiling, env={"PATH": "/usr/bin:/bin"}, cwd=place.parent, timeout_s=_COMPILE_S)
            return await in_thread(self._store.keep, f"{base.version}-{item.key}", place)
        finally:
            # Nothing is left of it but what was kept.
            await in_thread(self._store.drop, place)

    async def _run(self, *arguments: str, cwd: Path, **more: str) -> Ran:
        env = {**self._environment, **more}
        return await run((self._uv, *arguments), env=env, cwd=cwd, timeout_s=self._limits.timeout_s)

    def _check_size(self, size: int) -> None:
        if size > self._limits.max_bytes:
            raise refusal(
                f"with that, the session's packages would weigh {size // 2**20} MiB, and at most "
                f"{self._limits.max_bytes // 2**20} MiB may; who runs this workbench can put it into the image"
            )


def distribution_name(requirement: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]).lower()


def _pins_in(folders: tuple[Path, ...]) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(one) for one in folders])
    return {distribution_name(one.name): one.version for one in found}


def _check_modules(wanted: Wanted, new: list[Path], before: list[Path]) -> None:
    """A row of the table may be wrong, or a release may have dropped a module: then nothing is installed for it."""
    for module in wanted.modules:
        path = module.replace(".", "/")
        if not any(_has(folder, path) for folder in (*new, *before)):
            raise refusal(f"what {_shown(wanted.requirements)} brings has no module {module!r}")


def _has(folder: Path, path: str) -> bool:
    place = folder / path
    if place.is_dir() or place.with_name(place.name + ".py").exists():
        return True
    return any(place.parent.glob(f"{place.name}.*.so")) or any(place.parent.glob(f"{place.name}.so"))


def _only_the_package(folder: Path) -> None:
    """BARRIER: a `.pth` is code that every later Python would run at its start; held by
    tests/packages/test_python_overlay.py."""
    shutil.rmtree(folder.parent / _CACHE, ignore_errors=True)
    for pattern in ("*.pth", "sitecustomize*", "usercustomize*"):
        for found in folder.glob(pattern):
            if found.is_dir() and not found.is_symlink():
                shutil.rmtree(found)
            else:
                found.unlink()


def _shown(requirements: tuple[str, ...]) -> str:
    return ", ".join(requirements)


def _reason(said: str) -> str:
    """In one line, as far as it goes, without its drawing."""
    words = " ".join(re.sub(r"[^\x00-\x7f]+|^error:", " ", said, flags=re.MULTILINE).split())
    words = re.sub(r"https?://\S+", "the package index", words)
    return words[:_MOST_SAID] or "uv said nothing"


def _unplannable(
    requirements: tuple[str, ...], constraints: Mapping[str, str], overlay: Mapping[str, str], ran: Ran
) -> PackageRefused:
    for requirement in requirements:
        name = distribution_name(requirement)
        if name in constraints and f"{name}=={constraints[name]}" in ran.stderr:
            # What a session was given, the next session need not have.
            way_out = "a new session" if name in overlay else "a new image (`workbench image add`)"
            return refusal(
                f"{name} {constraints[name]} is there and stays, as what is loaded cannot be changed: "
                f"{requirement!r} needs {way_out}, or do with the version that is there",
                PackageRule.CONFLICT,
            )
    return refusal(f"{_shown(requirements)} cannot be installed: {_reason(ran.stderr)}")
