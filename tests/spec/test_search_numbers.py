"""The rows of bench/search.py that are not times: the right tool among the first, memory, and the CPU of a search."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench.search import every_case, kept_back, nothing_found, quality, shipped

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

_MOST_MB = 250
_MOST_CPU_MS = 50
_MEASURE = """
import asyncio
from bench.search import whole_searches
from bench.table import p50
cost = asyncio.run(whole_searches(60))
print(cost.memory_mb, p50(cost.warm_cpu_ms))
"""


async def test_the_right_tool_is_among_the_first_three_of_seventy_cases_in_a_hundred_and_the_first_ten_of_88() -> None:
    seen = await quality()
    assert seen.tools >= 3000
    for some in (seen.found["all"], *seen.others.values()):
        assert some.within(3) >= 0.70
        assert some.within(10) >= 0.88
    assert seen.found["all"].within(3) > seen.found["BM25 alone"].within(3)


async def test_where_nothing_fits_mostly_nothing_is_shown() -> None:
    rightly, asked = await nothing_found()
    assert rightly >= asked * 0.6


async def test_there_are_two_hundred_cases_whose_tools_there_are_and_none_quotes_one() -> None:
    every = every_case()
    assert len(every) >= 200
    assert len({case.number for case in every}) == len(every)
    assert len(kept_back()) >= 200
    async with shipped() as entries:
        assert not [slug for case in every for slug in case.accepted if slug not in entries]
    for case in every:
        assert not [slug for slug in case.accepted if slug.replace("_", " ").lower() in case.words.lower()]
        assert "_" not in case.words


def test_the_memory_of_catalogue_index_and_model_is_bounded_and_so_is_the_cpu_of_a_search() -> None:
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", _MEASURE], cwd=root, capture_output=True, text=True, check=True)
    memory_mb, cpu_ms = map(float, ended.stdout.split())
    assert memory_mb <= _MOST_MB
    assert cpu_ms < _MOST_CPU_MS
