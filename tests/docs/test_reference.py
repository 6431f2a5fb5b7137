"""Docs and code name the same things."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from workbench import __version__
from workbench.cli.main import cli
from workbench.errors import leaves
from workbench.model.tier import TIERS
from workbench.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def headings(name: str) -> set[str]:
    return set(re.findall(r"^## (.+)$", text(name), re.MULTILINE))


def test_every_setting_has_its_heading() -> None:
    assert headings("docs/reference/settings.md") == {
        PREFIX + field.name.upper() for field in dataclasses.fields(Settings)
    }


def test_every_error_code_has_its_row() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", text("docs/reference/errors.md"), re.MULTILINE))
    assert documented == {leaf.code for leaf in leaves()}


def test_every_command_has_its_heading() -> None:
    commands = set()
    for name, command in cli.commands.items():
        nested = getattr(command, "commands", None)
        commands |= {f"workbench {name} {inner}" for inner in nested} if nested else {f"workbench {name}"}
    assert headings("docs/reference/commands.md") == commands


def test_the_readme_has_the_numbers_of_the_tiers() -> None:
    for tier in TIERS.values():
        memory = tier.memory_bytes // 2**30
        assert f"| {tier.name} | {tier.vcpus} | {memory} GiB | {tier.processes} |" in text("README.md")


def test_every_command_line_of_the_readme_exists() -> None:
    for line in re.findall(r"^\.venv/bin/workbench (.+?)(?:  +#.*)?$", text("README.md"), re.MULTILINE):
        words = re.sub(r"'[^']*'", "", line).split()
        assert words[0] in cli.commands, line
        for option in [word for word in words if word.startswith("--")]:
            assert any(option in parameter.opts for parameter in cli.commands[words[0]].params), line


@pytest.mark.parametrize("name", ["SPECIFICATION.md", "SECURITY.md"])
def test_every_test_that_a_promise_names_exists(name: str) -> None:
    named = re.findall(r"\b((?:tests|src|bench)/[\w/.-]+)", text(name))
    assert named
    missing = [path for path in named if not (ROOT / path.rstrip(".")).exists()]
    assert not missing


def test_every_barrier_names_a_test_that_exists() -> None:
    wrong = []
    for path in (ROOT / "src").rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            wrong += [f"{path.name}:{number}: {name}" for name in re.findall(r"\b(tests/[\w/]+\.py)", line)
                      if not (ROOT / name).exists()]  # fmt: skip
    assert not wrong


def test_the_version_is_one_number() -> None:
    assert f'version = "{__version__}"' in text("pyproject.toml")
