"""When a service is asked again."""

from __future__ import annotations

import pytest

from workbench.services.retries import Policy, asked_for_s

_NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:28:30 -0000", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("\u0663", None),
        ("Wed, 99 Oct 2015 07:28:30 GMT", None),
    ],
)
def test_both_forms_of_retry_after_are_read(header: str, seconds: float | None) -> None:
    assert asked_for_s(header, _NOW) == seconds


def test_pauses_double_and_are_bounded() -> None:
    policy = Policy(attempts=20)
    longest = [policy.pause_s(failures, None, 1.0, 1000.0) for failures in range(1, 8)]
    assert longest == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    shortest = [policy.pause_s(failures, None, 0.0, 1000.0) for failures in range(1, 4)]
    assert shortest == [0.25, 0.5, 1.0]


def test_what_the_service_asks_for_is_the_least_that_is_waited() -> None:
    assert Policy().pause_s(1, 7.0, 0.5, 1000.0) == 7.0
    assert Policy().pause_s(1, 0.0, 1.0, 1000.0) == 0.5


@pytest.mark.parametrize(
    ("failures", "asked_for", "left_s"),
    [(4, None, 1000.0), (1, 61.0, 1000.0), (1, 5.0, 5.0), (3, None, 0.9), (1, None, -1.0)],
    ids=["too often", "too long", "no time for it", "no time", "time is over"],
)
def test_nobody_is_asked_again(failures: int, asked_for: float | None, left_s: float) -> None:
    assert Policy().pause_s(failures, asked_for, 0.5, left_s) is None
