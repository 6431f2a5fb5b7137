"""Slugs of tools: what a description calls an operation, in capital letters, each once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

MOST_SLUG = 60
_WORD = re.compile(r"[A-Za-z0-9]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# With these at its end a name is cut in the middle of something.
_LOOSE = frozenset(("A", "AN", "AND", "AT", "BY", "FOR", "FROM", "IN", "OF", "ON", "OR", "THE", "TO", "WITH"))


def words_of(text: str) -> list[str]:
    """In capital letters; accents are left out."""
    return [one.upper() for one in _WORD.findall(_plain(text))]


def parts_of(name: str) -> list[str]:
    """The same for a name out of a program: `pulls/getOne` is PULLS, GET, ONE."""
    return [one.upper() for one in _PART.findall(_plain(name))]


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKD", text.replace("'", "")).encode("ascii", "ignore").decode()


def toolkit_slug(text: str) -> str:
    """In small letters: `github`; empty if there is nothing to make one of."""
    return "_".join(words_of(text)).lower()[:40].strip("_")


class Slugs:
    """Of one toolkit."""

    def __init__(self, toolkit: str) -> None:
        self._prefix = [one.upper() for one in toolkit.split("_") if one]
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def slug(self, summary: str, operation_id: str, method: str, path: str, tags: Iterable[str]) -> str:
        """One that none before it has: by its summary, else its id, else its address; then with its tag; then with a
        number.
        """
        by_id = parts_of(operation_id) or [method.upper(), *parts_of(path)]
        words = words_of(summary)
        if not words or (len(self._joined(words)) > MOST_SLUG and len(self._joined(by_id)) <= MOST_SLUG):
            words = by_id
        tried = [words, *([*words_of(tag), *words] for tag in tags), by_id]
        for one in tried:
            slug = self._fitted(one)
            if slug not in self._taken:
                self._taken.add(slug)
                return slug
        base = self._fitted(words, 4)
        # BARRIER: thousands of the same name would each be counted from the beginning; held by
        # tests/unit/toolkits/compiling/test_hostile.py.
        number = self._last.get(base, 1) + 1
        while (slug := f"{base}_{number}") in self._taken:
            number += 1
        self._last[base] = number
        self._taken.add(slug)
        return slug

    def _joined(self, words: list[str]) -> str:
        # `GITHUB_GITHUB_…` says it twice.
        rest = words[len(self._prefix) :] if words[: len(self._prefix)] == self._prefix else words
        return "_".join([*self._prefix, *(rest or words)])

    def _fitted(self, words: list[str], room: int = 0) -> str:
        """Cut between words, where that can be."""
        slug = self._joined(words)
        most = MOST_SLUG - room
        if len(slug) <= most:
            return slug
        kept = slug[: most + 1].split("_")[:-1]
        while len(kept) > len(self._prefix) + 1 and kept[-1] in _LOOSE:
            kept.pop()
        return "_".join(kept) if len(kept) > len(self._prefix) else slug[:most].rstrip("_")
