"""The rows of bench/extract.py that are not times: words and memory. They fail here, not only in a table."""

from __future__ import annotations

import os

import pytest
from bench.extract import digital_files, long_files, scans

from workbench.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_MOST_KIB = 400 * 1024


async def test_of_every_kind_that_carries_its_text_98_words_of_100_are_found() -> None:
    seen = await digital_files(Settings.from_env(os.environ))
    assert [(one.made.name, one.share, one.error) for one in seen if one.share < 0.98 or one.error] == []


async def test_of_every_scan_90_words_of_100_are_found_within_the_memory() -> None:
    seen = await scans(Settings.from_env(os.environ))
    assert [(one.made.name, one.share, one.error) for one in seen if one.share < 0.90 or one.error] == []
    assert max(one.peak_kib for one in seen) <= _MOST_KIB


async def test_the_memory_of_a_long_file_is_that_of_a_page() -> None:
    born, drawn = await long_files(Settings.from_env(os.environ), 200, 8)
    assert (born.share, born.error, drawn.error) == (1.0, "", "")
    assert max(born.peak_kib, drawn.peak_kib) <= _MOST_KIB
