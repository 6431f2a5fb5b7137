"""The four sizes."""

from __future__ import annotations

import dataclasses

import pytest

from workbench.errors import InvalidRequest
from workbench.model.tier import LARGE, MEDIUM, STANDARD, TIERS, XLARGE, Tier, thread_variables, tier_named

GIB = 1024**3


@pytest.mark.parametrize(
    ("tier", "size"),
    [(STANDARD, 1), (MEDIUM, 2), (LARGE, 4), (XLARGE, 8)],
    ids=list(TIERS),
)
def test_everything_but_the_files_grows_with_the_size(tier: Tier, size: int) -> None:
    assert (tier.vcpus, tier.memory_bytes, tier.processes) == (size, size * GIB, size * 256)
    assert (tier.scratch_bytes, tier.shm_bytes) == (size * GIB // 2, size * GIB // 4)
    assert (tier.open_files, tier.files_bytes, tier.files_inodes) == (4096, 10 * GIB, 1_000_000)


@pytest.mark.parametrize("tier", TIERS.values(), ids=TIERS)
def test_full_folders_cannot_take_all_the_memory(tier: Tier) -> None:
    assert tier.scratch_bytes + tier.shm_bytes < tier.memory_bytes


@pytest.mark.parametrize("name", TIERS)
def test_a_tier_is_found_by_its_name(name: str) -> None:
    assert tier_named(name).name == name


@pytest.mark.parametrize("name", ["", "Standard", "huge", "standard "])
def test_an_unknown_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidRequest, match="standard, medium, large, xlarge"):
        tier_named(name)


def test_a_tier_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        STANDARD.vcpus = 64  # type: ignore[misc]


def test_libraries_are_told_how_many_threads_to_use() -> None:
    told = thread_variables(3)
    assert set(told.values()) == {"3"}
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} <= told.keys()
