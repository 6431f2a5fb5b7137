"""COMPOSIO_SEARCH_TOOLS and COMPOSIO_GET_TOOL_SCHEMAS: which tools fit, what they take, whether they can be used."""

from __future__ import annotations

import datetime
import secrets
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.contracts.clock import Clock
from workbench.contracts.search import Meaning
from workbench.contracts.storage import ToolMemory
from workbench.core.router.accounts import Accounts
from workbench.core.router.approving import policy_for
from workbench.core.router.catalogue import Catalogue, nearest, there_words
from workbench.core.router.connecting import accounts_told, standing_of
from workbench.core.router.kept_rankings import KeptRankings
from workbench.core.router.offered import MANAGE_CONNECTIONS, MULTI_EXECUTE_TOOL, offered
from workbench.core.router.ranking import Found, Task
from workbench.core.router.shapes import read, shallow
from workbench.core.router.showing import shown
from workbench.errors import WorkbenchError
from workbench.model.approval import Policy
from workbench.model.session import Session
from workbench.model.toolkit import LOCAL_PREFIX, Json, Tool

# Those that fit best, and those that might as well; a tool that has less than this part of the best one's score has
# little to do with the query.
_MOST_PRIMARY, _MOST_RELATED, _LEAST_PART = 5, 5, 0.5
# With this part of the best one's score a tool fits about as well.
_AS_GOOD = 0.85
# Characters of a shape, in an answer that has several.
_MOST_SHAPE = 2000
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

    def __init__(
        self,
        catalogue: Catalogue,
        clock: Clock,
        accounts: Accounts,
        memory: ToolMemory,
        meaning: Meaning | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._rankings = KeptRankings(meaning)
        self._clock = clock
        self._accounts = accounts
        self._memory = memory

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
        tasks = [Task(words=query.use_case, fields=query.known_fields) for query in queries]
        found = await self._rankings.best(tasks, await self._catalogue.of(session.spec.project).entries(), tools)
        how = self._rankings.words()
        near = [_near(one) for one in found]
        named = {hit.tool.slug for one in near for hit in one}
        used = sorted({hit.tool.toolkit for one in near for hit in one})
        statuses = [await self._status(one, session, tools, named) for one in used]
        ready = {one["toolkit"] for one in statuses if one["has_active_connection"]}
        results = [
            _result(at, query, _ready_first(one, ready), how)
            for at, (query, one) in enumerate(zip(queries, near, strict=True), 1)
        ]
        schemas = shown(results, tools, await self._seen(session, sorted(named)))
        asking = [slug for slug in schemas if _is_asked(session, tools[slug])]
        return {
            "results": results,
            "tool_schemas": schemas,
            "toolkit_connection_statuses": statuses,
            "next_steps_guidance": _guidance(session, results, _lacking(results, tools, ready), schemas, asking),
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
        seen = await self._seen(session, list(wanted))
        data: Json = {
            "success": not missing,
            "tool_schemas": {
                slug: {
                    "toolkit": tools[slug].toolkit,
                    "tool_slug": slug,
                    "description": tools[slug].description,
                    **{name: getattr(tools[slug], name) for name in include},
                    **seen.get(slug, {}),
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
                f"There are no such tools in this session. Use a suggested one; {there_words(list(tools))}."
            )
        return data

    async def _usable(self, session: Session, custom: tuple[Tool, ...]) -> dict[str, Tool]:
        usable = await self._catalogue.of(session.spec.project).usable(session.spec.config)
        found = {slug: one.tool for slug, one in usable.items()}
        # Ours first, also where only some are looked at; none of the client's has a name of ours.
        return {**found, **{tool.slug: tool for tool in custom if tool.slug not in found}}

    async def _status(self, toolkit: str, session: Session, tools: dict[str, Tool], named: set[str]) -> Json:
        told: Json = {"toolkit": toolkit, "description": toolkit}
        if all(slug.startswith(LOCAL_PREFIX) for slug in named if tools[slug].toolkit == toolkit):
            words = "Its tools are run by the client that defined them, and need no connection here."
            return {**told, "has_active_connection": True, "status_message": words}
        try:
            found = await self._catalogue.of(session.spec.project).toolkit(toolkit)
            standing = await standing_of(self._accounts, session, found)
        except WorkbenchError as problem:
            return {**told, "has_active_connection": False, "status_message": problem.message}
        told |= {"description": found.description, "has_active_connection": standing.reach.is_active}
        active = [one for one in standing.accounts if one.is_active]
        if len(active) > 1:
            told["accounts"] = accounts_told(active)
            told["account_selection"] = "Pass one of these ids or aliases as `account`; the newest is used otherwise."
        return {**told, "status_message": standing.reach.words}

    async def _seen(self, session: Session, slugs: Sequence[str]) -> dict[str, Json]:
        """What answers of these tools really looked like in the project. That nobody knows costs nothing else."""
        try:
            found = await self._memory.shapes(session.spec.project, slugs)
        except WorkbenchError:
            return {}
        told = {}
        for slug, one in found.items():
            calls = "1 call" if one.calls == 1 else f"{one.calls:,} calls"
            shape: Any = read(one.shape)
            if len(one.shape) > _MOST_SHAPE:
                shape = shallow(shape)
            told[slug] = {"seen_output": {"note": f"`data` as seen in {calls}", "shape": shape}}
        return told

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


def _near(found: Sequence[Found]) -> list[Found]:
    """Those that have something to do with the query."""
    near = [one for one in found if one.score >= found[0].score * _LEAST_PART]
    return near[: _MOST_PRIMARY + _MOST_RELATED]


def _ready_first(near: Sequence[Found], ready: set[str]) -> list[Tool]:
    """Of those that fit about as well as the best, the ones that can be used now come first."""
    as_good = [one.tool for one in near if one.score >= near[0].score * _AS_GOOD]
    ordered = sorted(as_good, key=lambda tool: tool.toolkit not in ready)
    return [*ordered, *(one.tool for one in near[len(as_good) :])]


def _result(number: int, query: Query, found: Sequence[Tool], how: str) -> Json:
    told: Json = {
        "index": number,
        "use_case": query.use_case,
        "primary_tool_slugs": [tool.slug for tool in found[:_MOST_PRIMARY]],
        "related_tool_slugs": [tool.slug for tool in found[_MOST_PRIMARY:]],
        "toolkits": sorted({tool.toolkit for tool in found}),
        "reasoning": how,
    }
    if not found:
        told["error"] = "No tool of this session has anything to do with it: its toolkit is not configured here."
    return told


def _lacking(results: Sequence[Json], tools: dict[str, Tool], ready: set[str]) -> list[str]:
    """Toolkits of the tools that fit best and cannot be used yet; nobody connects five services to use one."""
    best = [tools[one["primary_tool_slugs"][0]].toolkit for one in results if one["primary_tool_slugs"]]
    return [slug for slug in dict.fromkeys(best) if slug not in ready]


def _guidance(session: Session, results: list[Json], lacking: list[str], schemas: Json, asking: list[str]) -> list[str]:
    steps = []
    there = offered(session.spec.config)
    if lacking and MANAGE_CONNECTIONS in there:
        steps.append(
            f"To use the tools that fit best, first call {MANAGE_CONNECTIONS} with toolkits={lacking}: they have no "
            "active connection. Connect others only if you use them."
        )
    elif lacking:
        steps.append(f"The user has to connect {', '.join(lacking)} first; you cannot do it here.")
    if schemas:
        how = f"by {MULTI_EXECUTE_TOOL}" if MULTI_EXECUTE_TOOL in there else "by their names"
        steps.append(f"Run the tools that fit {how}, with arguments as their schemas have them.")
    if any(not one["hasFullSchema"] for one in schemas.values()):
        steps.append("Before you run a tool whose hasFullSchema is false, call what its schemaRef says.")
    if asking:
        steps.append(f"A person is asked before these run: {', '.join(asking)}. Put such calls together.")
    if any("error" in one for one in results):
        steps.append(
            "For some of this there is no tool here. Do not guess one: do it in the sandbox if it can be done there, "
            "or say that the toolkit is missing."
        )
    return steps


def _is_asked(session: Session, tool: Tool) -> bool:
    return policy_for(session.spec.config, tool, "") in {Policy.ASK_ONCE, Policy.ASK_ALWAYS}


def _workflow(word: str) -> Json:
    chosen = word or secrets.choice(_WORDS)
    return {
        "id": chosen,
        "generate_id": not word,
        "instructions": f"Pass session_id={chosen!r} to all further tools of this workflow.",
    }
