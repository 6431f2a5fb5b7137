"""Variables that every process of a sandbox starts with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.engines.environment import base_environment, joined
from workbench.model.image import Image

OURS = "/opt/workbench/workbench_guest/importable"


def of(image: Image) -> dict[str, str]:
    return base_environment(
        image, home="/home/user", scratch="/tmp", guest_root="/opt/workbench", packages="/mnt/packages"
    )


def test_every_python_of_a_sandbox_finds_the_helpers(image: Image) -> None:
    assert of(image)["PYTHONPATH"] == OURS
    assert of(replace(image, env=(("PYTHONPATH", "/mine"), ("LANG", "de"))))["PYTHONPATH"] == f"/mine:{OURS}"
    assert of(replace(image, env=(("LANG", "de"),)))["LANG"] == "de"


@pytest.mark.parametrize(
    ("own", "expected"),
    [({}, "/ours"), ({"PYTHONPATH": "/a:/b"}, "/a:/b:/ours"), ({"PYTHONPATH": ""}, "/ours")],
)
def test_ones_own_modules_come_first_and_hide_none(own: dict[str, str], expected: str) -> None:
    assert joined({"PYTHONPATH": "/ours", "X": "1"}, own | {"X": "2"}) == {"PYTHONPATH": expected, "X": "2"}


def test_every_node_of_a_sandbox_has_the_hook_and_ones_own_options(image: Image) -> None:
    hook = "--require=/opt/workbench/workbench_guest/packages/node/hook.cjs"
    assert of(image)["NODE_OPTIONS"] == hook
    assert joined(of(image), {"NODE_OPTIONS": "--no-warnings"})["NODE_OPTIONS"] == f"{hook} --no-warnings"


def test_npm_is_the_one_that_asks_and_programs_of_packages_are_found_last(image: Image) -> None:
    path = of(image)["PATH"].split(":")
    assert (path[0], path[-1]) == ("/opt/workbench/workbench_guest/packages/bin", "/node_modules/.bin")


def test_who_has_no_modules_gets_no_variable_for_them() -> None:
    assert joined({"X": "1"}, {"Y": "2"}) == {"X": "1", "Y": "2"}
