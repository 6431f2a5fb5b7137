"""The rows of bench/state.py that are not times: memory and completeness. They fail here, not only in a table."""

from __future__ import annotations

import os

import pytest
from bench.idle import MANY, idle

from workbench.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


async def test_two_hundred_idle_sessions_with_snapshots_fit_into_five_gigabytes_and_each_has_its_own_state() -> None:
    seen = await idle(Settings.from_env(os.environ), MANY)
    assert seen.wrong == 0
    assert seen.each_mib <= 25.0
    assert seen.all_mib <= 5 * 1024
