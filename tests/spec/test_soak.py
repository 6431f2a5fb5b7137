"""Short soaks, of cells in every test run and of kept memories in the long one; bench/SOAK.md has the long reports."""

from __future__ import annotations

import os

import pytest
from bench.soak.run import STATE, soak

from workbench.settings import Settings

pytestmark = pytest.mark.timeout(300)


async def test_a_short_soak_has_no_wrong_answer_no_hang_and_no_leak() -> None:
    report = await soak(Settings.from_env(os.environ), seconds=12.0, lanes=4, seed=20)
    assert "\nPASS." in report, report


@pytest.mark.long
async def test_a_memory_that_is_kept_is_right_after_every_way_of_losing_it() -> None:
    report = await soak(Settings.from_env(os.environ), seconds=60.0, lanes=4, seed=20, scenario=STATE)
    assert "\nPASS." in report, report
