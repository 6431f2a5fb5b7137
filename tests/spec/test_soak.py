"""A short soak in every test run; `make soak` is the long one, and bench/SOAK.md its report."""

from __future__ import annotations

import os

import pytest
from bench.soak.run import soak

from workbench.settings import Settings

pytestmark = [pytest.mark.isolation, pytest.mark.timeout(300)]


async def test_a_short_soak_has_no_wrong_answer_no_hang_and_no_leak() -> None:
    report = await soak(Settings.from_env(os.environ), seconds=12.0, lanes=4, seed=20)
    assert "\nPASS." in report, report
