"""Texts are cut into the parts that a vocabulary has, the longest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.toolkits.meaning.wordpiece import WordPiece

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "send",
    "mail",
    "##s",
    "##ing",
    "e",
    "-",
    "!",
    "cafe",
    "中",
    "文",
    "a",
]


@pytest.fixture
def words(tmp_path: Path) -> WordPiece:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return WordPiece.read(path)


def parts(words: WordPiece, text: str, most: int = 64) -> list[str]:
    return [VOCABULARY[number] for number in words.numbers(text, most)]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Sending E-Mails!", ["send", "##ing", "e", "-", "mail", "##s", "!"]),
        ("Café", ["cafe"]),
        ("中文", ["中", "文"]),
        ("send\x00\u200bmail", ["[UNK]"]),
        ("zebra send", ["[UNK]", "send"]),
        ("sendzebra", ["[UNK]"]),
        ("s" * 101, ["[UNK]"]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_a_text_is_cut_into_the_longest_parts_that_are_known(words: WordPiece, text: str, cut: list[str]) -> None:
    assert parts(words, text) == ["[CLS]", *cut, "[SEP]"]


def test_a_long_text_is_cut_off_with_its_marks_in_place(words: WordPiece) -> None:
    assert parts(words, "send " * 100_000, 8) == ["[CLS]", *["send"] * 6, "[SEP]"]
