"""Which tools fit a task: BM25 over the words of their slugs, names and descriptions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from workbench.model.toolkit import Tool

# The usual constants of BM25: how soon more of one word stops to count, and how much a long text is held against it.
_K1, _B = 1.2, 0.75
# A name says more about a tool than a word somewhere in its description.
_NAME_WEIGHT, _TEXT_WEIGHT = 3, 1
# Words that a tool has to share with a task, if the task has as many.
_ENOUGH = 2
_WORD = re.compile(r"[a-z0-9]+")
_ENDINGS = ("ing", "es", "ed", "e", "s")
_LEAST_STEM = 3
_EMPTY_WORDS = """
a about all an and any are as at be by can do for from get give has have how i in into is it its me my of on or our some
that the their them then this to up use user want was we what when which who will with you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())


def words_of(text: str) -> list[str]:
    """Its words in a common form, without those that say nothing."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _EMPTY]


def _stem(word: str) -> str:
    """`searches` and `searching` are both `search`: crude, and the same for both sides."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word.removesuffix(ending)
    return word


class Ranking:
    """Of some tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tuple(tools)
        self._counts = [_weighed(tool) for tool in tools]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._average = (sum(self._lengths) / len(self._lengths)) if self._lengths else 1.0
        self._in = Counter(word for counts in self._counts for word in counts)

    def best(self, query: str) -> list[tuple[Tool, float]]:
        """Those that have anything to do with it, the best first; among equals by name."""
        words = set(words_of(query))
        found = [
            (tool, self._score(number, words)) for number, tool in enumerate(self._tools) if self._fits(number, words)
        ]
        return sorted(found, key=lambda one: (-one[1], one[0].slug))

    def _fits(self, number: int, words: set[str]) -> bool:
        """One word of many that both have is chance: where there are few tools, each would be found by that."""
        return 0 < min(_ENOUGH, len(words)) <= len(words & set(self._counts[number]))

    def _score(self, number: int, words: set[str]) -> float:
        counts, length = self._counts[number], self._lengths[number]
        norm = _K1 * (1 - _B + _B * length / self._average)
        return sum(
            self._weight(word) * counts[word] * (_K1 + 1) / (counts[word] + norm) for word in words & set(counts)
        )

    def _weight(self, word: str) -> float:
        """A word that few have tells more; never less than nothing."""
        having = self._in[word]
        return math.log(1 + (len(self._tools) - having + 0.5) / (having + 0.5))


def _weighed(tool: Tool) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, weight in (
        (tool.slug, _NAME_WEIGHT),
        (tool.name, _NAME_WEIGHT),
        (tool.toolkit, _NAME_WEIGHT),
        (tool.description, _TEXT_WEIGHT),
    ):
        for word in words_of(text):
            counts[word] += weight
    return counts
