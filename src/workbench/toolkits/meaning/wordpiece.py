"""Texts as numbers of the parts of words that a BERT model was taught with: WordPiece over its own vocabulary."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
# Longer words are nobody's; the model's own tokenizer gives them up as well.
_MOST_LETTERS = 100
# Of a text, before it is cut into parts: 64 of them are never longer.
_MOST_CHARACTERS = 4_000


class WordPiece:
    """The parts of words of one vocabulary."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary

    @classmethod
    def read(cls, path: Path) -> WordPiece:
        """From a `vocab.txt`: one part a line, numbered from nothing."""
        lines = path.read_text(encoding="utf-8").split("\n")
        return cls({part: number for number, part in enumerate(lines) if part})

    def numbers(self, text: str, most: int) -> list[int]:
        """Of the parts of a text, with the marks of its begin and its end; at most that many."""
        found: list[int] = []
        for word in _words(text[:_MOST_CHARACTERS]):
            found.extend(self._parts(word))
            if len(found) >= most - 2:
                break
        return [self._vocabulary[_BEGIN], *found[: most - 2], self._vocabulary[_END]]

    def _parts(self, word: str) -> tuple[int, ...]:
        """The longest part that is known first, then the longest of the rest."""
        if len(word) > _MOST_LETTERS:
            return (self._vocabulary[_UNKNOWN],)
        parts: list[int] = []
        begin = 0
        while begin < len(word):
            mark = "##" if begin else ""
            ends = range(len(word), begin, -1)
            end = next((end for end in ends if mark + word[begin:end] in self._vocabulary), None)
            if end is None:
                return (self._vocabulary[_UNKNOWN],)
            parts.append(self._vocabulary[mark + word[begin:end]])
            begin = end
        return tuple(parts)


def _words(text: str) -> Iterator[str]:
    """Small letters without accents; marks and Chinese characters are words of their own."""
    word = ""
    for letter in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(letter)
        if letter.isspace():
            yield from filter(None, (word,))
            word = ""
        elif kind == "Mn" or kind.startswith("C"):
            continue
        elif _is_mark(letter, kind) or _is_chinese(letter):
            yield from filter(None, (word, letter))
            word = ""
        else:
            word += letter
    yield from filter(None, (word,))


def _is_mark(letter: str, kind: str) -> bool:
    return kind.startswith("P") or (letter.isascii() and not letter.isalnum())


def _is_chinese(letter: str) -> bool:
    return "\u4e00" <= letter <= "\u9fff" or "\u3400" <= letter <= "\u4dbf" or "\uf900" <= letter <= "\ufaff"
