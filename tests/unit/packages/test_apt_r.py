"""R's packages out of the distribution: apt's plans as it prints them, and a real one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from workbench.contracts.packages import PackageInstaller, rule_of
from workbench.errors import PackageRefused
from workbench.model.ids import mount_id
from workbench.model.packages import PackageRule, Pin, Wanted
from workbench.packages import apt_r
from workbench.packages.apt_r import AptInstaller
from workbench.packages.limits import InstallLimits
from workbench.packages.running import Ran

MOUNT = mount_id("mount-1")
LIMITS = InstallLimits(max_bytes=100_000_000, timeout_s=100, min_age_days=7)
PLAN = """NOTE: This is only a simulation!
Inst r-cran-r6 (2.5.1-1 Debian:12.15/oldstable [all])
Inst r-cran-cli:amd64 (3.6.0-1 Debian:12.15/oldstable [amd64])
Inst r-cran-withr [2.4.0-1] (2.5.0-1 Debian:12.15/oldstable [all]) []
Conf r-cran-r6 (2.5.1-1 Debian:12.15/oldstable [all])
"""


def installer(folder: Path, limits: InstallLimits = LIMITS) -> AptInstaller:
    return AptInstaller(folder / "root", folder / "cache", limits)


def _archive(folder: Path, name: str, version: str, library: str, size: int = 10) -> None:
    """A Debian package, as dpkg makes it."""
    tree = folder / "tree" / name
    (tree / "DEBIAN").mkdir(parents=True)
    about = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@example.com>\nDescription: x\n"
    (tree / "DEBIAN" / "control").write_text(about)
    (tree / "usr/lib/R/site-library" / library).mkdir(parents=True)
    (tree / "usr/lib/R/site-library" / library / "DESCRIPTION").write_text("x" * size)
    (tree / "usr/share/doc" / name).mkdir(parents=True)
    (folder / "cache" / "debs").mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["dpkg-deb", "-b", str(tree), str(folder / "cache" / "debs" / f"{name}_{version}_all.deb")],
        check=True, capture_output=True,
    )  # fmt: skip


class Planned(AptInstaller):
    """With a plan of ours, and archives that are in the cache already."""

    plan = ""

    async def _apt(self, command: str, *arguments: str, cwd: Path = Path("/")) -> Ran:
        return Ran(code=0, stdout=self.plan if command == "install" else "", stderr="")


def test_a_plan_is_read_as_apt_prints_it() -> None:
    steps = apt_r._steps(PLAN)
    assert [str(step.pin) for step in steps] == ["r-cran-r6==2.5.1-1", "r-cran-cli==3.6.0-1", "r-cran-withr==2.5.0-1"]
    assert [step.upgrades for step in steps] == [False, False, True]


def test_a_plan_with_system_packages_is_refused_with_what_the_operator_can_do() -> None:
    plan = PLAN + "".join(f"Inst lib{n} (1 Debian:12 [all])\n" for n in range(7))
    with pytest.raises(PackageRefused) as problem:
        apt_r._check(["r-cran-sf"], apt_r._steps(plan))
    assert rule_of(problem.value) is PackageRule.FAILED
    assert problem.value.message == (
        "r-cran-sf needs 7 system packages (lib0, lib1, lib2, lib3, lib4, …): the operator can put it into the image "
        "or onto the machine: apt-get install r-cran-sf"
    )


def test_what_is_on_the_machine_is_not_replaced() -> None:
    with pytest.raises(PackageRefused) as problem:
        apt_r._check(["r-cran-x"], apt_r._steps(PLAN))
    assert rule_of(problem.value) is PackageRule.CONFLICT


@pytest.mark.parametrize(
    "name", ["a b", "-o=x;y", "r-cran-x=1", "r-cran-x/sid", "./r-cran-x.deb", "r-cran-x;id", "r-cran-"]
)
async def test_only_packages_of_r_reach_apt(tmp_path: Path, name: str) -> None:
    with pytest.raises(PackageRefused, match="is not a package of R"):
        await installer(tmp_path).install(Wanted(mount=MOUNT, requirements=(name,)), lambda _: None, lambda _: None)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg on this machine")
async def test_libraries_appear_whole_and_what_is_there_is_not_unpacked_again(tmp_path: Path) -> None:
    _archive(tmp_path, "r-cran-r6", "2.5.1-1", "R6")
    _archive(tmp_path, "r-cran-main", "1.0-1", "Main")
    _archive(tmp_path, "r-cran-heavy", "1.0-1", "heavy", size=5000)
    apt = Planned(tmp_path / "root", tmp_path / "cache", InstallLimits(max_bytes=3000, timeout_s=60, min_age_days=0))
    apt.plan = "Inst r-cran-r6 (2.5.1-1 x [all])\nInst r-cran-main (1.0-1 x [all])\n"
    admitted: list[str] = []

    async def install(name: str, module: str) -> tuple[Pin, ...]:
        wanted = Wanted(mount=MOUNT, requirements=(name,), modules=(module,))
        return (await apt.install(wanted, admitted.append, lambda _: None)).pins

    home = tmp_path / "root" / MOUNT
    with pytest.raises(PackageRefused, match="did you mean 'Main'"):
        await install("r-cran-main", "main")
    assert await apt.installed(MOUNT) == ()
    admitted.clear()
    assert [str(pin) for pin in await install("r-cran-main", "Main")] == ["r-cran-r6==2.5.1-1", "r-cran-main==1.0-1"]
    assert admitted == ["r-cran-r6"]
    assert sorted(one.name for one in (home / "r" / "library").iterdir()) == ["Main", "R6"]
    assert await install("r-cran-main", "Main") == ()
    apt.plan = "Inst r-cran-r6 (2.5.1-1 x [all])\nInst r-cran-heavy (1.0-1 x [all])\n"
    with pytest.raises(PackageRefused, match="too large"):
        await install("r-cran-heavy", "heavy")
    assert await apt.installed(MOUNT) == ("r-cran-main==1.0-1", "r-cran-r6==2.5.1-1")
    assert [one.name for one in home.iterdir()] == ["r"]


async def test_without_apt_it_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    apt: PackageInstaller = installer(tmp_path)
    with pytest.raises(PackageRefused, match="apt-get, which the machine of this workbench does not have"):
        await apt.install(Wanted(mount=MOUNT, requirements=("r-cran-dplyr",)), lambda _: None, lambda _: None)


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        ("E: Unable to locate package r-cran-nope", "the distribution of this machine does not have it"),
        ("E: Failed to fetch http://x/y.deb  Could not resolve 'x'", "archive cannot be reached"),
        ("W: odd\nE: something else", "apt-get cannot install it: something else"),
    ],
)
def test_failures_are_told_by_what_can_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, told: str
) -> None:
    (tmp_path / "x_Packages").touch()
    monkeypatch.setattr(apt_r, "_LISTS", tmp_path)
    assert told in apt_r._told(Ran(code=100, stdout="", stderr=stderr))


def test_missing_lists_are_for_the_operator_to_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt_r, "_LISTS", tmp_path)
    ran = Ran(code=100, stdout="", stderr="E: Unable to locate package r-cran-dplyr")
    assert "apt-get update" in apt_r._told(ran)
