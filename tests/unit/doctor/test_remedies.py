"""For each no the exact next step, by what this machine says about itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.doctor import remedies

_PYTHON = "/srv/bin/python"


@pytest.mark.parametrize(
    ("switch", "value", "words"),
    [
        ("_APPARMOR_SYSCTL", "1\n", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("_CLONE_SYSCTL", "0\n", "kernel.unprivileged_userns_clone=1"),
        ("_COUNT_SYSCTL", "0\n", "user.max_user_namespaces=15000"),
    ],
)
def test_the_switch_that_refuses_user_namespaces_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, switch: str, value: str, words: str
) -> None:
    for name in ("_APPARMOR_SYSCTL", "_CLONE_SYSCTL", "_COUNT_SYSCTL"):
        monkeypatch.setattr(remedies, name, tmp_path / "absent")
    (tmp_path / "switch").write_text(value)
    monkeypatch.setattr(remedies, switch, tmp_path / "switch")
    assert words in remedies.remedy("make a user namespace", "Operation not permitted", _PYTHON)


def test_on_ubuntu_the_apparmor_profile_is_spelt_out_for_the_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "switch").write_text("1")
    monkeypatch.setattr(remedies, "_APPARMOR_SYSCTL", tmp_path / "switch")
    said = remedies.user_namespace_remedy("/srv/image/bin/python")
    assert "profile workbench /srv/image/bin/python flags=(unconfined) { userns, }" in said
    assert "apparmor_parser -r" in said


def test_without_any_switch_the_container_is_the_suspect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("_APPARMOR_SYSCTL", "_CLONE_SYSCTL", "_COUNT_SYSCTL"):
        monkeypatch.setattr(remedies, name, tmp_path / "absent")
    assert "systempaths=unconfined" in remedies.remedy("make a user namespace", "", _PYTHON)


def test_every_step_has_a_next_step() -> None:
    assert "workbench image build" in remedies.remedy("image", "", _PYTHON)
    assert "systempaths=unconfined" in remedies.remedy("build the root", "mount proc", _PYTHON)
    assert "report this line: seccomp: no" in remedies.remedy("seccomp", "no", _PYTHON)
