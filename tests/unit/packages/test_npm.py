"""npm puts packages into overlays: a real npm, and a registry of our own."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.packages.registry import NEW, Registry, serving

from workbench.contracts.packages import PackageInstaller, refusal, rule_of
from workbench.errors import PackageRefused
from workbench.model.ids import mount_id
from workbench.model.packages import Installed, PackageRule, Wanted
from workbench.packages import npm as npm_module
from workbench.packages.limits import InstallLimits
from workbench.packages.npm import NpmInstaller

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="no npm on this machine")

MOUNT = mount_id("mount-1")
LIMITS = InstallLimits(max_bytes=1_000_000, timeout_s=60, min_age_days=7)


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as registry:
        yield registry


class Place:
    """An overlay, and what its installer asked and told."""

    def __init__(self, folder: Path, registry: Registry, limits: InstallLimits = LIMITS) -> None:
        self.modules = folder / "root" / MOUNT / "node" / "node_modules"
        self.mount = folder / "root" / MOUNT
        self.installer: PackageInstaller = NpmInstaller(folder / "root", folder / "cache", limits, registry.url)
        self.admitted: list[str] = []
        self.told: list[str] = []
        self.denied = ""

    async def install(self, *requirements: str) -> Installed:
        return await self.installer.install(
            Wanted(mount=MOUNT, requirements=requirements), self._admit, self.told.append
        )

    def _admit(self, name: str) -> None:
        self.admitted.append(name)
        if name == self.denied:
            raise refusal(f"{name} is denied", PackageRule.NOT_SUPPORTED)

    def version(self, name: str) -> str:
        return str(json.loads((self.modules / name / "package.json").read_text())["version"])

    def seen(self) -> list[str]:
        """Names in the overlay's folder, which must hold nothing half-done."""
        return sorted(one.name for one in self.mount.iterdir()) if self.mount.exists() else []


async def test_packages_come_with_what_they_need_and_stay_in_their_versions(tmp_path: Path, registry: Registry) -> None:
    place = Place(tmp_path, registry)
    marks = tmp_path / "script-ran"
    registry.add("dep", "2.0.0")
    registry.add("dep", "2.9.0", made=NEW)
    registry.add("main", "1.0.0", dependencies={"dep": "^2.0.0"}, scripts={"postinstall": f"touch {marks}"})
    done = await place.install("main")
    assert [str(pin) for pin in done.pins] == ["dep==2.0.0", "main==1.0.0"], "nothing that is too new"
    assert place.admitted == ["dep"]
    assert place.told[-1] == "install scripts were not run: main"
    assert not marks.exists()
    # A second one leaves the first where it is, and readers of its files with them.
    with (place.modules / "main" / "index.js").open() as reader:
        registry.add("other", "3.1.0")
        registry.add("other", "3.2.0")
        assert [str(pin) for pin in (await place.install("other@3.1.0", "main")).pins] == ["other==3.1.0"]
        assert reader.read() == "module.exports = '1.0.0'"
    assert place.admitted == ["dep"]
    asked = len(registry.asked)
    again = await place.install("main", "other")
    assert (again.pins, [str(pin) for pin in again.present]) == ((), ["main==1.0.0", "other==3.1.0"])
    assert len(registry.asked) == asked, "nobody is asked for what is there"
    # Another version by name is another version.
    assert [str(pin) for pin in (await place.install("other@3.2.0")).pins] == ["other==3.2.0"]
    assert await place.installer.installed(MOUNT) == ("dep==2.0.0", "main==1.0.0", "other==3.2.0")
    assert place.seen() == ["node"]
    assert oct((place.mount / "node").stat().st_mode)[-3:] == "755"


async def test_what_is_refused_changes_nothing(tmp_path: Path, registry: Registry) -> None:
    place = Place(tmp_path, registry)
    registry.add("good", "1.0.0")
    registry.add("denied", "1.0.0")
    registry.add("bad", "1.0.0", dependencies={"denied": "*"})
    registry.add("heavy", "1.0.0", size=2_000_000)
    registry.add("young", "1.0.0", made=NEW)
    place.denied = "denied"
    await place.install("good")
    for name, why in (
        ("bad", "denied is denied"),
        ("heavy", "too large: a session's packages of one language may weigh 1 MB"),
        ("young", "versions must be at least 7 days old here"),
        ("absent", "npm's registry has no such package: absent$"),
    ):
        with pytest.raises(PackageRefused, match=why):
            await place.install(name)
        assert await place.installer.installed(MOUNT) == ("good==1.0.0",)
        assert place.seen() == ["node"]


def _knows_where_packages_may_be_from() -> bool:
    told = subprocess.run(["npm", "config", "ls", "-l"], capture_output=True, text=True, check=False, timeout=60)
    return "allow-remote" in told.stdout


async def test_an_address_that_a_package_names_is_never_asked(tmp_path: Path, registry: Registry) -> None:
    if not _knows_where_packages_may_be_from():
        pytest.skip("this npm asks addresses that packages name, before its plan is refused")
    registry.add("inner", "1.0.0")
    with serving() as elsewhere:
        elsewhere.add("inner", "1.0.0")
        (path,) = elsewhere.tarballs
        registry.add("outer", "1.0.0", dependencies={"inner": elsewhere.url + path})
        with pytest.raises(PackageRefused):
            await Place(tmp_path, registry).install("outer")
        assert elsewhere.asked == []


@pytest.mark.long
async def test_without_a_registry_what_was_here_before_is_installed(tmp_path: Path) -> None:
    with serving() as registry:
        registry.add("one", "1.0.0")
        place = Place(tmp_path, registry)
        await place.install("one")
    shutil.rmtree(place.mount)
    assert [str(pin) for pin in (await place.install("one")).pins] == ["one==1.0.0"]
    with pytest.raises(PackageRefused, match="registry cannot be reached"):
        await place.install("two")


async def test_who_is_cancelled_or_too_slow_leaves_nothing_half_done(tmp_path: Path, registry: Registry) -> None:
    registry.add("one", "1.0.0")
    place = Place(tmp_path, registry)
    task = asyncio.create_task(place.install("one"))
    while not place.told:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert place.seen() == []
    hasty = Place(tmp_path, registry, InstallLimits(max_bytes=1, timeout_s=0.05, min_age_days=0))
    with pytest.raises(PackageRefused, match=r"installing one took longer than 0.05 s"):
        await hasty.install("one")
    assert place.seen() == []


async def test_without_npm_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PackageRefused, match="apt-get install npm"):
        await Place(tmp_path, Registry()).install("one")


async def test_paths_and_packages_of_no_use_never_reach_npm(tmp_path: Path) -> None:
    place = Place(tmp_path, Registry())
    for requirement, rule in (("../x", PackageRule.NOT_SUPPORTED), ("puppeteer", PackageRule.SCRIPTS_SKIPPED)):
        with pytest.raises(PackageRefused) as problem:
            await place.install(requirement)
        assert rule_of(problem.value) is rule
    assert place.told == []


@pytest.mark.parametrize(
    "entry",
    [
        {"version": "1.0.0", "dependencies": {"x": "git+https://example.com/x.git"}},
        {"version": "1.0.0", "dependencies": {"x": "someone/repository"}},
        {"version": "1.0.0", "optionalDependencies": {"x": "https://example.com/x.tgz"}},
        {"version": "1.0.0", "resolved": "git+ssh://git@example.com/x.git"},
        {"version": "1.0.0", "resolved": "file:../x"},
        {"link": True, "resolved": "../x"},
    ],
)
def test_a_plan_with_anything_from_elsewhere_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(PackageRefused, match="not on the registry"):
        npm_module._planned({"packages": {"": {}, "node_modules/main": entry}})


def test_a_plan_is_of_what_this_machine_gets_under_its_real_names() -> None:
    packages: dict[str, Any] = {
        "": {},
        "node_modules/a": {"version": "1.0.0", "dependencies": {"alias": "npm:real@1"}},
        "node_modules/a/node_modules/@s/b": {"version": "2.0.0", "hasInstallScript": True},
        "node_modules/alias": {"name": "real", "version": "1.0.0"},
        "node_modules/mac": {"version": "1.0.0", "os": ["darwin"]},
        "node_modules/nowin": {"version": "1.0.0", "os": ["!win32"]},
    }
    planned = npm_module._planned({"packages": packages})
    assert sorted(map(str, planned.pins)) == ["@s/b==2.0.0", "a==1.0.0", "nowin==1.0.0", "real==1.0.0"]
    assert planned.with_scripts == ("@s/b",)
