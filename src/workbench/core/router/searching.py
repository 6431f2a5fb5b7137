"""COMPOSIO_SEARCH_TOOLS and COMPOSIO_GET_TOOL_SCHEMAS: which tools fit, what they take, whether they can be used."""

from __future__ import annotations

import datetime
import secrets
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.contracts.clock import Clock
from workbench.core.router.catalogue import Catalogue, nearest
from workbench.core.router.offered import GET_TOOL_SCHEMAS
from workbench.core.router.ranking import Ranking
from workbench.errors import WorkbenchError
from workbench.model.session import Session
from workbench.model.toolkit import LOCAL_PREFIX, Json, Tool

# Those that fit best, and those that might as well; a tool that has less than this part of the best one's score has
# little to do with the query.
_MOST_PRIMARY, _MOST_RELATED, _LEAST_PART = 5, 5, 0.25
# A schema of more characters is told on request.
_MOST_SCHEMA = 12_000
_MOST_SUGGESTED = 3
# Names that are unknown; for more of them nothing is suggested.
_MOST_GUESSED = 5
# Short, and each unlike the others: a model copies it from answer to answer.
_CHOICE = """
amber anchor apple arrow aspen autumn badge basil beach birch bloom bridge brook cabin candle canyon cedar cherry
cliff cloud clover coast copper coral cove crane creek dawn delta drift dune eagle earth ember fable falcon fern
field finch flame flint forest frost gate ginger glade glow grove harbor hazel heron hill honey island ivory ivy
jade jasper kelp kite lake lantern larch lark lemon lily linen lotus lunar maple marsh meadow mint mist moon moss
north oak oasis ocean olive onyx opal orbit orchid otter palm pearl pebble pine plum pond poppy quartz quill rain
raven reed ridge river robin rose rowan ruby saffron sage sand shell shore silver sky slate snow solar spark
spruce star stone storm stream summit swan thyme tide timber topaz trail tulip valley velvet violet walnut water
wave wheat willow wind winter wolf wren zephyr
"""
_WORDS = _CHOICE.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One step of a task."""

    use_case: str
    known_fields: str = ""


class Finding:
    """Looks through the catalogue, for sessions."""

    def __init__(self, catalogue: Catalogue, clock: Clock) -> None:
        self._catalogue = catalogue
        self._clock = clock

    async def search(
        self,
        session: Session,
        queries: Sequence[Query],
        custom: tuple[Tool, ...] = (),
        *,
        workflow: str = "",
        toolkits: Sequence[str] = (),
    ) -> Json:
        """Everything that agents are told. `toolkits` leaves out those of others."""
        tools = await self._usable(session, custom)
        if toolkits:
            wanted = {slug.lower() for slug in toolkits}
            tools = {slug: tool for slug, tool in tools.items() if tool.toolkit in wanted}
        ranking = Ranking(list(tools.values()))
        results = [_result(number, query, ranking) for number, query in enumerate(queries, 1)]
        named = {slug for one in results for key in ("primary_tool_slugs", "related_tool_slugs") for slug in one[key]}
        shown = {slug: _schema_of(tools[slug]) for slug in sorted(named)}
        used = sorted({tools[slug].toolkit for slug in named})
        return {
            "results": results,
            "tool_schemas": shown,
            "toolkit_connection_statuses": [await self._status(one, session, tools, named) for one in used],
            "next_steps_guidance": _guidance(results, shown, used),
            "session": _workflow(workflow),
            "time_info": self._time(session.spec.config.timezone),
        }

    async def schemas(
        self, session: Session, slugs: Sequence[str], include: Sequence[str], custom: tuple[Tool, ...] = ()
    ) -> Json:
        """Of tools by name."""
        tools = await self._usable(session, custom)
        wanted = {slug.strip().upper(): slug for slug in slugs}
        missing = [asked for slug, asked in wanted.items() if slug not in tools]
        data: Json = {
            "success": not missing,
            "tool_schemas": {
                slug: {
                    "toolkit": tools[slug].toolkit,
                    "tool_slug": slug,
                    "description": tools[slug].description,
                    **{name: getattr(tools[slug], name) for name in include},
                }
                for slug in wanted
                if slug in tools
            },
        }
        if missing:
            data["not_found"] = missing
            data["suggestions"] = {
                slug: nearest(slug.strip().upper(), tools, _MOST_SUGGESTED) for slug in missing[:_MOST_GUESSED]
            }
            data["not_found_message"] = (
                "There are no such tools in this session. Use a suggested one, or search by COMPOSIO_SEARCH_TOOLS; no "
                f"toolkit is configured on this workbench that has the others. The tools there are: {_some(tools)}"
            )
        return data

    async def _usable(self, session: Session, custom: tuple[Tool, ...]) -> dict[str, Tool]:
        found = {slug: one.tool for slug, one in (await self._catalogue.usable(session.spec.config)).items()}
        # Ours first, also where only some are looked at; none of the client's has a name of ours.
        return {**found, **{tool.slug: tool for tool in custom if tool.slug not in found}}

    async def _status(self, toolkit: str, session: Session, tools: dict[str, Tool], named: set[str]) -> Json:
        told: Json = {"toolkit": toolkit, "description": toolkit}
        if all(slug.startswith(LOCAL_PREFIX) for slug in named if tools[slug].toolkit == toolkit):
            words = "Its tools are run by the client that defined them, and need no connection here."
            return {**told, "has_active_connection": True, "status_message": words}
        told["description"] = next(
            (one.description for one in await self._catalogue.toolkits() if one.slug == toolkit), ""
        )
        try:
            connection = await self._catalogue.connection(toolkit, session)
        except WorkbenchError as problem:
            return {**told, "has_active_connection": False, "status_message": problem.message}
        return {**told, "has_active_connection": connection.is_active, "status_message": connection.words}

    def _time(self, timezone: str) -> Json:
        now = datetime.datetime.fromisoformat(self._clock.now_iso())
        told = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        words = f"It is {now:%A}, {told} (UTC)."
        if timezone:
            try:
                there = now.astimezone(zoneinfo.ZoneInfo(timezone))
                words += f" For the user, in {timezone}, it is {there:%A}, {there.isoformat(timespec='seconds')}."
            except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
                words += f" The user's time zone is told as {timezone[:60]!r}, which is not known here."
        return {"current_time_utc": told, "current_time_utc_epoch_seconds": int(now.timestamp()), "message": words}


def _result(number: int, query: Query, ranking: Ranking) -> Json:
    found = ranking.best(f"{query.use_case} {query.known_fields}")
    near = [tool for tool, score in found if score >= found[0][1] * _LEAST_PART]
    primary, related = near[:_MOST_PRIMARY], near[_MOST_PRIMARY : _MOST_PRIMARY + _MOST_RELATED]
    told: Json = {
        "index": number,
        "use_case": query.use_case,
        "primary_tool_slugs": [tool.slug for tool in primary],
        "related_tool_slugs": [tool.slug for tool in related],
        "toolkits": sorted({tool.toolkit for tool in (*primary, *related)}),
        "reasoning": "By the words that the task shares with names and descriptions of the tools there are.",
    }
    if not found:
        told["error"] = "No tool of this session has anything to do with it: its toolkit is not configured here."
    return told


def _schema_of(tool: Tool) -> Json:
    told: Json = {"tool_slug": tool.slug, "toolkit": tool.toolkit, "description": tool.description}
    if len(repr(tool.input_schema)) <= _MOST_SCHEMA:
        return {**told, "hasFullSchema": True, "input_schema": tool.input_schema, "output_schema": tool.output_schema}
    ask = {"tool": GET_TOOL_SCHEMAS, "args": {"tool_slugs": [tool.slug]}, "message": "It is long: ask for it."}
    return {**told, "hasFullSchema": False, "schemaRef": ask}


def _guidance(results: list[Json], shown: Json, toolkits: list[str]) -> list[str]:
    steps = []
    if shown:
        steps.append(
            "Run the tools that fit by COMPOSIO_MULTI_EXECUTE_TOOL, with arguments as their schemas have them."
        )
    if any(not one["hasFullSchema"] for one in shown.values()):
        steps.append("Where hasFullSchema is false, call what schemaRef says first.")
    if toolkits:
        steps.append("If a toolkit has no active connection, call COMPOSIO_MANAGE_CONNECTIONS with its slug first.")
    if any("error" in one for one in results):
        steps.append(
            "For some of this there is no tool here. Do not guess one: do it in the sandbox if it can be done there, "
            "or say that the toolkit is missing."
        )
    return steps


def _workflow(word: str) -> Json:
    chosen = word or secrets.choice(_WORDS)
    return {
        "id": chosen,
        "generate_id": not word,
        "instructions": f"Pass session_id={chosen!r} to all further tools of this workflow.",
    }


def _some(tools: dict[str, Any], most: int = 20) -> str:
    names = sorted(tools)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more
