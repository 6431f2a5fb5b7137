"""Docs and code name the same things."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any, cast

import pytest
from tests.docs.snippets import pages

from workbench import __version__
from workbench.cli.main import cli
from workbench.cli.mcp_clients import CLIENTS
from workbench.errors import leaves
from workbench.mcp.tools import ALL_TOOLS, ROUTER_TOOLS
from workbench.model.packages import PackageRule
from workbench.model.tier import TIERS
from workbench.server.app import make_app
from workbench.server.service import ServerOptions
from workbench.settings import PREFIX, Settings
from workbench.wire.problems import STATUS
from workbench_guest import helpers
from workbench_guest.corrections.rules import RULES, SWITCHES

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def headings(name: str) -> set[str]:
    return set(re.findall(r"^## (.+)$", text(name), re.MULTILINE))


def test_every_setting_has_its_heading() -> None:
    assert headings("docs/reference/settings.md") == {
        PREFIX + field.name.upper() for field in dataclasses.fields(Settings)
    }


def test_every_error_code_has_its_row_with_its_status_and_whether_it_may_be_tried_again() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|.*\| (yes|no) \|$", text("docs/reference/errors.md"), re.MULTILINE)
    assert {(code, int(status), retry == "yes") for code, status, retry in rows} == {
        (leaf.code, STATUS[leaf], leaf.retryable) for leaf in leaves()
    }


def test_every_rule_of_packages_has_its_heading() -> None:
    told = re.findall(r"^### (\S+)$", text("docs/reference/packages.md"), re.MULTILINE)
    assert sorted(told) == sorted(PackageRule)


def test_every_command_has_its_heading() -> None:
    commands = set()
    for name, command in cli.commands.items():
        nested = getattr(command, "commands", None)
        commands |= {f"workbench {name} {inner}" for inner in nested} if nested else {f"workbench {name}"}
        if nested and command.params:
            # One that does something by itself.
            commands.add(f"workbench {name}")
    assert headings("docs/reference/commands.md") == commands


def test_every_operation_of_rest_has_its_heading() -> None:
    # Nothing is asked of the service: the document is made of the routes alone.
    document = make_app(cast("Any", None), ServerOptions()).openapi()
    operations = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    assert headings("docs/reference/rest.md") == operations


def test_every_tool_of_mcp_has_its_heading_below_its_family() -> None:
    parts = re.split(r"^## Tools: (\w+)$", text("docs/reference/mcp.md"), flags=re.MULTILINE)[1:]
    told = {
        (family, tool)
        for family, part in zip(parts[::2], parts[1::2], strict=True)
        for tool in re.findall(r"^### (\w+)$", part, re.MULTILINE)
    }
    known = {(tool.family.value, tool.name) for tool in ALL_TOOLS}
    assert told == known | {(tool.family.value, tool.name) for tool in ROUTER_TOOLS}


def test_every_helper_has_its_heading_with_its_signature() -> None:
    told = dict(re.findall(r"^### (\w+)\n\n`(.+)`$", text("docs/reference/helpers.md"), re.MULTILINE))
    bare = {}
    for name in helpers.__all__:
        parameters = inspect.signature(getattr(helpers, name)).parameters.values()
        plain = inspect.Signature([one.replace(annotation=inspect.Parameter.empty) for one in parameters])
        bare[name] = f"{name}{plain}"
    assert told == bare


def test_every_client_that_can_be_told_of_mcp_has_its_row() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \| \w", text("docs/how-to/mcp-clients.md"), re.MULTILINE)) == set(CLIENTS)


def test_the_readme_has_the_numbers_of_the_tiers() -> None:
    for tier in TIERS.values():
        memory = tier.memory_bytes // 2**30
        assert f"| {tier.name} | {tier.vcpus} | {memory} GiB | {tier.processes} |" in text("README.md")


def test_every_command_line_of_the_readme_exists() -> None:
    for line in re.findall(r"^\.venv/bin/workbench (.+?)(?:  +#.*)?$", text("README.md"), re.MULTILINE):
        words = re.sub(r"'[^']*'", "", line).split()
        assert words[0] in cli.commands, line
        command = cli.commands[words[0]]
        command = getattr(command, "commands", {}).get([*words, ""][1], command)
        for option in [word for word in words if word.startswith("--") and word != "--"]:
            assert any(option in parameter.opts for parameter in command.params), line


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


def test_every_link_of_a_page_leads_somewhere() -> None:
    wrong = [
        f"{page}: {target}"
        for page in pages()
        for target in re.findall(r"\]\(([^)#\s]+)", text(page))
        if "://" not in target and not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert not wrong


def test_every_rule_of_the_corrections_has_its_heading_its_switch_an_example_and_when_it_does_not_act() -> None:
    page = text("docs/reference/corrections.md")
    found = re.findall(
        r"^### ([a-z-]+)\n\n.+ Switch: `(\w+)`\.\n\n- Example: .+\.\n- It does not act: .+\.$", page, re.MULTILINE
    )
    assert found == [(rule.id, rule.switch) for rule in RULES]
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(SWITCHES)
