"""Any value as JSON has it."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from uuid import UUID

import pytest

from workbench_guest.rich.values import Patience, clean, picked, text

NIL = UUID(int=0)


class Raises:
    def __str__(self) -> str:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")


class Text(str):
    def __str__(self) -> str:
        raise RuntimeError("no")


class NaTType:
    pass


@pytest.mark.parametrize(
    ("value", "is_told_as"),
    [
        (None, None), (True, True), (7, 7), (2**53, 2**53), (2**53 + 1, "9007199254740993"), (-(2**60), str(-(2**60))),
        (1.5, 1.5), (float("nan"), None), (float("inf"), "Infinity"), (-float("inf"), "-Infinity"),
        ("a", "a"), ("\ud800b", "?b"), ("x" * 2000, "x" * 1000 + "…"), (Text("sub"), "sub"), (NaTType(), None),
        (datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC), "2024-05-01T12:00:00+00:00"),
        (datetime.time(1, 2), "01:02:00"), (datetime.timedelta(minutes=1), "PT60S"),
        (Decimal("1.10"), "1.10"), (NIL, str(NIL)), (b"\xff", "b'\\xff'"), ([1], "[1]"), ([0] * 1001, "<list of 1001>"),
        (Raises(), "<Raises>"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_are_numbers_texts_or_nothing(value: object, is_told_as: object) -> None:
    told = clean(value, Patience(10))
    assert told == is_told_as
    assert type(told) is type(is_told_as)
    json.dumps(told, allow_nan=False, ensure_ascii=False).encode()


def test_an_integer_with_more_digits_than_python_writes_is_told_by_its_type() -> None:
    assert clean(10**5000, Patience(10)) == "<int>"


def test_who_has_waited_long_enough_asks_no_value_any_more() -> None:
    assert clean(Decimal(1), Patience(-1)) == "<Decimal>"
    assert clean(1, Patience(-1)) == 1


def test_points_are_picked_at_equal_distances_with_both_ends() -> None:
    assert picked(range(5), 5) == [0, 1, 2, 3, 4]
    assert picked(range(1001), 3) == [0, 500, 1000]
    assert len(picked(range(10**9), 1000)) == 1000


def test_an_interrupt_is_not_swallowed() -> None:
    class Interrupted:
        def __str__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clean(Interrupted(), Patience(10))


def test_long_text_is_cut() -> None:
    assert len(text("é" * 10**6)) == 1001
