"""Router: finds and runs tools for sessions, be they asked for by an SDK, by a model, or by code inside a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from workbench.contracts.clock import Clock
from workbench.contracts.storage import AuditStore
from workbench.contracts.tools import ToolSource
from workbench.core.call_limits import CallLimiter
from workbench.core.mounts import Mounts
from workbench.core.router import many, meta, offered, offloading
from workbench.core.router.arguments import checked
from workbench.core.router.catalogue import Catalogue, unknown_words
from workbench.core.router.connecting import Connecting, ToolkitState
from workbench.core.router.searching import Finding, Query
from workbench.errors import Denied, InvalidRequest, NotConfigured, NotFound, QuotaExceeded, SandboxOff, WorkbenchError
from workbench.model.ids import KeyId, ProjectId
from workbench.model.records import AuditEntry
from workbench.model.session import Session
from workbench.model.toolkit import LOCAL_PREFIX, Json, Tool, ToolCall, ToolResult

# Of one tool: as long as code inside waits for it.
_MOST_S = 280.0
_MOST_QUOTED = 100
_BY_CLIENT = (
    "{slug} is a tool of the client's own, and is run there: the SDK that defined it calls its function by itself; "
    "this server has only its description"
)
_NO_PROXY = (
    "no toolkit is configured on this workbench, so the service {toolkit} cannot be reached: there is no connection "
    "that a call could be made with"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """A tool to be run for a session."""

    session: Session
    slug: str
    arguments: Json = field(default_factory=dict, repr=False)
    account: str = ""
    custom: tuple[Tool, ...] = ()
    """the client's own, that came with the request"""
    offload: bool = False
    """a large answer may go to a file in the sandbox"""
    key: KeyId | None = None
    """with which it was asked for"""
    may_proxy: bool = False
    """that key is good for raw calls to services"""
    for_code: bool = False
    """it came with a token of the session, which code in a box of the user's has"""


class Router:
    """One for all projects. Owns nothing."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        limiter: CallLimiter,
        audit: AuditStore,
        clock: Clock,
        mounts_of: Callable[[ProjectId], Mounts],
    ) -> None:
        self._catalogue = catalogue
        self._limiter = limiter
        self._audit = audit
        self._clock = clock
        self._mounts_of = mounts_of
        self._finding = Finding(catalogue, clock)
        self._connecting = Connecting(catalogue)
        self._meta: Mapping[str, Callable[[Execute], Awaitable[ToolResult]]] = {
            offered.SEARCH_TOOLS: self._search_tools,
            offered.GET_TOOL_SCHEMAS: self._tool_schemas,
            offered.MULTI_EXECUTE_TOOL: self._multi_execute,
            offered.MANAGE_CONNECTIONS: self._manage,
            offered.WAIT_FOR_CONNECTIONS: self._wait,
            offered.SUBMIT_FEEDBACK: self._feedback,
            offered.PROXY_EXECUTE: self._proxy_tool,
        }

    async def execute(self, request: Execute, sandbox: ToolSource) -> ToolResult:
        """Run it; what it came to. `sandbox` is who runs the tools of the sandbox, for whoever asks now.

        A tool that could not be run is a result as well, as agents read those. What is wrong with the request is not.

        Raises:
            InvalidRequest: a meta tool cannot use the arguments, or the session does not offer it.
            SandboxOff: it needs the sandbox of a session that has none.
            Denied: it needs a key that is good for raw calls, or the session's code may run no tools.
            QuotaExceeded: the session asks too often.
        """
        request = replace(request, slug=request.slug.strip().upper())
        _check_for_code(request)
        if request.slug in meta.META_SLUGS:
            return _logged(await self._run_meta(request, sandbox))
        return await self._offloaded(request, await self._run_app(request))

    async def _run_meta(self, request: Execute, sandbox: ToolSource) -> ToolResult:
        slug, session = request.slug, request.session
        if slug in meta.SANDBOX_TOOLS and not session.spec.config.sandbox.enable:
            raise SandboxOff(
                f"{slug} needs a sandbox, and session {session.spec.id} is configured to have none; set "
                "`sandbox.enable` by an update of the session, or run the code in a local sandbox",
                {"session": session.spec.id},
            )
        if slug not in offered.offered(session.spec.config):
            raise InvalidRequest(
                f"{slug} is not offered in session {session.spec.id}: {meta.why_off(slug)} in its configuration; "
                f"it offers {', '.join(offered.offered(session.spec.config)) or 'none'}",
                {"tool": slug},
            )
        if slug in meta.SANDBOX_TOOLS:
            return await sandbox.run(ToolCall(slug=slug, arguments=request.arguments, session=session))
        return await self._meta[slug](replace(request, arguments=checked(meta.DESCRIBED[slug], request.arguments)))

    async def _run_app(self, request: Execute) -> ToolResult:
        """A tool of a toolkit. Raises: QuotaExceeded."""
        call = ToolCall(
            slug=request.slug, arguments=request.arguments, session=request.session, account=request.account
        )
        try:
            # As one call of the session's, whichever of its cells it may come from.
            counted = self._limiter.one(request.session.spec.id, None)
            return _logged(await self._carried_out(call, request.custom, counted))
        except QuotaExceeded:
            raise
        except WorkbenchError as problem:
            return _logged(ToolResult(data={}, error=problem.message))

    async def run_inside(self, call: ToolCall) -> ToolResult:
        """For code in the session's sandbox, whose calls were counted already.

        Raises:
            Denied: it is a meta tool, or the session may not use it.
            NotConfigured: there is none of that name.
        """
        slug = call.slug.strip().upper()
        if slug in meta.META_SLUGS:
            raise Denied(
                f"{slug} is a tool of the model's, and is not called from inside the sandbox: call tools of apps here, "
                "and leave meta tools to the model"
            )
        return _logged(await self._carried_out(replace(call, slug=slug), (), contextlib.nullcontext()))

    async def check_usable(self, slug: str, session: Session) -> None:
        """For who reaches what is behind a tool without the tool.

        Raises:
            Denied: the session may not use it.
            NotConfigured: there is none of that name.
        """
        await self._catalogue.find(slug, session.spec.config)

    async def _carried_out(
        self, call: ToolCall, custom: tuple[Tool, ...], counted: contextlib.AbstractContextManager[None]
    ) -> ToolResult:
        if call.slug.startswith(LOCAL_PREFIX) or any(tool.slug == call.slug for tool in custom):
            raise InvalidRequest(_BY_CLIENT.format(slug=call.slug[:_MOST_QUOTED]))
        entry = await self._catalogue.find(call.slug, call.session.spec.config)
        with counted:
            try:
                async with asyncio.timeout(_MOST_S) as deadline:
                    return await entry.source.run(call)
            except TimeoutError:
                if not deadline.expired():
                    raise  # a timeout inside a source is its defect, and no word on how long we waited
                words = f"{call.slug} took more than {_MOST_S:.0f} s and was given up; it may have been carried out"
                return ToolResult(data={}, error=words)

    async def _offloaded(self, request: Execute, result: ToolResult) -> ToolResult:
        config = request.session.spec.config
        if not request.offload or not config.sandbox.enable:
            return result
        if offloading.size_of(result.data) <= config.offload_characters:
            return result
        mounts = self._mounts_of(request.session.spec.project)
        what = "".join(letter if letter.isalnum() else "_" for letter in request.slug.lower())[:80]
        try:
            file = await offloading.write(mounts, request.session, self._clock, what, result.data)
        except WorkbenchError:
            # Better whole than not at all.
            return result
        return replace(result, data={**offloading.preview(result.data, file), "remote_file_info": file})

    def is_news(self, session: Session) -> bool:
        """Whether a refusal for asking too often has to be written down: not each of many."""
        return self._limiter.is_news(session.spec.id)

    async def search(
        self,
        session: Session,
        queries: Sequence[Query],
        custom: tuple[Tool, ...] = (),
        *,
        workflow: str = "",
        toolkits: Sequence[str] = (),
    ) -> Json:
        """Which tools fit; as COMPOSIO_SEARCH_TOOLS tells it."""
        return await self._finding.search(session, queries, custom, workflow=workflow, toolkits=toolkits)

    async def toolkits(self, session: Session) -> list[ToolkitState]:
        """All there are, as a session sees them."""
        return await self._connecting.states(session)

    async def refuse_connection(self, session: Session, toolkit: str) -> NoReturn:
        """A connection with a toolkit: there is none yet that could be made.

        Raises:
            InvalidRequest: the toolkit needs none.
            NotConfigured: there is no such toolkit, or its accounts cannot be connected here.
        """
        await self._connecting.refuse(session, toolkit)

    async def tools(self, session: Session, sandbox: ToolSource) -> list[Tool]:
        """Those that are shown to the session's model: meta tools that it offers, then those that are preloaded."""
        config = session.spec.config
        described = {**meta.DESCRIBED, **{tool.slug: tool for tool in await sandbox.tools()}}
        usable = await self._catalogue.usable(config)
        preloaded = sorted(usable) if config.preload_all else [slug for slug in config.preload if slug in usable]
        return [*(described[slug] for slug in offered.offered(config)), *(usable[slug].tool for slug in preloaded)]

    async def describe(self, slug: str, sandbox: ToolSource) -> tuple[Tool, str]:
        """Any tool, and the name of its toolkit.

        Raises:
            NotFound: there is none.
        """
        slug = slug.strip().upper()
        known = {**meta.DESCRIBED, **{tool.slug: tool for tool in await sandbox.tools()}}
        if slug in known:
            return known[slug], meta.META.name
        entries = await self._catalogue.entries()
        if slug not in entries:
            words = unknown_words(slug, [*known, *entries])
            raise NotFound(words, {"tool": slug[:_MOST_QUOTED]})
        return entries[slug].tool, entries[slug].toolkit.name

    def refuse_proxy(self, session: Session, toolkit: str) -> NoReturn:
        """A raw call to a service: there is none yet that could be called.

        Raises:
            InvalidRequest: the session is configured to make none.
            NotConfigured: there is no connection that it could be made with.
        """
        if not session.spec.config.proxies:
            raise InvalidRequest(
                f"raw calls to services are switched off in session {session.spec.id}; set `proxy_execute.enable` and "
                "`sandbox.enable_proxy_execution` by an update of the session",
                {"session": session.spec.id, "toolkit": toolkit[:_MOST_QUOTED]},
            )
        raise NotConfigured(_NO_PROXY.format(toolkit=repr(toolkit[:_MOST_QUOTED])), {"toolkit": toolkit[:_MOST_QUOTED]})

    async def _search_tools(self, request: Execute) -> ToolResult:
        given = request.arguments
        queries = [
            Query(use_case=one["use_case"], known_fields=one.get("known_fields") or "") for one in given["queries"]
        ]
        named = given.get("session") or {}
        word = "" if named.get("generate_id") else named.get("id") or ""
        return ToolResult(data=await self.search(request.session, queries, request.custom, workflow=word))

    async def _tool_schemas(self, request: Execute) -> ToolResult:
        include = request.arguments.get("include") or ["input_schema"]
        slugs = request.arguments["tool_slugs"]
        data = await self._finding.schemas(request.session, slugs, include, request.custom)
        return ToolResult(data=data)

    async def _multi_execute(self, request: Execute) -> ToolResult:
        given, session = request.arguments, request.session

        async def run(call: ToolCall) -> ToolResult:
            try:
                return await self._run_app(
                    replace(request, slug=call.slug, arguments=call.arguments, account=call.account)
                )
            except QuotaExceeded as problem:
                return _logged(ToolResult(data={}, error=problem.message))

        ended = await many.run_many(many.calls_of(given["tools"], session), run)
        mounts = self._mounts_of(session.spec.project)
        to_file = given["sync_response_to_workbench"]
        told = await many.told(ended, session, mounts, self._clock, to_file=to_file)
        return replace(told, data={**told.data, **meta.workflow(given.get("session_id"))})

    async def _manage(self, request: Execute) -> ToolResult:
        data = await self._connecting.manage(request.session, request.arguments["toolkits"])
        return ToolResult(data={**data, **meta.workflow(request.arguments.get("session_id"))})

    async def _wait(self, request: Execute) -> ToolResult:
        data = await self._connecting.wait(request.session, request.arguments["toolkits"])
        return ToolResult(data={**data, **meta.workflow(request.arguments.get("session_id"))})

    async def _feedback(self, request: Execute) -> ToolResult:
        spec = request.session.spec
        about = request.arguments.get("tool_slug") or "no tool"
        entry = AuditEntry(
            at=self._clock.now_iso(),
            project=spec.project,
            key=request.key,
            session=spec.id,
            user=spec.user,
            action="tool.feedback",
            outcome="ok",
            detail=f"{about}: {request.arguments['feedback']}",
        )
        # BARRIER: who says it again and again would fill the audit; held by tests/unit/core/router/test_router.py.
        with self._limiter.one(spec.id, None):
            await self._audit.add(entry)
        words = "It is written in the audit of the project, where who runs this workbench reads it."
        return ToolResult(data={"message": words})

    async def _proxy_tool(self, request: Execute) -> ToolResult:
        # BARRIER: a key that is not good for raw calls would make them by this name; held by
        # tests/unit/core/router/test_router.py.
        if not request.may_proxy:
            raise Denied("this needs a key with the scope `proxy`", {"scope": "proxy"})
        try:
            self.refuse_proxy(request.session, request.arguments["toolkit"])
        except NotConfigured as problem:
            return ToolResult(data={}, error=problem.message)


def _check_for_code(request: Execute) -> None:
    """BARRIER: code in a box of the user's would have the tools that were taken away from the session's code; held by
    tests/unit/core/router/test_router.py.
    """
    spec = request.session.spec
    if request.for_code and request.slug not in meta.SANDBOX_TOOLS and not spec.config.sandbox.tool_execution:
        raise Denied(f"tool execution is switched off for session {spec.id}, so its token runs no tools; use a key")


def _logged(result: ToolResult) -> ToolResult:
    return result if result.log_id else replace(result, log_id=f"log_{secrets.token_hex(8)}")
