"""Units and Dockerfile: they parse, and what they name is there. Neither is run here."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from workbench.cli.main import cli
from workbench.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]
SYSTEMD, DOCKER = ROOT / "deploy/systemd", ROOT / "deploy/docker"
UNITS = ("workbench-host.service", "workbench-server.service")
INSTALLED = "/opt/workbench/.venv/bin/workbench"


class _Lists(dict[str, list[str]]):
    """systemd repeats keys."""

    def __setitem__(self, key: str, value: list[str]) -> None:
        if key in self and isinstance(value, list):
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def unit(name: str) -> dict[str, dict[str, list[str]]]:
    parser = configparser.RawConfigParser(strict=False, dict_type=_Lists, comment_prefixes=("#",))  # type: ignore[arg-type]
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((SYSTEMD / name).read_text(encoding="utf-8"))
    return {section: {key: value.split("\n") for key, value in parser.items(section)} for section in parser.sections()}


def settings_named(text: str) -> set[str]:
    return set(re.findall(rf"{PREFIX}[A-Z_]+", text))


@pytest.mark.parametrize("name", UNITS)
def test_the_command_of_a_unit_exists(name: str) -> None:
    words = unit(name)["Service"]["ExecStart"][0].split()
    assert words[0] == INSTALLED
    command = cli.commands[words[1]]
    for word in words[2:]:
        assert word in getattr(command, "commands", {}) or any(word in one.opts for one in command.params)


def test_the_host_has_a_group_to_divide_and_is_asked_before_it_is_killed() -> None:
    service = unit("workbench-host.service")["Service"]
    assert service["Delegate"] == ["yes"]
    assert service["KillMode"] == ["mixed"]
    assert service["OOMPolicy"] == ["continue"]
    # Each of these mounts over /proc or /sys, or forbids namespaces: no sandbox could be made.
    assert not [key for key in service if key.startswith(("Protect", "Private", "Restrict", "SystemCall"))]


def test_restarting_the_server_touches_no_host() -> None:
    server = unit("workbench-server.service")
    assert "workbench-host.service" in server["Unit"]["Wants"][0]
    assert "workbench-host.service" in server["Unit"]["After"][0]
    assert not {"Requires", "BindsTo", "PartOf"} & server["Unit"].keys()
    assert f"{PREFIX}START_HOST=false" in server["Service"]["Environment"]


def test_the_host_is_not_given_what_only_the_server_may_know() -> None:
    assert "/etc/workbench/server.env" not in str(unit("workbench-host.service"))
    assert "DATABASE_URL" not in (SYSTEMD / "workbench.env.example").read_text(encoding="utf-8")
    assert "DATABASE_URL" in (SYSTEMD / "server.env.example").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_itself_finds_nothing_wrong(tmp_path: Path) -> None:
    for name in UNITS:
        text = (SYSTEMD / name).read_text(encoding="utf-8")
        # It looks for the program and the user as well, and they are another machine's.
        (tmp_path / name).write_text(
            text.replace(INSTALLED, "/bin/true")
            .replace("User=workbench", "User=root")
            .replace("Group=workbench", "Group=root"),
            encoding="utf-8",
        )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in UNITS)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    told = [line for line in (done.stdout + done.stderr).splitlines() if "workbench" in line]
    assert (done.returncode, told) == (0, [])


def test_every_setting_that_is_named_exists() -> None:
    known = set(Settings.from_env({}).to_env())
    for path in (*SYSTEMD.iterdir(), *DOCKER.iterdir()):
        assert settings_named(path.read_text(encoding="utf-8")) <= known, path.name


def test_what_the_dockerfile_copies_is_there_and_not_ignored() -> None:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    copied = [word for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert copied
    kept = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for path in copied:
        assert (ROOT / path).exists(), path
        assert f"!{path}" in kept


def test_the_container_is_nobodys_root_and_starts_what_exists() -> None:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER workbench$", last, re.MULTILINE)
    assert '"workbench", "serve", "--with-host"' in last
    assert any("--with-host" in one.opts for one in cli.commands["serve"].params)
    assert "VOLUME /var/lib/workbench" in last


@pytest.mark.parametrize("page", ["docs/how-to/docker.md", "README.md"])
def test_the_pages_name_the_two_relaxations_and_no_privilege(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "--security-opt seccomp=unconfined --security-opt systempaths=unconfined" in text
    assert "--privileged workbench" not in text
    assert "--cap-add" not in text


@pytest.mark.parametrize("page", ["docs/how-to/docker.md", "docs/how-to/systemd.md"])
def test_what_was_not_run_says_so(page: str) -> None:
    assert "UNTESTED" in (ROOT / page).read_text(encoding="utf-8")
