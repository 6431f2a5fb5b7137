"""Which tools fit a task: by its words, by its meaning where that can be compared, by the app and the verb it names.

Each counts for something, and the sum decides; docs/decisions/0015 says how the weights were found, bench/search.py
what they come to.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from workbench.contracts.search import Meaning, Meanings
from workbench.core.router.asking import asked_for, wanted
from workbench.core.router.wording import (
    Intent,
    also,
    in_plain_terms,
    intents_of,
    kinds_of,
    name_words,
    sentence_of,
    words_of,
)
from workbench.model.toolkit import Tool, Toolkit

# The usual constants of BM25: how soon more of one word stops to count, and how much a long text is held against it.
_K1, _B = 1.2, 0.5
# A name says more about a tool than a word somewhere in its description, of which the begin says what it does.
_NAME_WEIGHT, _TEXT_WEIGHT, _MOST_TEXT = 3.0, 1.0, 300
# Of a word that people have for it, and of one of the several things that it does.
_PLAIN_WEIGHT, _KIND_WEIGHT = 2.0, 1.0
# A name of more words is not more special.
_LONG_NAME = 8
# Words in common with what a toolkit says of itself; more are no better.
_MOST_TOLD = 2
# Words that a tool has to share with a task, if the task has as many.
_ENOUGH = 2
# Below this two sentences have nothing to do with each other.
_LEAST_ALIKE = 0.3
# Of a word that stands in the known fields, and not in the task itself.
_FIELD_WEIGHT = 0.3
# Those that are looked at more closely.
_MOST_LOOKED_AT = 300
# The part of the best possible score by BM25 that a good match reaches.
_REACHED = 0.6
# How alike something is of which nobody knows; twice that with all words in common.
_UNKNOWN = 0.3
# How alike a task and a tool are that have nothing to do with each other, and how many of those are added to a toolkit.
_ANY_ALIKE, _OTHERS = 0.12, 8
_READING = frozenset({Intent.READ, Intent.LIST})
_READ_ONLY, _DESTRUCTIVE, _DEPRECATED = "readOnlyHint", "destructiveHint", "deprecated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each reason counts for."""

    words: float
    """shared by the task and the tool"""
    synonyms: float
    """the tool's, of words of the task"""
    alike: float
    """in meaning, with the tool"""
    toolkit_alike: float
    """in meaning, with all tools of its toolkit on the average"""
    named: float
    """the task names the toolkit"""
    half_named: float
    """it has a word of the toolkit's name: `calendar`"""
    told: float
    """it has words of what the toolkit says of itself"""
    verb: float
    """the same or another intent"""
    reading: float
    """both only read, or both do not"""
    deleting: float
    """both delete, or only the tool does"""
    name: float
    """the part of the tool's name that the task has"""
    exact: float
    """the task is the tool's name, in as many words"""
    long: float
    """how many words the tool's name has: held against it"""
    deprecated: float
    """held against it too"""


WITH_MEANING = Weights(
    words=0.4, synonyms=0.58, alike=1.5, toolkit_alike=1.44, named=0.95, half_named=0.25, told=0.25, verb=0.06,
    reading=0.14, deleting=0.07, name=0.22, exact=0.3, long=0.06, deprecated=0.07,
)  # fmt: skip
BY_WORDS = Weights(
    words=1.3, synonyms=0.8, alike=0.0, toolkit_alike=0.0, named=1.8, half_named=0.4, told=0.35, verb=0.05,
    reading=0.43, deleting=0.2, name=0.6, exact=0.3, long=0.15, deprecated=0.3,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is looked for."""

    words: str
    fields: str = ""
    """what is known already: `channel_name: general`"""


@dataclass(frozen=True, slots=True)
class Found:
    """A tool that fits."""

    tool: Tool
    score: float


@dataclass(frozen=True, slots=True)
class _Text:
    """A tool, read once."""

    tool: Tool
    sentences: tuple[str, ...]
    """what it does, and more of it for some"""
    counts: Mapping[str, float]
    length: float
    name: frozenset[str]
    bare_name: frozenset[str]
    """without the toolkit's"""
    intents: frozenset[Intent]
    reads: bool
    deletes: bool
    is_deprecated: bool

    @classmethod
    def of(cls, tool: Tool, toolkit: Toolkit) -> _Text:
        name = frozenset(name_words(_own_name(tool))) | frozenset(name_words(tool.name))
        counts: Counter[str] = Counter(words_of(tool.description[:_MOST_TEXT]))
        weighed = {word: times * _TEXT_WEIGHT for word, times in counts.items()}
        sentence = sentence_of(toolkit.name, tool.name, tool.description)
        plain, kinds = in_plain_terms(toolkit, sentence), kinds_of(toolkit, tool)
        for said, weight in ((plain, _PLAIN_WEIGHT), *((kind, _KIND_WEIGHT) for kind in kinds)):
            for word in words_of(said):
                weighed[word] = max(weighed.get(word, 0.0), weight)
        for word in name:
            weighed[word] = weighed.get(word, 0.0) + _NAME_WEIGHT
        intents = frozenset().union(*intents_of(tool.name))
        return cls(
            tool=tool,
            sentences=(sentence, *(f"{toolkit.name}: {said}" for said in (plain, *kinds) if said)),
            counts=weighed,
            length=sum(weighed.values()),
            name=name,
            bare_name=name.difference(words_of(toolkit.name), words_of(toolkit.slug)),
            intents=intents,
            reads=_READ_ONLY in tool.tags,
            deletes=_DESTRUCTIVE in tool.tags and Intent.DELETE in intents,
            is_deprecated=_DEPRECATED in f"{tool.name} {tool.description[:_MOST_TEXT]}".lower(),
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A task, read once."""

    words: Mapping[str, float]
    said: Set[str]
    """those of the task itself"""
    synonyms: Set[str]
    scale: float
    named: Set[str]
    half_named: Set[str]
    wanted: frozenset[Intent]


class Ranking:
    """Of some tools. Made once for as long as they stay the same."""

    def __init__(self, tools: Sequence[Tool], toolkits: Mapping[str, Toolkit] | None = None) -> None:
        """`toolkits` by their slugs; of one that is not there nothing is known but that."""
        known = toolkits or {}
        self._toolkits = {
            slug: known.get(slug) or Toolkit(slug=slug, name=slug) for slug in {tool.toolkit for tool in tools}
        }
        # By toolkit, so that all of one lie side by side.
        ordered = sorted(tools, key=lambda one: (one.toolkit, one.slug))
        self._texts = [_Text.of(tool, self._toolkits[tool.toolkit]) for tool in ordered]
        self._average = sum(text.length for text in self._texts) / max(1, len(self._texts)) or 1.0
        self._having: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, text in enumerate(self._texts):
            norm = self._norm(text)
            for word, count in text.counts.items():
                self._having[word].append((number, count * (_K1 + 1) / (count + norm)))
        self._runs = _runs([text.tool.toolkit for text in self._texts])
        self._run_of = [number for number, (_, begin, end) in enumerate(self._runs) for _ in range(begin, end)]
        self._slugs = [text.tool.slug for text in self._texts]
        self._toolkit_words = {slug: tuple(words_of(one.name)) for slug, one in self._toolkits.items()}
        shared = Counter(word for words in self._toolkit_words.values() for word in set(words))
        self._own_words = {
            slug: frozenset(word for word in words if shared[word] == 1) for slug, words in self._toolkit_words.items()
        }
        self._told_words = {slug: frozenset(words_of(one.description)) for slug, one in self._toolkits.items()}
        self._apps = frozenset(word for one in self._toolkits.values() for word in one.name.lower().split())
        self._meanings: Meanings | None = None
        # Which tool each sentence is of that comes after the first of each.
        self._more = [at for at, text in enumerate(self._texts) for _ in text.sentences[1:]]

    async def learn(self, meaning: Meaning) -> None:
        """Compare by meaning from now on.

        Raises:
            NotConfigured: it cannot be done here.
        """
        self._meanings = await meaning.of(self.sentences())

    def sentences(self) -> list[str]:
        """Of the tools: the first of each, then what else there is of some."""
        return [
            *(text.sentences[0] for text in self._texts),
            *(said for text in self._texts for said in text.sentences[1:]),
        ]

    async def best(
        self,
        tasks: Sequence[Task],
        most: int,
        allowed: Mapping[str, Tool] | None = None,
        weights: Weights | None = None,
    ) -> list[list[Found]]:
        """For each task those that have anything to do with it, the best first; among equals by name.

        Only those that are `allowed`, by their slugs; all without.
        """
        if not self._texts or not tasks:
            return [[] for _ in tasks]
        asked = [asked_for(task.words, self._apps) for task in tasks]
        if self._meanings is None:
            rows: Sequence[Sequence[float] | None] = [None] * len(tasks)
        else:
            rows = await self._meanings.alike(asked)
        return [
            self._best(self._asked(task, words), self._nearest(row), most, allowed, weights)
            for task, words, row in zip(tasks, asked, rows, strict=True)
        ]

    def _nearest(self, row: Sequence[float] | None) -> Sequence[float] | None:
        """Of several sentences of a tool the one that is most alike counts."""
        if row is None:
            return None
        found = list(row[: len(self._texts)])
        for at, value in zip(self._more, row[len(self._texts) :], strict=True):
            if value > found[at]:
                found[at] = value
        return found

    def _best(
        self,
        asked: _Asked,
        alike: Sequence[float] | None,
        most: int,
        allowed: Mapping[str, Tool] | None,
        weights: Weights | None,
    ) -> list[Found]:
        weights = weights or (BY_WORDS if alike is None else WITH_MEANING)
        shared = self._shared(asked.words, asked.scale)
        meant = self._shared(dict.fromkeys(asked.synonyms, 1.0), asked.scale)
        known = _guessed(alike, shared, len(self._texts))
        adds = self._of_toolkits(asked, known, weights)
        near = {at for at, value in enumerate(alike or ()) if value >= _LEAST_ALIKE}
        named = (at for slug, begin, end in self._runs if slug in asked.named for at in range(begin, end))
        rough = {
            at: adds[self._run_of[at]]
            + weights.alike * known[at]
            + weights.words * shared.get(at, 0.0)
            + weights.synonyms * meant.get(at, 0.0)
            for at in near.union(shared, named)
            if allowed is None or allowed.get(self._slugs[at]) is self._texts[at].tool
        }
        looked_at = heapq.nlargest(_MOST_LOOKED_AT, rough, key=rough.__getitem__)
        found = [
            Found(self._texts[at].tool, rough[at] + self._by_name(at, asked, weights))
            for at in looked_at
            if at in near or self._has_enough(at, asked)
        ]
        return heapq.nsmallest(most, found, key=lambda one: (-one.score, one.tool.slug))

    def _asked(self, task: Task, asked: str) -> _Asked:
        whole = words_of(task.words)
        named = {
            slug
            for slug, name in self._toolkit_words.items()
            if name and any(tuple(whole[at : at + len(name)]) == name for at in range(len(whole)))
        } | (self._toolkits.keys() & set(task.words.lower().split()))
        half_named = {slug for slug, own in self._own_words.items() if slug not in named and own & set(whole)}
        # The name of an app tells which toolkit is meant, and of its tools nothing.
        names = {word for slug in named for word in self._toolkit_words[slug]}
        words = dict.fromkeys((word for word in words_of(asked) if word not in names), 1.0)
        said = frozenset(words)
        synonyms = {other for word in words for other in also(word)} - words.keys()
        for word in words_of(task.fields):
            words.setdefault(word, _FIELD_WEIGHT)
        return _Asked(
            words=words,
            said=said,
            synonyms=synonyms,
            # What no tool has a word for is a name, or what somebody wants to say.
            scale=sum(self._rarity(word) * times for word, times in words.items() if word in self._having) or 1.0,
            named=named,
            half_named=half_named,
            wanted=wanted(task.words),
        )

    def _shared(self, words: Mapping[str, float], scale: float) -> dict[int, float]:
        """What tools that have any of the words score by BM25: 1 for about as much as the task's own words can."""
        found: dict[int, float] = defaultdict(float)
        for word, times in words.items():
            weight = times * self._rarity(word) / scale / (_K1 + 1) / _REACHED
            for at, score in self._having.get(word, ()):
                found[at] += weight * score
        return found

    def _of_toolkits(self, asked: _Asked, known: Sequence[float], weights: Weights) -> list[float]:
        """What each adds for its tools, in the order of the runs. One that is named in part counts less beside one that
        is named.
        """
        half = weights.half_named / (2 if asked.named else 1)
        said = asked.words.keys() | asked.synonyms
        found: list[float] = []
        for slug, begin, end in self._runs:
            # Of a few tools the average is chance: it is taken together with some that are as any other.
            value = weights.toolkit_alike * (sum(known[begin:end]) + _OTHERS * _ANY_ALIKE) / (end - begin + _OTHERS)
            value += weights.named if slug in asked.named else half if slug in asked.half_named else 0.0
            found.append(value + weights.told * min(_MOST_TOLD, len(said & self._told_words[slug])) / _MOST_TOLD)
        return found

    def _has_enough(self, at: int, asked: _Asked) -> bool:
        """Whether a tool that is not near in meaning shares words with the task: one of many is chance, by which each
        would be found where there are few tools.
        """
        there = self._texts[at].counts.keys()
        is_named = self._texts[at].tool.toolkit in asked.named
        enough = min(_ENOUGH, len(asked.words) + bool(asked.named)) - is_named
        meant = sum(1 for word in asked.words if word in there or not there.isdisjoint(also(word)))
        return meant >= enough

    def _by_name(self, at: int, asked: _Asked, weights: Weights) -> float:
        """What the name of the tool, and what it does to things, add."""
        text = self._texts[at]
        has = sum(1.0 if word in asked.words else 0.5 if word in asked.synonyms else 0.0 for word in text.name)
        value = (
            weights.name * has / max(1, len(text.name)) - weights.long * min(_LONG_NAME, len(text.name)) / _LONG_NAME
        )
        if text.bare_name == asked.said:
            value += weights.exact
        if text.is_deprecated:
            value -= weights.deprecated
        if not asked.wanted:
            return value
        if text.intents:
            value += weights.verb if asked.wanted & text.intents else -weights.verb
        if text.deletes:
            value += weights.deleting if Intent.DELETE in asked.wanted else -weights.deleting
        if asked.wanted <= _READING:
            return value + (weights.reading if text.reads else -weights.reading)
        if not asked.wanted & _READING:
            return value + (-weights.reading if text.reads else weights.reading)
        return value

    def _norm(self, text: _Text) -> float:
        return _K1 * (1 - _B + _B * text.length / self._average)

    def _rarity(self, word: str) -> float:
        """A word that few have tells more; never less than nothing."""
        having = len(self._having.get(word, ()))
        return math.log(1 + (len(self._texts) - having + 0.5) / (having + 0.5))


def _own_name(tool: Tool) -> str:
    """The slug without the name of the toolkit."""
    return tool.slug.removeprefix(f"{tool.toolkit.upper()}_")


def _runs(toolkits: Sequence[str]) -> list[tuple[str, int, int]]:
    """Where those of one toolkit begin and end."""
    found: list[tuple[str, int, int]] = []
    for at, slug in enumerate(toolkits):
        if found and found[-1][0] == slug:
            found[-1] = (slug, found[-1][1], at + 1)
        else:
            found.append((slug, at, at + 1))
    return found


def _guessed(alike: Sequence[float] | None, shared: Mapping[int, float], length: int) -> list[float]:
    """How alike each is; for those that nobody knows yet, by the words that they share."""
    if alike is None:
        return [0.0] * length
    if not math.isnan(sum(alike)):
        return list(alike)
    return [
        value if value == value else _UNKNOWN + _UNKNOWN * min(1.0, shared.get(at, 0.0))
        for at, value in enumerate(alike)
    ]
