"""Head and tail of long texts."""

from __future__ import annotations

import random

import pytest

from workbench.model.truncation import INLINE_CHARACTERS, Excerpt, excerpt


def test_a_text_up_to_the_limit_is_shown_whole() -> None:
    text = "\u00e9\n" * (INLINE_CHARACTERS // 2)
    assert excerpt(text) == text
    assert excerpt("") == ""


def test_a_longer_text_keeps_head_and_tail_and_says_what_is_left_out() -> None:
    text = "".join(f"{number}\n" for number in range(20_000))
    shown = excerpt(text)
    assert len(shown) <= INLINE_CHARACTERS
    head, line, tail = shown.partition("\n[... ")
    words, _, tail = tail.partition(" ...]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(tail) == INLINE_CHARACTERS // 2
    left_out = text[len(head) : len(text) - len(tail)]
    assert line
    assert words.startswith(f"{len(left_out):,} characters with {left_out.count(chr(10)):,} line ends are left out")


@pytest.mark.parametrize("characters", ["ab\n", "\u4f60\u597d\n", "\U0001f600\n\n"])
def test_pieces_of_any_size_give_the_same_as_the_whole(characters: str) -> None:
    dice = random.Random(3)
    text = "".join(dice.choices(characters, k=130_001))
    pieces, start = Excerpt(), 0
    while start < len(text):
        size = dice.choice((1, 2, 7, 1000, 30_000, 70_000))
        pieces.add(text[start : start + size])
        start += size
    assert pieces.shown() == excerpt(text)
    assert pieces.characters == len(text)
    assert pieces.lines == len(text.split("\n")) - text.endswith("\n")
    assert pieces.is_cut


def test_a_last_line_without_an_end_counts() -> None:
    counted = Excerpt()
    assert counted.lines == 0
    for text, lines in (("a", 1), ("\n", 1), ("b\nc", 3), ("", 3)):
        counted.add(text)
        assert counted.lines == lines


def test_what_somebody_left_out_before_is_counted_where_it_was() -> None:
    again = Excerpt(200)
    again.add("a" * 150)
    again.skip(1_000_000, 5_000)
    again.add("b" * 150)
    shown = again.shown()
    assert len(shown) <= 200
    left_out = 1_000_300 - shown.split("\n[")[0].count("a") - shown.split("]\n")[1].count("b")
    assert f"{left_out:,} characters with 5,000 line ends" in shown
