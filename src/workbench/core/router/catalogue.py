"""What tools there are, from all sources, and which of them a session may use."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.contracts.tools import ToolSource
from workbench.errors import Denied, NotConfigured
from workbench.model.configuration import Choice, SessionConfig, is_named
from workbench.model.session import Session
from workbench.model.toolkit import Connection, Tool, Toolkit

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


class Catalogue:
    """All sources. Owns none of them."""

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self._sources = tuple(sources)

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """Of all sources, by slug."""
        found: dict[str, Toolkit] = {}
        for source in self._sources:
            for toolkit in await source.toolkits():
                found.setdefault(toolkit.slug, toolkit)
        return tuple(found[slug] for slug in sorted(found))

    async def entries(self) -> dict[str, Entry]:
        """Of all sources, by the slug of the tool."""
        found: dict[str, Entry] = {}
        for source in self._sources:
            toolkits = {toolkit.slug: toolkit for toolkit in await source.toolkits()}
            for tool in await source.tools():
                found.setdefault(tool.slug, Entry(tool, toolkits[tool.toolkit], source))
        return found

    async def usable(self, config: SessionConfig) -> dict[str, Entry]:
        """Those that a session of this configuration may use."""
        return {slug: one for slug, one in (await self.entries()).items() if not why_not(config, one)}

    async def find(self, slug: str, config: SessionConfig) -> Entry:
        """The tool of that name, for a session.

        Raises:
            NotConfigured: there is none of that name here.
            Denied: there is, but the session may not use it.
        """
        entries = await self.entries()
        entry = entries.get(slug)
        if entry is None:
            usable = [known for known, one in entries.items() if not why_not(config, one)]
            raise NotConfigured(unknown_words(slug, usable), {"tool": slug[:_MOST_SLUG]})
        if reason := why_not(config, entry):
            raise Denied(f"{slug} cannot be used in this session, {reason}", {"tool": slug})
        return entry

    async def connection(self, toolkit: str, session: Session) -> Connection:
        """How the session's user is connected with a toolkit.

        Raises:
            NotConfigured: there is no such toolkit here.
        """
        for source in self._sources:
            if any(one.slug == toolkit for one in await source.toolkits()):
                return await source.connection(toolkit, session)
        raise NotConfigured(await self.unknown_toolkit_words(toolkit), {"toolkit": toolkit[:_MOST_SLUG]})

    async def unknown_toolkit_words(self, toolkit: str) -> str:
        """For one that there is not."""
        known = ", ".join(one.slug for one in await self.toolkits())
        return (
            f"the toolkit {toolkit[:_MOST_SLUG]!r} is not configured on this workbench, so nothing can be connected "
            f"with it; there are: {known or 'none'}"
        )


def why_not(config: SessionConfig, entry: Entry) -> str:
    """Why a session of this configuration may not use a tool; empty if it may."""
    return _why_not_toolkit(config, entry.toolkit) or _why_not_tool(config, entry.tool)


def is_enabled(config: SessionConfig, toolkit: Toolkit) -> bool:
    """Whether a session of this configuration may use a toolkit at all."""
    return not _why_not_toolkit(config, toolkit)


def _why_not_toolkit(config: SessionConfig, toolkit: Toolkit) -> str:
    choice = config.toolkits
    if choice is None or choice.takes(toolkit.slug):
        return ""
    if toolkit.is_basic and not is_named(toolkit.slug, choice.disable):
        return ""
    return f"as its configuration does not enable the toolkit {toolkit.slug}"


def _why_not_tool(config: SessionConfig, tool: Tool) -> str:
    if not all(one.tools.takes(tool.slug) for one in config.tools_of(tool.toolkit)):
        return f"as its configuration does not enable it among the tools of {tool.toolkit}"
    for tags in _tags(config, tool):
        if tags.enable is not None and not set(tags.enable) & set(tool.tags):
            return f"as it has none of the tags that its configuration enables: {', '.join(tags.enable) or 'none'}"
        if hit := sorted(set(tags.disable or ()) & set(tool.tags)):
            return f"as its configuration disables what is tagged {', '.join(hit)}"
    return _why_not_unasked(config, tool)


def _tags(config: SessionConfig, tool: Tool) -> list[Choice]:
    """Those of its toolkit, or else those of all."""
    own = [one.tags for one in config.tools_of(tool.toolkit) if one.tags is not None]
    return own or ([] if config.tags is None else [config.tags])


def _why_not_unasked(config: SessionConfig, tool: Tool) -> str:
    """BARRIER: what somebody wants to approve first must not be done without; held by
    tests/unit/core/router/test_catalogue.py.
    """
    asked = [
        config.toolkits is not None and config.toolkits.asks_first(tool.toolkit),
        any(one.tools.asks_first(tool.slug) for one in config.tools_of(tool.toolkit)),
        any(set(tags.require_approval or ()) & set(tool.tags) for tags in _tags(config, tool)),
    ]
    if any(asked):
        return "as its configuration wants each call of it to be approved, and this server cannot ask anybody for that"
    return ""


def nearest(slug: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Names that may have been meant, the likeliest first; of very many only the first are looked at."""
    # BARRIER: one request with many unknown names and tools of its own would stop the server for a minute; held by
    # tests/unit/core/router/test_searching.py.
    looked_at = list(itertools.islice(known, _MOST_COMPARED))
    return difflib.get_close_matches(slug[:_MOST_SLUG], looked_at, n=most, cutoff=_ALIKE)


def unknown_words(slug: str, known: Sequence[str]) -> str:
    """For a tool that there is not."""
    near = nearest(slug, known)
    hint = f"did you mean {' or '.join(near)}? There are" if near else "there are"
    there = ", ".join(sorted(known)[:_MOST_NAMED]) or "none"
    return (
        f"no tool {slug[:_MOST_SLUG]!r} here: no toolkit is configured on this workbench that has it; {hint}: {there}"
    )
