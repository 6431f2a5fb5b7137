"""The rows of bench/engine.py that are not times: memory and completeness. They fail here, not only in a table."""

from __future__ import annotations

import os

import pytest
from bench.engine import at_once, steady_memory_slope_mib

from workbench.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


async def test_one_more_sandbox_adds_at_most_six_megabytes() -> None:
    assert await steady_memory_slope_mib(Settings.from_env(os.environ), 100) <= 6.0


async def test_a_hundred_sandboxes_asked_for_at_once_all_answer() -> None:
    good, _ = await at_once(Settings.from_env(os.environ), 100)
    assert good == 100
