"""What tools there are, from all sources, and which of them a session may use."""

from __future__ import annotations

import asyncio
import difflib
import heapq
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from workbench.contracts.tools import ToolSource
from workbench.core.router.rules import Rules, tags_at_worst
from workbench.errors import Denied, NotConfigured, NotFound
from workbench.model.configuration import Choice, SessionConfig
from workbench.model.ids import ProjectId
from workbench.model.toolkit import Tool, Toolkit

_MOST_NAMED = 20
_MOST_SLUG = 100
# Of two names: below this they have nothing to do with each other.
_ALIKE = 0.5
# To compare two takes a tenth of a millisecond, in which nobody else is served; a client may bring thousands.
_MOST_COMPARED = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool, and who runs it."""

    tool: Tool
    toolkit: Toolkit
    source: ToolSource


Added = Callable[[ProjectId | None], Awaitable[Sequence[ToolSource]]]
"""those that were added for a project and for all; for all alone with None"""
_MOST_PROJECTS = 64


class Catalogue:
    """All sources. Owns none of them. What was added for one project is in the catalogue `of` it."""

    def __init__(
        self, sources: Sequence[ToolSource], added: Added | None = None, project: ProjectId | None = None
    ) -> None:
        self._own = tuple(sources)
        self._added = added
        self._project = project
        self._of: dict[ProjectId, Catalogue] = {}
        self._seen: tuple[object, ...] = ()
        self._entries: dict[str, Entry] = {}

    def of(self, project: ProjectId) -> Catalogue:
        """As a project has it."""
        if self._added is None:
            return self
        if project not in self._of:
            while len(self._of) >= _MOST_PROJECTS:
                del self._of[next(iter(self._of))]
            self._of[project] = Catalogue(self._own, self._added, project)
        return self._of[project]

    async def _sources(self) -> tuple[ToolSource, ...]:
        # First: of two tools of one name, that counts which somebody added on purpose.
        return (*(await self._added(self._project) if self._added is not None else ()), *self._own)

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """Of all sources, by slug."""
        found: dict[str, Toolkit] = {}
        for toolkits in await self._told():
            for toolkit in toolkits:
                found.setdefault(toolkit.slug, toolkit)
        return tuple(found[slug] for slug in sorted(found))

    async def _told(self) -> list[tuple[Toolkit, ...]]:
        """By each source. At once, as one that does not answer keeps who asks for as long as it may."""
        return await asyncio.gather(*(one.toolkits() for one in await self._sources()))

    async def toolkit_slugs(self) -> frozenset[str]:
        """Of all sources."""
        return frozenset(one.slug for one in await self.toolkits())

    async def entries(self) -> dict[str, Entry]:
        """Of all sources, by the slug of the tool; to be read only."""

        async def listed_by(source: ToolSource) -> tuple[ToolSource, tuple[Toolkit, ...], tuple[Tool, ...]]:
            return source, await source.toolkits(), await source.tools()

        listed = await asyncio.gather(*(listed_by(one) for one in await self._sources()))
        # Sources tell the same again until something has changed; there are thousands of tools.
        seen = tuple(one for _, toolkits, tools in listed for one in (toolkits, tools))
        if len(seen) != len(self._seen) or any(one is not other for one, other in zip(seen, self._seen, strict=True)):
            found: dict[str, Entry] = {}
            for source, toolkits, tools in listed:
                by_slug = {toolkit.slug: toolkit for toolkit in toolkits}
                for tool in tools:
                    found.setdefault(tool.slug, Entry(tool, by_slug[tool.toolkit], source))
            self._seen, self._entries = seen, found
        return self._entries

    async def usable(self, config: SessionConfig) -> dict[str, Entry]:
        """Those that a session of this configuration may use; to be read only."""
        entries, rules = await self.entries(), Rules(config)
        if rules.are_none:
            return entries
        return {slug: one for slug, one in entries.items() if not rules.why_not(one.toolkit, one.tool)}

    async def find(self, slug: str, config: SessionConfig) -> Entry:
        """The tool of that name, for a session.

        Raises:
            NotConfigured: there is none of that name here.
            Denied: there is, but the session may not use it.
        """
        entry = (await self.entries()).get(slug)
        if entry is None:
            words = unknown_words(slug, list(await self.usable(config)))
            raise NotConfigured(words, {"tool": slug[:_MOST_SLUG]})
        if reason := Rules(config).why_not(entry.toolkit, entry.tool):
            raise Denied(f"{slug} cannot be used in this session, {reason}", {"tool": slug})
        return entry

    async def toolkit(self, slug: str) -> Toolkit:
        """The one of that name, whatever session asks.

        Raises:
            NotFound: there is no such toolkit here.
        """
        for toolkits in await self._told():
            for one in toolkits:
                if one.slug == slug:
                    return one
        raise NotFound(await self.unknown_toolkit_words(slug), {"toolkit": slug[:_MOST_SLUG]})

    async def unknown_toolkit_words(self, toolkit: str) -> str:
        """For one that there is not."""
        known = [one.slug for one in await self.toolkits()]
        near = nearest(toolkit.lower(), known)
        hint = f"did you mean {' or '.join(near)}? There are" if near else "there are"
        return (
            f"the toolkit {toolkit[:_MOST_SLUG]!r} is not configured on this workbench, so nothing can be connected "
            f"with it; {hint}: {', '.join(known) or 'none'}; `workbench toolkits add` adds others"
        )


def is_enabled(config: SessionConfig, toolkit: Toolkit) -> bool:
    """Whether a session of this configuration may use a toolkit at all."""
    return not Rules(config).why_not_toolkit(toolkit)


def tags_for(config: SessionConfig, tool: Tool) -> list[Choice]:
    """What is said of tags: for its toolkit, or else for all."""
    own = [one.tags for one in config.tools_of(tool.toolkit) if one.tags is not None]
    return own or ([] if config.tags is None else [config.tags])


def is_asked_first(config: SessionConfig, tool: Tool) -> bool:
    """Whether somebody wants to approve it, by the name of its toolkit or by one of its tags."""
    return (config.toolkits is not None and config.toolkits.asks_first(tool.toolkit)) or any(
        tags_at_worst(tool).intersection(tags.require_approval or ()) for tags in tags_for(config, tool)
    )


def nearest(slug: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Names that may have been meant, the likeliest first."""
    slug, names = slug[:_MOST_SLUG], list(known)
    # BARRIER: one request with many unknown names and tools of its own would stop the server for a minute; held by
    # tests/unit/core/router/test_searching.py.
    if len(names) > _MOST_COMPARED:
        # Those that share most words are enough; of those that share as many, the first.
        words = set(slug.split("_"))
        shared = ((len(words.intersection(name.split("_"))), -number) for number, name in enumerate(names))
        names = [names[-place] for _, place in heapq.nlargest(_MOST_COMPARED, shared)]
    return difflib.get_close_matches(slug, names, n=most, cutoff=_ALIKE)


def unknown_words(slug: str, known: Sequence[str]) -> str:
    """For a tool that there is not."""
    near = nearest(slug, known)
    hint = f"did you mean {' or '.join(near)}? {there_words(known)}" if near else there_words(known)
    return f"no tool {slug[:_MOST_SLUG]!r} here: no toolkit is configured on this workbench that has it; {hint}"


def there_words(known: Sequence[str]) -> str:
    """What there is instead. The first of thousands would be of no use to anybody."""
    if len(known) > _MOST_NAMED:
        return f"COMPOSIO_SEARCH_TOOLS finds the right one of the {len(known):,} there are"
    return f"there are: {', '.join(sorted(known)) or 'none'}"
