"""Variables that every process of a sandbox starts with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.engines.environment import base_environment, joined
from workbench.model.image import Image

OURS = "/opt/workbench/workbench_guest/importable"


def of(image: Image) -> dict[str, str]:
    return base_environment(image, home="/home/user", scratch="/tmp", guest_root="/opt/workbench")


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


def test_who_has_no_modules_gets_no_variable_for_them() -> None:
    assert joined({"X": "1"}, {"Y": "2"}) == {"X": "1", "Y": "2"}
