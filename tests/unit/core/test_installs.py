"""The broker: policies, refusals, and what is told; with a list and an installer that live in this file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.core.standins import FakeClock

from workbench.contracts.packages import refusal
from workbench.core.installs import InstallAsked, Installs, read_asked
from workbench.errors import InvalidRequest
from workbench.model.configuration import SandboxSwitches, SessionConfig
from workbench.model.execution import CorrectionKind
from workbench.model.ids import MountId, SandboxId, SessionId
from workbench.model.packages import Installed, Language, PackagePolicy, PackageRule, Pin, Wanted
from workbench.model.session import Session, SessionSpec

ASKED = InstallAsked(language=Language.PYTHON, modules=("docx",), line=3)


class OneList:
    """`docx` is in python-docx; whoever has a wider policy gets `rare` too."""

    language = Language.PYTHON

    def providing(self, module: str, policy: PackagePolicy) -> str:
        if module.partition(".")[0] == "docx":
            return "python-docx"
        if module == "google.cloud.storage":
            return "google-cloud-storage"
        raise refusal(f"no supported package provides {module!r}", PackageRule.NOT_SUPPORTED)

    def admitted(self, distribution: str, policy: PackagePolicy) -> str:
        if distribution == "denied" or (distribution == "rare" and policy is PackagePolicy.SUPPORTED):
            raise refusal(f"{distribution} is not supported", PackageRule.NOT_SUPPORTED)
        return distribution


class OneInstaller:
    """Remembers what it was asked for."""

    language = Language.PYTHON

    def __init__(self) -> None:
        self.asked: list[Wanted] = []
        self.needs: tuple[str, ...] = ()
        self.fails = ""

    async def install(self, wanted: Wanted, admit: Callable[[str], None], tell: Callable[[str], None]) -> Installed:
        self.asked.append(wanted)
        if self.fails:
            raise refusal(self.fails)
        for name in self.needs:
            admit(name)
        return Installed(pins=tuple(Pin(name=name, version="1.0") for name in (*wanted.requirements, *self.needs)))

    async def installed(self, mount: MountId) -> tuple[str, ...]:
        return ()

    async def aclose(self) -> None:
        """Nothing to end."""


@pytest.fixture
def installer() -> OneInstaller:
    return OneInstaller()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def installs(installer: OneInstaller, clock: FakeClock, policy: PackagePolicy = PackagePolicy.SUPPORTED) -> Installs:
    lists, installers = {Language.PYTHON: OneList()}, {Language.PYTHON: installer}
    return Installs(policy=policy, lists=lists, installers=installers, clock=clock)


def session(policy: PackagePolicy | None = None) -> Session:
    config = SessionConfig(sandbox=SandboxSwitches(packages=policy))
    name = SessionId("one")
    return Session(
        spec=SessionSpec(id=name, config=config),
        created_at="",
        used_at="",
        mount=MountId("m-one"),
        principal=name,
        sandbox=SandboxId("sb"),
    )


async def test_an_import_installs_what_provides_it_and_the_report_has_versions_and_seconds(
    installer: OneInstaller, clock: FakeClock
) -> None:
    told = await installs(installer, clock).install(session(), ASKED)
    assert installer.asked == [Wanted(mount=MountId("m-one"), requirements=("python-docx",), modules=("docx",))]
    assert told.correction is not None
    assert (told.correction.kind, told.correction.rule, told.correction.line) == (
        CorrectionKind.INSTALLED,
        "install",
        3,
    )
    assert told.correction.packages == ("python-docx==1.0",)
    assert told.correction.text.startswith("installed python-docx==1.0 for `import docx` in ")


async def test_of_several_names_the_longest_that_has_a_package_counts(
    installer: OneInstaller, clock: FakeClock
) -> None:
    names = ("google.cloud.storage.blob", "google.cloud.storage", "google.cloud", "google")
    await installs(installer, clock).install(session(), replace(ASKED, modules=names))
    assert installer.asked[0].requirements == ("google-cloud-storage",)


async def test_a_name_within_a_package_is_no_module_that_must_be_there(
    installer: OneInstaller, clock: FakeClock
) -> None:
    await installs(installer, clock).install(session(), replace(ASKED, modules=("docx.Document", "docx")))
    assert installer.asked[0].modules == ("docx",)


async def test_a_name_on_no_list_is_refused_and_nobody_is_asked_for_it(
    installer: OneInstaller, clock: FakeClock
) -> None:
    told = await installs(installer, clock).install(session(), replace(ASKED, modules=("utils",)))
    assert (told.correction and told.correction.rule, installer.asked) == ("package-not-supported", [])
    assert "utils" in told.refused


async def test_whoever_makes_up_names_is_told_to_wait_and_the_lists_are_spared(
    installer: OneInstaller, clock: FakeClock
) -> None:
    broker = installs(installer, clock)
    for number in range(30):
        told = await broker.install(session(), replace(ASKED, modules=(f"n{number}",)))
        assert "no supported package" in told.refused
    assert "within a minute" in (await broker.install(session(), replace(ASKED, modules=("one_more",)))).refused
    await clock.pause(61)
    assert (await broker.install(session(), ASKED)).installed


async def test_code_with_its_own_answer_gets_a_hint_and_nothing_else(installer: OneInstaller, clock: FakeClock) -> None:
    told = await installs(installer, clock).install(session(), replace(ASKED, guarded=True))
    assert told.correction is not None
    assert (told.correction.kind, told.correction.rule) == (CorrectionKind.HINT, "optional-import")
    told = await installs(installer, clock).install(session(), replace(ASKED, guarded=True, modules=("nothing",)))
    assert (told.correction, installer.asked) == (None, [])


@pytest.mark.parametrize(
    ("server", "own", "installed"),
    [
        (PackagePolicy.SUPPORTED, None, True),
        (PackagePolicy.OFF, None, False),
        (PackagePolicy.SUPPORTED, PackagePolicy.OFF, False),
        (PackagePolicy.OFF, PackagePolicy.ANY, False),
    ],
)
async def test_a_session_may_have_less_than_the_server_allows_and_never_more(
    installer: OneInstaller, clock: FakeClock, server: PackagePolicy, own: PackagePolicy | None, installed: bool
) -> None:
    told = await installs(installer, clock, server).install(session(own), ASKED)
    assert (bool(installer.asked), not told.refused) == (installed, installed)
    if not installed:
        assert told.correction is not None
        assert told.correction.rule == "install-off"
        assert "python-docx" in told.refused


async def test_a_wider_policy_of_the_server_is_narrowed_for_a_session(
    installer: OneInstaller, clock: FakeClock
) -> None:
    asked = InstallAsked(language=Language.PYTHON, requirements=("rare>=1",))
    wide = installs(installer, clock, PackagePolicy.ANY)
    assert (await wide.install(session(PackagePolicy.SUPPORTED), asked)).refused == "rare is not supported"
    told = await wide.install(session(), asked)
    assert told.installed == ("rare>=1==1.0",)
    assert told.correction is not None
    assert "nobody has reviewed rare" in told.correction.text
    plain = await wide.install(session(), ASKED)
    assert plain.correction is not None
    assert "reviewed" not in plain.correction.text


async def test_what_an_admitted_package_needs_comes_along_but_not_what_is_denied(
    installer: OneInstaller, clock: FakeClock
) -> None:
    installer.needs = ("rare",)
    assert (await installs(installer, clock).install(session(), ASKED)).installed
    installer.needs = ("denied",)
    told = await installs(installer, clock).install(session(), ASKED)
    assert told.refused == "python-docx needs denied: denied is not supported"


@pytest.mark.parametrize(
    "requirement",
    ["git+https://example.com/x", "https://example.com/x.whl", "./x", "/etc", "x @ file:///etc", "-r x", "x; y", "x\ny",
     "a" + "=1 " * 60 + "(", "a" + "!" * 190 + "(", "x" * 201,
     "--index-url=https://example.com", "x[", "../x", "x y"],
)  # fmt: skip
async def test_addresses_paths_and_options_never_reach_an_installer(
    installer: OneInstaller, clock: FakeClock, requirement: str
) -> None:
    asked = InstallAsked(language=Language.PYTHON, requirements=(requirement,))
    told = await installs(installer, clock, PackagePolicy.ANY).install(session(), asked)
    assert (installer.asked, "name with versions" in told.refused) == ([], True)


@pytest.mark.parametrize(
    "requirement", ["x", "x==1.0", "x>=1,<2", "x[extra]", "X.y-z_1~=2.0", "x != 3.*", "x [a, b] >= 1"]
)
async def test_names_with_versions_do(installer: OneInstaller, clock: FakeClock, requirement: str) -> None:
    asked = InstallAsked(language=Language.PYTHON, requirements=(requirement,))
    await installs(installer, clock, PackagePolicy.ANY).install(session(), asked)
    assert [one.requirements for one in installer.asked] == [(requirement,)]


async def test_what_failed_is_not_tried_again_at_once_and_then_it_is(installer: OneInstaller, clock: FakeClock) -> None:
    installer.fails = "the index is down"
    broker = installs(installer, clock)
    for _ in range(3):
        assert (await broker.install(session(), ASKED)).refused == "the index is down"
    assert len(installer.asked) == 1
    await clock.pause(61)
    installer.fails = ""
    assert (await broker.install(session(), ASKED)).installed


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"language": "cobol", "modules": ["x"]}, {"language": "python"}, {"language": "python", "modules": "x"},
        {"language": "python", "modules": ["x"], "requirements": ["y"]}, {"language": "python", "modules": [1]},
        {"language": "python", "modules": ["x"] * 17}, {"language": "python", "modules": ["../x"]},
        {"language": "python", "modules": ["x" * 201]}, {"language": "python", "modules": ["x;y"]},
        {"language": "python", "modules": [" "]},
    ],
)  # fmt: skip
def test_a_conversation_by_hand_gets_clear_words(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        read_asked(arguments)


def test_a_line_that_is_none_is_left_out() -> None:
    for line in (True, -1, "3", 10**9, None):
        assert read_asked({"language": "python", "modules": ["x"], "line": line}).line == 0
