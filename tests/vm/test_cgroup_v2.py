"""Limits by control groups version 2, run for real: a machine that has them is booted, as this one may not have them.

The checks themselves are in `guest/checks.py`; here they are started and judged.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

import pytest
from tests.vm.machine import GUEST, Parts, PartsMissing, find_parts, run_in_machine

from workbench.errors import NotFound
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.settings import Settings

_REPOSITORY = GUEST.parents[2]
# About a minute each on two quiet cores; an emulated machine suffers first when they are not quiet.
_MACHINE_TIMEOUT_S = 840.0
EXPECTED = [
    "keeper_is_cgroup_v2",
    "host_is_in_its_leaf",
    "sandbox_runs_code",
    "limits_are_written",
    "processes_are_in_the_group",
    "memory_bomb_is_killed_and_named",
    "fork_bomb_is_refused_and_named",
    "growing_keeps_state",
    "shrinking_below_use_is_refused_and_kills_nothing",
    "shrinking_to_what_fits_keeps_state",
    "cached_files_do_not_stop_shrinking",
    "a_second_host_in_the_same_process_has_its_own_group",
    "nothing_is_left",
    "nothing_is_left_of_a_killed_host",
]


@pytest.fixture(scope="module")
def parts() -> Parts:
    try:
        return find_parts()
    except PartsMissing as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def images() -> str:
    """The folder of images; the one that is needed has been built."""
    folder = Settings.from_env(os.environ).images_dir
    try:
        find_image(folder, load_recipe("python"))
    except NotFound as problem:
        pytest.skip(problem.message)
    return str(folder)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("who", ["root", "systemd"])
def test_a_delegated_group_holds_a_sandbox_to_its_tier_and_is_left_as_it_was(
    parts: Parts, images: str, who: str, record_property: Callable[[str, object], None]
) -> None:
    """As root, and as a user who asked the real systemd for a group."""
    command = [str(GUEST / "run-checks"), who, sys.executable, str(_REPOSITORY), images]
    run = run_in_machine(parts, command, timeout_s=_MACHINE_TIMEOUT_S, systemd=who == "systemd")
    told = [json.loads(line) for line in run.output.splitlines() if line.startswith('{"check"')]
    for row in told:
        record_property(row["check"], row["seen"])
    assert [row for row in told if not row["ok"]] == []
    assert [row["check"] for row in told] == EXPECTED, run.console
    assert run.code == 0, run.console
