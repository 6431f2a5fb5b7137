"""COMPOSIO_SEARCH_TOOLS and the others that lead to tools of apps, and those tools themselves where they are preloaded.

What they take is in their JSON schemas; the router checks it, runs them, and says what came of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace

import mcp_types as types

from workbench.core.router import meta, offered
from workbench.core.router.router import Execute, Outcome
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, WorkbenchError
from workbench.mcp.answers import Answer, Next
from workbench.mcp.choosing import Chosen, choose, with_session
from workbench.mcp.families import Family
from workbench.mcp.tools.shapes import STRING, YES_OR_NO, told
from workbench.mcp.visit import Tooling, Visit
from workbench.mcp.wording import for_agents
from workbench.model.approval import InputRequired
from workbench.model.configuration import SessionConfig
from workbench.model.session import Session
from workbench.model.toolkit import Json, Tool, ToolCall, Toolkit, ToolResult

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_UNUSED = ("model", "search_strategy", "memory")
_EXAMPLE: Json = {"queries": [{"use_case": "what is to be done, in a sentence"}]}
# What an answer looks like is said once for all of them: the rest is in its own words.
_OUTPUT: Json = {
    "type": "object",
    "properties": {
        "data": {"type": "object"},
        "error": told({"type": ["string", "null"]}, "What went wrong; null after a success."),
        "successful": YES_OR_NO,
        "log_id": STRING,
    },
    "required": ["data", "successful"],
}
_NOBODY_TO_ASK = (
    "a person has to approve this first, and this client cannot ask one: it has no elicitation. Ask the user to use a "
    "client that has it, or the SDK; whoever configures the session can set `no_elicitation_support_fallback`"
)


class _NoSandbox:
    """The sandbox's tools have a family of their own here."""

    async def toolkits(self) -> tuple[Toolkit, ...]:
        return (meta.META,)

    async def tools(self) -> tuple[Tool, ...]:
        return ()

    async def run(self, call: ToolCall) -> ToolResult:
        raise InvalidRequest(f"{call.slug} is not run here")


@dataclass(frozen=True, slots=True)
class RouterTool:
    """One, as `mcp.tool.Tool` is, with what the router says of it."""

    described: Tool

    @property
    def name(self) -> str:
        """By which it is called."""
        return self.described.slug

    @property
    def family(self) -> Family:
        """All of them are of one."""
        return Family.ROUTER

    def listed(self) -> types.Tool:
        """As clients see it."""
        tags = self.described.tags
        read, destroys, again, world = (hint in tags for hint in _HINTS)
        return types.Tool(
            name=self.name,
            title=self.described.name,
            description=self.described.description,
            input_schema=_shown(self.described) if self.name in meta.META_SLUGS else self.described.input_schema,
            output_schema=_OUTPUT,
            annotations=types.ToolAnnotations(
                read_only_hint=read, destructive_hint=destroys, idempotent_hint=again, open_world_hint=world
            ),
        )

    async def answer(self, visit: Visit, given: Json) -> Answer:
        """What it says to these arguments. Raises: AskFirst, where the client asks and calls again."""
        try:
            return await self._performed(visit, given)
        except WorkbenchError as problem:
            return await self.refused(visit, given, problem)

    async def _performed(self, visit: Visit, given: Json) -> Answer:
        tooling = visit.tooling
        if tooling is None:
            raise Denied("no tools of apps are served here")
        chosen = choose(visit, self._session_named(given))
        outcome, _ = await with_session(visit, chosen, lambda: self._run(visit, tooling, chosen, given))
        return self._told(outcome)

    def _session_named(self, given: Json) -> str:
        """Where several sessions can be reached, the word of a workflow is the name of its session."""
        if self.name not in meta.META_SLUGS:
            return ""
        told = given.get("session")
        begun = told if isinstance(told, dict) and not told.get("generate_id") else {}
        named = begun.get("id") if self.name == offered.SEARCH_TOOLS else given.get("session_id")
        return named if isinstance(named, str) else ""

    async def _run(self, visit: Visit, tooling: Tooling, chosen: Chosen, given: Json) -> ToolResult:
        session = await visit.bench.configurations.get(chosen.id)
        if self.name == offered.SEARCH_TOOLS and visit.own_session is None:
            given = {**given, "session": {"id": chosen.told}}
        ask = Execute(
            session=session,
            slug=self.name,
            arguments=given,
            offload=True,
            key=tooling.key,
            may_proxy=tooling.may_proxy,
            for_code=tooling.for_code,
            answers=visit.answers,
            address=visit.address,
        )
        outcome = await self._executed(visit, tooling, ask)
        if isinstance(outcome, InputRequired):
            outcome = await self._approved(visit, tooling, ask, outcome)
        await visit.around.note("tool.execute", chosen.id, self.name)
        return outcome

    async def _approved(self, visit: Visit, tooling: Tooling, ask: Execute, asked: InputRequired) -> ToolResult:
        answers = None if visit.ask is None else await visit.ask(asked)
        if answers is not None:
            ask = replace(ask, answers=answers)
        elif ask.session.spec.config.allow_unasked:
            ask = replace(ask, unasked=True)
        else:
            raise Denied(_NOBODY_TO_ASK, {"tool": self.name})
        outcome = await self._executed(visit, tooling, ask)
        if isinstance(outcome, InputRequired):
            raise Conflict("what has to be approved has changed meanwhile; call it again", {"tool": self.name})
        return outcome

    async def _executed(self, visit: Visit, tooling: Tooling, ask: Execute) -> Outcome:
        # A call that was sent to a service is not taken back because its client has left.
        task = visit.around.keep(tooling.router.execute(ask, _NoSandbox()), "tool")
        outcome: Outcome = await asyncio.shield(task)
        return outcome

    def _told(self, result: ToolResult) -> Answer:
        structured = {
            "data": result.data,
            "error": result.error or None,
            "successful": not result.error,
            "log_id": result.log_id,
        }
        return Answer(structured=structured, next=self._next(result) if result.error else None)

    def _next(self, result: ToolResult) -> Next:
        if self.name == offered.MULTI_EXECUTE_TOOL:
            failed = [one["tool_slug"] for one in result.data.get("results", ()) if one.get("error")]
            if failed:
                return _schemas(failed)
        return _search() if self.name in meta.META_SLUGS else _schemas([self.name])

    async def refused(self, visit: Visit, given: Json, problem: WorkbenchError) -> Answer:  # noqa: ARG002
        """The answer to what cannot be done, in the same shape."""
        structured = {"data": {}, "error": f"not run: {for_agents(problem)}", "successful": False, "log_id": ""}
        step = _search()
        if isinstance(problem, InvalidRequest) and self.name not in meta.META_SLUGS:
            step = _schemas([self.name])
        return Answer(structured=structured, next=step, never_began=not isinstance(problem, NotFound))


def _shown(tool: Tool) -> Json:
    """Without what is taken and not used: every word of it is paid for with every request."""
    properties = {name: one for name, one in tool.input_schema["properties"].items() if name not in _UNUSED}
    return {**tool.input_schema, "properties": properties}


def _search() -> Next:
    return Next(tool=offered.SEARCH_TOOLS, arguments=_EXAMPLE)


def _schemas(slugs: list[str]) -> Next:
    return Next(tool=offered.GET_TOOL_SCHEMAS, arguments={"tool_slugs": list(dict.fromkeys(slugs))[:50]})


ROUTER_TOOLS: tuple[RouterTool, ...] = tuple(RouterTool(one) for one in meta.DESCRIBED.values())
"""all that lead to others; which of them a session offers is its configuration"""


async def shown_by_router(visit: Visit) -> list[RouterTool]:
    """Those that the caller's session offers, and those that are preloaded there."""
    if visit.tooling is None or Family.ROUTER not in visit.families:
        return []
    session = await _session(visit)
    there = offered.offered(SessionConfig() if session is None else session.spec.config)
    found = [RouterTool(meta.DESCRIBED[slug]) for slug in there if slug in meta.DESCRIBED]
    if session is None:
        return found
    return [*found, *(RouterTool(one) for one in await visit.tooling.router.preloaded(session))]


async def _session(visit: Visit) -> Session | None:
    try:
        return await visit.bench.configurations.get(visit.session)
    except (NotFound, Conflict):
        # It is made with the first call, or is on its way out; the tool that is called says so.
        return None


async def approve_waiting(visit: Visit, family: Family) -> None:
    """Before code is given more to do: whether calls of it that wait may be made. Where nobody can be asked, they wait
    on, and the code is run.

    Raises:
        AskFirst: the client asks, and calls again.
    """
    tooling = visit.tooling
    if tooling is None or tooling.for_code or family is not Family.WORKBENCH or visit.ask is None:
        return
    session = await _session(visit)
    if session is None:
        return
    with contextlib.suppress(WorkbenchError):
        asked = await tooling.router.before_cell(session, visit.answers)
        if asked is not None and (answers := await visit.ask(asked)) is not None:
            await tooling.router.before_cell(session, answers)
