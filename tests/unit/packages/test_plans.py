"""Plans: read from uv's locks, remembered, and told apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.model.packages import Pin
from workbench.packages.plans import PlanMemory, plan_key, read_plan

LOCK = """\
lock-version = "1.0"
[[packages]]
name = "tabulate"
version = "0.9.0"
wheels = [{ url = "https://example.com/a.whl", size = 35252, hashes = { sha256 = "b2" } },
          { url = "https://example.com/b.whl", hashes = { sha256 = "a1" } }]
"""


def test_a_plan_has_exact_versions_every_hash_and_the_size_if_it_is_told() -> None:
    (item,) = read_plan(LOCK).items
    assert (item.pin, item.hashes, item.size) == (
        Pin(name="tabulate", version="0.9.0"),
        ("sha256:a1", "sha256:b2"),
        35252,
    )


def test_a_package_without_a_wheel_is_no_plan() -> None:
    with pytest.raises(ValueError, match="no wheel"):
        read_plan('[[packages]]\nname = "x"\nversion = "1"\n')


def test_nothing_to_install_is_a_plan() -> None:
    assert read_plan("").items == ()


def test_a_plan_is_remembered_for_a_while_and_longer_for_who_takes_a_stale_one(tmp_path: Path) -> None:
    memory, plan = PlanMemory(tmp_path / "plans"), read_plan(LOCK)
    assert memory.find("k") is None
    memory.keep("k", plan)
    assert memory.find("k") == plan
    os.utime(tmp_path / "plans/k.json", (0, 0))
    assert (memory.find("k"), memory.find("k", stale=True)) == (None, plan)


def test_another_wish_image_or_version_that_is_there_is_another_question() -> None:
    keys = {
        plan_key(["a"], {}, "image"),
        plan_key(["b"], {}, "image"),
        plan_key(["a"], {"numpy": "2"}, "image"),
        plan_key(["a"], {}, "other"),
    }
    assert len(keys) == 4
    assert plan_key(["a", "b"], {"x": "1", "y": "2"}) == plan_key(["b", "a"], {"y": "2", "x": "1"})
