"""Whether files in memory fit; on whatever file system the test has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from workbench.engines.namespace.fit import check_fit
from workbench.errors import QuotaExceeded
from workbench.model.tier import XLARGE, Tier

_ROOMY = replace(XLARGE, scratch_bytes=2**62, shm_bytes=2**62, scratch_inodes=2**62)


@pytest.fixture
def folder() -> Iterator[int]:
    descriptor = os.open("/", os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def test_what_fits_is_let_through(folder: int) -> None:
    check_fit(folder, folder, _ROOMY)


@pytest.mark.parametrize(
    ("tier", "words", "numbers"),
    [
        (replace(_ROOMY, scratch_bytes=2**20), r"/tmp hold \d+ MiB and tier xlarge has 1 MiB", "bytes"),
        (replace(_ROOMY, shm_bytes=2**20), r"/dev/shm holds \d+ MiB and tier xlarge has 1 MiB", "bytes"),
        (replace(_ROOMY, scratch_inodes=7), r"/tmp hold \d+ files and tier xlarge has 7", "files"),
    ],
)
def test_what_does_not_is_refused_with_both_numbers(folder: int, tier: Tier, words: str, numbers: str) -> None:
    with pytest.raises(QuotaExceeded, match=words) as refusal:
        check_fit(folder, folder, tier)
    assert int(refusal.value.context[f"used_{numbers}"]) > int(refusal.value.context[f"limit_{numbers}"])
