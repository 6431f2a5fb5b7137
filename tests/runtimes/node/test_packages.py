"""Packages that a cell misses are asked for as in every Node of a sandbox: the same hook, a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtimes.node.driving import KERNEL, Driven, driven
from tests.runtimes.node.test_helpers import workbench

HOOK = KERNEL.parents[1] / "packages" / "node" / "hook.cjs"


@pytest.fixture
def hooked(folder: Path) -> Iterator[tuple[Driven, list[list[str]]]]:
    """Of all names that are asked for, `here-…` arrive and others are refused."""
    asked: list[list[str]] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        names = request["arguments"]["modules"]
        asked.append(names)
        if not names[0].startswith("here-"):
            return {"result": None, "error": f"did you mean something else than {names[0]}?", "code": "package_refused"}
        place = folder / "node_modules" / names[0]
        place.mkdir(parents=True)
        (place / "index.js").write_text("exports.name = 'arrived'", encoding="utf-8")
        return {"result": {"text": ""}, "error": "", "code": ""}

    env = {"WORKBENCH_CALLS": str(folder / "calls"), "NODE_OPTIONS": f"--require={HOOK}"}
    with workbench(folder / "calls", answer), driven(folder, env=env) as kernel:
        yield kernel, asked


@pytest.mark.parametrize(
    "code",
    [
        "require('here-1').name",
        "(await import('here-1')).name",
        "import { name } from 'here-1'; name",
        "import one from 'here-1'; one.name",
    ],
)
def test_a_package_that_is_missing_is_asked_for_and_the_cell_goes_on(
    hooked: tuple[Driven, list[list[str]]], code: str
) -> None:
    kernel, asked = hooked
    ran = kernel.run(code)
    assert ran.result == "'arrived'", ran.error
    assert asked == [["here-1"]]


@pytest.mark.parametrize("code", ["require('gone-1')", "await import('gone-1')", "import x from 'gone-1'"])
def test_the_reason_why_a_package_is_refused_is_in_the_error(hooked: tuple[Driven, list[list[str]]], code: str) -> None:
    kernel, asked = hooked
    ran = kernel.run(code)
    assert "[sandbox] did you mean something else than gone-1?" in ran.error
    assert asked == [["gone-1"]]


def test_a_cell_with_an_answer_of_its_own_installs_nothing(hooked: tuple[Driven, list[list[str]]]) -> None:
    kernel, _ = hooked
    assert kernel.run("let found = 'no'; try { require('gone-2'); found = 'yes' } catch {}; found").result == "'no'"


def test_a_module_of_the_agents_that_is_imported_is_looked_through_as_well(
    hooked: tuple[Driven, list[list[str]]], folder: Path
) -> None:
    kernel, asked = hooked
    (folder / "mine.mjs").write_text("import one from 'here-3'; export const got = one.name", encoding="utf-8")
    assert kernel.run("import { got } from './mine.mjs'; got").result == "'arrived'"
    assert asked == [["here-3"]]
