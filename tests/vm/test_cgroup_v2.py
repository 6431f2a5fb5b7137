"""Limits by control groups version 2, run for real: this machine may have version 1 only, so one is booted that has it.

The checks themselves are in `guest/checks.py`; here they are started and judged.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.vm.machine import GUEST, Parts, PartsMissing, find_parts, run_in_machine
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.errors import NotFound

_REPOSITORY = GUEST.parents[2]
# About 40 s each on two quiet cores; emulation suffers more than anything else when they are not quiet.
_MACHINE_TIMEOUT_S = 600.0
EXPECTED = (
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
)
