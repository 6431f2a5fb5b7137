"""Rankings of what the sources have, made when somebody first searches and kept until a source has something else."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.contracts.search import Meaning
from workbench.core.router.catalogue import Entry
from workbench.core.router.ranking import Found, Ranking, Task
from workbench.errors import WorkbenchError
from workbench.model.toolkit import Tool

_log = logging.getLogger(__name__)
# More than anybody is shown.
_MOST = 20
# Of sources and of catalogues: the shipped tools are in one for all projects, and take 40 MB; others have fewer.
_MOST_KEPT = 64
# What somebody made for this very session is more likely to be meant than one of thousands.
_OWN = 0.4


class KeptRankings:
    """One for all sessions: what a session may not use is left out when it asks."""

    def __init__(self, meaning: Meaning | None) -> None:
        self._meaning = meaning
        self._making = asyncio.Lock()
        self._parts: OrderedDict[tuple[int, ...], Ranking] = OrderedDict()
        self._of: OrderedDict[int, tuple[Mapping[str, Entry], list[Ranking]]] = OrderedDict()
        self._has_told = False

    def words(self) -> str:
        """How tools are found, for who reads the answer."""
        why_not = "" if self._meaning is None else self._meaning.why_not()
        if why_not and not self._has_told:
            self._has_told = True
            _log.warning("%s", why_not)
        if self._meaning is not None and not why_not:
            return "By meaning, and by the words that the task shares with names and descriptions of tools."
        # Not why, nor what to do about it: that is for who runs the workbench, and told in its log.
        return "By the words that the task shares with names and descriptions of tools alone."

    async def best(
        self, tasks: Sequence[Task], entries: Mapping[str, Entry], allowed: Mapping[str, Tool]
    ) -> list[list[Found]]:
        """For each task those of the allowed ones that fit it, the best first. `entries` are the whole catalogue, the
        same object until it changes; what is allowed and not in there is the caller's own.
        """
        own = [allowed[slug] for slug in sorted(allowed.keys() - entries.keys())]
        found = [await ranking.best(tasks, _MOST, allowed) for ranking in await self._made(entries)]
        if own:
            of_own = await (await self._learned(Ranking(own))).best(tasks, _MOST, allowed)
            found.append([[replace(hit, score=hit.score + _OWN) for hit in hits] for hits in of_own])
        return [
            heapq.nsmallest(
                _MOST, (hit for one in found for hit in one[at]), key=lambda hit: (-hit.score, hit.tool.slug)
            )
            for at in range(len(tasks))
        ]

    async def _made(self, entries: Mapping[str, Entry]) -> list[Ranking]:
        known = self._of.get(id(entries))
        if known is None or known[0] is not entries:
            async with self._making:
                known = (entries, [await self._part(part) for part in _by_source(entries)])
                # Kept with the entries, as an id is good for only as long as there is what it is of.
                self._of[id(entries)] = known
                while len(self._of) > _MOST_KEPT:
                    self._of.popitem(last=False)
        self._of.move_to_end(id(entries))
        return known[1]

    async def _part(self, part: Sequence[Entry]) -> Ranking:
        """Of one source; the same for all projects that have the same of it."""
        key = tuple(id(one.tool) for one in part)
        ranking = self._parts.get(key)
        if ranking is None:
            toolkits = {one.toolkit.slug: one.toolkit for one in part}
            made = await asyncio.to_thread(Ranking, [one.tool for one in part], toolkits)
            ranking = self._parts[key] = await self._learned(made)
            while len(self._parts) > _MOST_KEPT:
                self._parts.popitem(last=False)
        self._parts.move_to_end(key)
        return ranking

    async def _learned(self, ranking: Ranking) -> Ranking:
        if self._meaning is not None and not self._meaning.why_not():
            try:
                await ranking.learn(self._meaning)
            except WorkbenchError:
                # By words alone then; the log says why.
                return ranking
        return ranking


def _by_source(entries: Mapping[str, Entry]) -> list[list[Entry]]:
    found: dict[int, list[Entry]] = {}
    for one in entries.values():
        found.setdefault(id(one.source), []).append(one)
    return list(found.values())
