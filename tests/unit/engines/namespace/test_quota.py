"""What follows from what /mnt/files holds: nothing, a word to the host, the end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from workbench.contracts.engine import OverQuota
from workbench.engines.namespace.quota import FilesQuota, Held
from workbench.model.tier import STANDARD

MIB = 2**20
GIB = 2**30
TIER = replace(STANDARD, files_bytes=10 * GIB, files_inodes=100_000)
OVER = 10 * GIB + 10 * MIB + 1
BOUND = 11 * GIB
LIMIT = 20 * GIB
STEP = 512 * MIB


def found(quota: FilesQuota, size: int, files: int = 1, *, complete: bool = True, took_s: float = 0.0) -> str:
    return quota.found(Held(size, files, complete), TIER, at=0.0, took_s=took_s)


async def told(quota: FilesQuota) -> OverQuota | None:
    """What the host is told by now."""
    try:
        async with asyncio.timeout(0.01):
            return await quota.wait()
    except TimeoutError:
        return None


async def test_at_the_quota_nothing_is_told() -> None:
    quota = FilesQuota()
    assert found(quota, 10 * GIB, 100_000) == ""
    assert found(quota, OVER - 1, 100_000) == "", "an upload of what was left takes a little more of the disk"
    assert (quota.over, await told(quota)) == (None, None)


@pytest.mark.parametrize(("size", "files"), [(OVER, 1), (1, 100_001)])
async def test_over_the_quota_the_host_is_told_once_with_the_numbers(size: int, files: int) -> None:
    quota = FilesQuota()
    assert found(quota, size, files) == ""
    over = await told(quota)
    assert over is not None
    assert over == quota.over
    assert (over.bytes, over.files, over.quota.bytes, over.quota.files) == (size, files, 10 * GIB, 100_000)
    assert found(quota, size, files) == ""
    assert await told(quota) is None


@pytest.mark.parametrize(("more", "files"), [(512 * MIB, 0), (0, 5000)])
async def test_it_is_told_again_when_it_has_grown_by_a_step_since_it_was_least(more: int, files: int) -> None:
    quota = FilesQuota()
    found(quota, 10 * GIB + 200 * MIB, 101_000)
    await told(quota)
    found(quota, 10 * GIB + 100 * MIB, 100_500)
    assert await told(quota) is None
    found(quota, 10 * GIB + 100 * MIB + more - bool(more), 100_500 + files - bool(files))
    assert await told(quota) is None
    assert found(quota, 10 * GIB + 100 * MIB + more, 100_500 + files) == ""
    assert await told(quota) is not None


async def test_below_the_quota_all_is_as_before() -> None:
    quota = FilesQuota()
    found(quota, OVER)
    await told(quota)
    assert found(quota, 9 * GIB) == ""
    assert quota.over is None
    assert not quota.wants_look(1e9)
    found(quota, OVER)
    assert await told(quota) is not None, "the next time is a first time again"


@pytest.mark.parametrize(("size", "files"), [(BOUND + 1, 1), (1, 110_001), (LIMIT - STEP, 195_000)])
async def test_beyond_the_bound_it_is_told_and_lives_while_nothing_is_added(size: int, files: int) -> None:
    """Who is told to delete files needs the time to do so."""
    quota = FilesQuota()
    assert found(quota, size, files) == ""
    assert await told(quota) is not None
    assert quota.wants_look(0.0)
    assert [found(quota, size, files) for _ in range(5)] == [""] * 5
    assert [found(quota, size + STEP - 1, files + 4999) for _ in range(5)] == [""] * 5, "or a little"
    assert found(quota, 1) == ""
    assert quota.over is None


@pytest.mark.parametrize(
    ("size", "files", "words"),
    [
        (BOUND + 1 + STEP, 1, f"holds {BOUND + 1 + STEP} of {10 * GIB} bytes"),
        (1, 115_001, "holds more than 110000 of 100000 files"),
    ],
)
async def test_who_adds_more_beyond_the_bound_is_ended(size: int, files: int, words: str) -> None:
    quota = FilesQuota()
    assert found(quota, BOUND + 1, 110_001 if files > 1 else 1) == ""
    reason = found(quota, size, files)
    assert reason.startswith("disk full: /mnt/files ")
    assert words in reason
    assert quota.wants_look(0.0)
    assert found(quota, size, files) == reason, "who did not hear it the first time hears it at the next look"


async def test_little_by_little_it_ends_as_well_and_deleting_a_part_gives_no_new_leave() -> None:
    quota = FilesQuota()
    sizes = (BOUND + STEP, BOUND + 1, BOUND + STEP // 2, BOUND + STEP)
    assert [found(quota, size) for size in sizes] == [""] * 4
    assert found(quota, BOUND + STEP + 1)


@pytest.mark.parametrize(("size", "files"), [(LIMIT + 1, 1), (1, 200_001)])
async def test_at_twice_the_quota_it_ends_at_the_next_look_also_if_nothing_is_added(size: int, files: int) -> None:
    quota = FilesQuota()
    assert found(quota, size, files) == ""
    assert await told(quota) is not None
    assert quota.is_far
    assert found(quota, size, files)


async def test_what_is_taken_back_after_the_interrupt_ends_nobody() -> None:
    quota = FilesQuota()
    for size in (BOUND + STEP, LIMIT + 1):
        assert found(quota, size) == ""
        assert found(quota, BOUND) == ""
        assert not quota.is_far
        assert found(quota, size) == "", "it counts from here again"
        found(quota, 0)


async def test_a_small_quota_has_a_margin_that_writers_can_be_interrupted_in() -> None:
    tier = replace(STANDARD, files_bytes=MIB, files_inodes=10)
    quota = FilesQuota()
    for _ in range(3):
        assert quota.found(Held(65 * MIB, 1010), tier, at=0.0, took_s=0.0) == ""
    for size in (65 * MIB + 1, 129 * MIB):
        assert quota.found(Held(size, 1), tier, at=0.0, took_s=0.0) == ""
    assert quota.found(Held(129 * MIB + 1, 1), tier, at=0.0, took_s=0.0)


def begun(size: int, files: int = 1, left: Held | None = None) -> FilesQuota:
    quota = FilesQuota(left)
    quota.begin(Held(size, files), TIER)
    return quota


async def test_what_was_left_beyond_the_bound_may_be_tidied_up_but_not_grow() -> None:
    left = FilesQuota().leaves(Held(30 * GIB, 1), TIER)
    assert left == Held(30 * GIB, 1)
    second = begun(30 * GIB, left=left)
    assert [found(second, 30 * GIB) for _ in range(3)] == [""] * 3
    assert found(second, 31 * GIB + 1) == ""
    assert found(second, 31 * GIB + 1 + STEP)
    assert second.leaves(Held(31 * GIB + 1, 1), TIER) == left, "who grows it gets no more leave"
    third = begun(30 * GIB, left=left)
    assert [found(third, size) for size in (30 * GIB, 22 * GIB, 22 * GIB)] == [""] * 3
    assert third.leaves(Held(22 * GIB, 1), TIER) == Held(22 * GIB, 1)
    assert found(third, 23 * GIB + 1) == ""
    assert found(third, 23 * GIB + 1 + STEP), "less is the new bound"
    assert third.leaves(Held(BOUND, 1), TIER) is None


async def test_one_sandbox_after_the_other_cannot_grow_what_was_left_and_each_may_tidy_up() -> None:
    left = Held(20 * GIB, 1)
    later = begun(40 * GIB, left=left)
    assert [found(later, 40 * GIB) for _ in range(3)] == [""] * 3
    assert found(later, 40 * GIB + 4096), "it is twice what may be there, and more than it was"


@pytest.mark.parametrize("size", [OVER, BOUND + 1, 40 * GIB])
async def test_what_was_there_before_is_known_at_once_and_interrupts_and_ends_nobody(size: int) -> None:
    """Also if nobody remembers who left it, as after a restart of the host."""
    quota = begun(size)
    assert quota.over is not None
    assert quota.over.bytes == size
    assert [found(quota, size) for _ in range(3)] == [""] * 3
    assert found(quota, size + STEP - 1) == ""
    assert await told(quota) is None
    found(quota, size + STEP)
    assert await told(quota) is not None, "what is added counts"


async def test_what_takes_too_long_to_count_before_it_begins_is_counted_soon_and_interrupts_nobody() -> None:
    quota = FilesQuota()
    quota.begin(None, TIER)
    assert quota.wants_look(0.0)
    assert found(quota, BOUND + 1) == ""
    assert (quota.over is not None, await told(quota)) == (True, None)
    assert found(quota, BOUND + 1) == ""
    assert found(quota, BOUND + 1 + STEP)
    hostile = FilesQuota()
    hostile.begin(None, TIER)
    assert [found(hostile, LIMIT + 1), bool(found(hostile, LIMIT + 1))] == ["", True], "it may be of this sandbox"


async def test_what_cannot_be_measured_ends_it_at_the_second_look() -> None:
    quota = FilesQuota()
    assert found(quota, 0, complete=False) == ""
    assert quota.wants_look(0.0)
    assert "cannot be measured" in found(quota, 0, complete=False)
    assert found(quota, 0) == ""
    assert found(quota, 0, complete=False) == ""


async def test_a_look_that_takes_long_is_not_repeated_at_once() -> None:
    quota = FilesQuota()
    found(quota, OVER, took_s=4.0)
    assert not quota.wants_look(15.9)
    assert quota.wants_look(16.0)
