"""The rows of bench/server.py that are not times: memory and completeness. They fail here, not only in a table."""

from __future__ import annotations

import os

import pytest
from bench.server import burst, crowd

from workbench.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


async def test_a_hundred_sessions_in_one_burst_all_answer_with_pandas() -> None:
    good, _, wrong = await burst(Settings.from_env(os.environ), 100)
    assert (good, wrong) == (100, [])


async def test_64_clients_for_a_minute_have_no_error_and_no_mixed_answer_and_the_server_does_not_grow() -> None:
    seen = await crowd(Settings.from_env(os.environ), clients=64, seconds=60.0, warm_s=15.0)
    assert seen.errors == []
    assert seen.mixed == []
    assert seen.growth_mib_per_thousand < 1.0
