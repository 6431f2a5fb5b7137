"""What falls short of a level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.model.capability import ISOLATION, LIMITS, Barrier, Capability, Grade, Level, shortfall

ALL = tuple(Capability(barrier=barrier, grade=Grade.ENFORCED, by="the kernel") for barrier in Barrier)
SESSION_WIDE = (Barrier.MEMORY, Barrier.CPU, Barrier.PROCESSES)


def _with(barrier: Barrier, grade: Grade) -> tuple[Capability, ...]:
    return tuple(replace(held, grade=grade) if held.barrier is barrier else held for held in ALL)


def test_every_barrier_is_isolation_or_a_limit_but_for_the_uid() -> None:
    assert {*ISOLATION, *LIMITS, Barrier.OWN_UID} == set(Barrier)
    assert not set(ISOLATION) & set(LIMITS)


@pytest.mark.parametrize("level", Level)
def test_nothing_falls_short_where_all_is_enforced(level: Level) -> None:
    assert shortfall(level, ALL) is None


@pytest.mark.parametrize("barrier", ISOLATION)
@pytest.mark.parametrize("grade", [Grade.WATCHED, Grade.ABSENT])
@pytest.mark.parametrize("level", [Level.STRICT, Level.ISOLATED])
def test_isolation_that_is_not_enforced_falls_short(barrier: Barrier, grade: Grade, level: Level) -> None:
    found = shortfall(level, _with(barrier, grade))
    assert found is not None
    assert (found.barrier, found.grade) == (barrier, grade)


@pytest.mark.parametrize("barrier", SESSION_WIDE)
def test_a_watched_limit_is_enough_for_isolated_and_too_little_for_strict(barrier: Barrier) -> None:
    held = _with(barrier, Grade.WATCHED)
    assert shortfall(Level.ISOLATED, held) is None
    found = shortfall(Level.STRICT, held)
    assert found is not None
    assert found.barrier is barrier


@pytest.mark.parametrize("barrier", SESSION_WIDE)
def test_an_absent_limit_falls_short(barrier: Barrier) -> None:
    held = _with(barrier, Grade.ABSENT)
    assert shortfall(Level.ISOLATED, held) is not None
    assert shortfall(Level.STRICT, held) is not None


@pytest.mark.parametrize("barrier", Barrier)
def test_open_insists_on_nothing(barrier: Barrier) -> None:
    assert shortfall(Level.OPEN, _with(barrier, Grade.ABSENT)) is None


def test_an_ordinary_users_one_uid_does_not_fall_short() -> None:
    assert shortfall(Level.STRICT, _with(Barrier.OWN_UID, Grade.ABSENT)) is None
