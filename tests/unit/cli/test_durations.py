"""Durations as people write them."""

from __future__ import annotations

import click
import pytest

from workbench.cli.durations import Duration, IdleDuration, in_words


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90", 90), ("90s", 90), ("15m", 900), ("24h", 86_400), ("30d", 2_592_000)]
)
def test_a_number_with_or_without_a_unit_is_seconds(text: str, seconds: int) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1.5h", "soon", "1w", "1h30m", "\u0663", "9999999999"])
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 90s, 15m, 24h or 30d"):
        Duration().convert(text, None, None)


def test_an_idle_limit_can_be_never_or_the_servers() -> None:
    kind = IdleDuration()
    assert [kind.convert(text, None, None) for text in ("never", "default", "2h")] == [0, None, 7200]


@pytest.mark.parametrize(("seconds", "words"), [(0, "0s"), (59, "59s"), (900, "15m"), (7200, "2h"), (86_400, "1d")])
def test_seconds_are_said_in_the_largest_unit_that_fits(seconds: int, words: str) -> None:
    assert in_words(seconds) == words
