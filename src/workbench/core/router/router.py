"""Router: finds and runs tools for sessions, be they asked for by an SDK, by a model, or by code inside a sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.contracts.clock import Clock
from workbench.contracts.search import Meaning
from workbench.contracts.service_calls import ServiceCalls
from workbench.contracts.storage import AuditStore, ToolMemory
from workbench.contracts.tools import ToolSource
from workbench.core.call_limits import CallLimiter
from workbench.core.connection_requests import BegunConnection
from workbench.core.mounts import Mounts
from workbench.core.router import many, meta, offered, offloading
from workbench.core.router.accounts import Accounts, NoAccounts
from workbench.core.router.approving import Answers, Approvals, Considered, Verdict
from workbench.core.router.arguments import checked
from workbench.core.router.calling import Calling, Ready
from workbench.core.router.catalogue import Catalogue, unknown_words
from workbench.core.router.connecting import Connecting, ToolkitState
from workbench.core.router.proxying import Proxying, RawCall, RawResult
from workbench.core.router.searching import Finding, Query
from workbench.errors import Denied, InvalidRequest, NotFound, QuotaExceeded, SandboxOff, WorkbenchError
from workbench.model.approval import InputRequired
from workbench.model.ids import KeyId, ProjectId
from workbench.model.records import AuditEntry
from workbench.model.session import Session
from workbench.model.toolkit import Json, Tool, ToolCall, ToolResult

_MOST_QUOTED = 100
# A model that is shown more finds none of them.
_MOST_PRELOADED = 1000

Outcome = ToolResult | InputRequired
"""what an execution comes to, or what has to be answered first"""


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
    answers: Answers = field(default_factory=Answers)
    """to what was asked before it may be run"""
    unasked: bool = False
    """whoever configured the session lets it run where nobody can be asked"""
    address: str = ""
    """of the server, that links lead to; empty if there is none"""
    mark: str = ""
    """by which the caller tells this call from others of the same words; the same if it is sent again"""


class Router:
    """One for all projects. Owns nothing."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        limiter: CallLimiter,
        audit: AuditStore,
        memory: ToolMemory,
        clock: Clock,
        mounts_of: Callable[[ProjectId], Mounts],
        approvals_key: Callable[[], bytes],
        accounts: Accounts | None = None,
        services: ServiceCalls | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        accounts = accounts or NoAccounts()
        self._catalogue = catalogue
        self._limiter = limiter
        self._audit = audit
        self._clock = clock
        self._mounts_of = mounts_of
        self._approvals = Approvals(memory=memory, clock=clock, key=approvals_key)
        self._calling = Calling(catalogue=catalogue, accounts=accounts, memory=memory, clock=clock, mounts_of=mounts_of)
        self._finding = Finding(catalogue, clock, accounts, memory, meaning)
        self._connecting = Connecting(catalogue, accounts, clock)
        self._proxying = Proxying(
            catalogue=catalogue, accounts=accounts, services=services, clock=clock, mounts_of=mounts_of
        )
        self._meta: Mapping[str, Callable[[Execute], Awaitable[Outcome]]] = {
            offered.SEARCH_TOOLS: self._search_tools,
            offered.GET_TOOL_SCHEMAS: self._tool_schemas,
            offered.MULTI_EXECUTE_TOOL: self._multi_execute,
            offered.MANAGE_CONNECTIONS: self._manage,
            offered.WAIT_FOR_CONNECTIONS: self._wait,
            offered.SUBMIT_FEEDBACK: self._feedback,
            offered.PROXY_EXECUTE: self._proxy_tool,
        }

    async def execute(self, request: Execute, sandbox: ToolSource) -> Outcome:
        """Run it; what it came to. `sandbox` is who runs the tools of the sandbox, for whoever asks now.

        A tool that could not be run is a result as well, as agents read those. What is wrong with the request is not.

        Raises:
            InvalidRequest: a meta tool cannot use the arguments, the session does not offer it, or the answers are
                none to what was asked.
            SandboxOff: it needs the sandbox of a session that has none.
            Denied: it needs a key that is good for raw calls, or the session's code may run no tools, or answers come
                from code.
            QuotaExceeded: the session asks too often.
        """
        request = replace(request, slug=request.slug.strip().upper())
        _check_for_code(request)
        if request.slug in meta.META_SLUGS:
            return _logged(await self._run_meta(request, sandbox))
        told = _logged(await self._run_app(request))
        return told if isinstance(told, InputRequired) else await self._offloaded(request, told)

    async def _run_meta(self, request: Execute, sandbox: ToolSource) -> Outcome:
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
            # Code that runs more code asks nobody either.
            asks = None if request.for_code else await self.before_cell(session, request.answers)
            if asks is not None:
                return asks
            return await sandbox.run(ToolCall(slug=slug, arguments=request.arguments, session=session))
        return await self._meta[slug](replace(request, arguments=checked(meta.DESCRIBED[slug], request.arguments)))

    async def before_cell(self, session: Session, answers: Answers) -> InputRequired | None:
        """What is to be answered before the session's code is given more to do: calls of it wait for approval.

        Raises:
            InvalidRequest: the answers are none to this.
        """
        return await self._approvals.before_cell(session, answers)

    async def _run_app(self, request: Execute) -> Outcome:
        """A tool of a toolkit. Raises: QuotaExceeded, InvalidRequest for answers that are none."""
        call = ToolCall(
            slug=request.slug,
            arguments=request.arguments,
            session=request.session,
            account=request.account,
            idempotency_key=_sent_as(request, 0),
        )
        try:
            ready = await self._calling.ready(call, request.custom)
        except WorkbenchError as problem:
            return ToolResult(data={}, error=problem.message)
        verdict = await self._considered(request, [ready])
        if verdict.asks is not None:
            return verdict.asks if not request.for_code else await self._left_waiting(ready)
        if verdict.refused:
            return ToolResult(data={}, error=verdict.refused[0])
        return await self._carried_out(ready, self._counted(request.session))

    async def _considered(self, request: Execute, ready: Sequence[Ready]) -> Verdict:
        calls = [one.considered for one in ready]
        verdict = await self._approvals.consider(request.session, calls, request.answers)
        # BARRIER: only where the configuration says so; held by tests/composio/tools/apps/test_mcp.py.
        if verdict.asks is not None and request.unasked and request.session.spec.config.allow_unasked:
            return replace(verdict, asks=None)
        return verdict

    async def _left_waiting(self, ready: Ready) -> ToolResult:
        """Code in a box of the user's is told what code in ours is told."""
        try:
            await self._approvals.check_inside(ready.call.session, ready.considered)
        except Denied as problem:
            return ToolResult(data={}, error=problem.message)
        return await self._carried_out(ready, self._counted(ready.call.session))

    async def run_inside(self, call: ToolCall) -> ToolResult:
        """For code in the session's sandbox, whose calls were counted already.

        Raises:
            Denied: it is a meta tool, the session may not use it, or a person has to approve it first.
            NotConfigured: there is none of that name.
            InvalidRequest: its arguments are not what it takes.
        """
        slug = call.slug.strip().upper()
        if slug in meta.META_SLUGS:
            raise Denied(
                f"{slug} is a tool of the model's, and is not called from inside the sandbox: call tools of apps here, "
                "and leave meta tools to the model"
            )
        ready = await self._calling.ready(replace(call, slug=slug, idempotency_key=secrets.token_hex(16)))
        await self._approvals.check_inside(call.session, ready.considered)
        return _only(_logged(await self._calling.carry_out(ready)))

    async def check_usable(self, call: ToolCall) -> None:
        """For code in the session's sandbox that reaches what is behind a tool without the tool.

        Raises:
            Denied: the session may not use it, or a person has to approve it first.
            NotConfigured: there is none of that name.
        """
        spec = call.session.spec
        entry = await self._catalogue.of(spec.project).find(call.slug, spec.config)
        await self._approvals.check_inside(call.session, Considered(call, entry.tool))

    async def _carried_out(self, ready: Ready, counted: contextlib.AbstractContextManager[None]) -> ToolResult:
        """Raises: QuotaExceeded."""
        with counted:
            try:
                return await self._calling.carry_out(ready)
            except WorkbenchError as problem:
                return ToolResult(data={}, error=problem.message)

    def _counted(self, session: Session) -> contextlib.AbstractContextManager[None]:
        """As one call of the session's, whichever of its cells it may come from."""
        return self._limiter.one(session.spec.id, None)

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

    async def toolkit_names(self, session: Session) -> dict[str, str]:
        """What the toolkits of a session's project are called, by slug."""
        return {one.slug: one.name for one in await self._catalogue.of(session.spec.project).toolkits()}

    async def connect(
        self, session: Session, toolkit: str, *, callback_url: str = "", alias: str = ""
    ) -> BegunConnection:
        """A link by which the session's user connects an account.

        Raises:
            InvalidRequest: the toolkit needs none.
            NotFound: there is no such toolkit.
            NotConfigured: its accounts cannot be connected here.
            Denied: the session may not use it, or its user has as many accounts as it may.
        """
        return await self._connecting.begin(session, toolkit, callback_url=callback_url, alias=alias)

    async def tools(self, session: Session, sandbox: ToolSource) -> list[Tool]:
        """Those that are shown to the session's model: meta tools that it offers, then those that are preloaded."""
        config = session.spec.config
        described = {**meta.DESCRIBED, **{tool.slug: tool for tool in await sandbox.tools()}}
        return [*(described[slug] for slug in offered.offered(config)), *await self.preloaded(session)]

    async def preloaded(self, session: Session) -> list[Tool]:
        """Tools of apps that the session's model is shown from the start."""
        config = session.spec.config
        if not (config.preload_all or config.preload):
            return []
        usable = await self._catalogue.of(session.spec.project).usable(config)
        slugs = sorted(usable) if config.preload_all else [slug for slug in config.preload if slug in usable]
        return [usable[slug].tool for slug in slugs[:_MOST_PRELOADED]]

    async def describe(self, slug: str, sandbox: ToolSource, project: ProjectId) -> tuple[Tool, str]:
        """Any tool, and the name of its toolkit.

        Raises:
            NotFound: there is none.
        """
        slug = slug.strip().upper()
        known = {**meta.DESCRIBED, **{tool.slug: tool for tool in await sandbox.tools()}}
        if slug in known:
            return known[slug], meta.META.name
        entries = await self._catalogue.of(project).entries()
        if slug not in entries:
            words = unknown_words(slug, [*known, *entries])
            raise NotFound(words, {"tool": slug[:_MOST_QUOTED]})
        return entries[slug].tool, entries[slug].toolkit.name

    async def proxy(self, session: Session, call: RawCall, answers: Answers) -> RawResult | InputRequired:
        """A raw call to the service of a toolkit, as the session's user.

        Raises:
            InvalidRequest: the session is configured to make none, or it is no call that can be made.
            NotFound: there is no such toolkit.
            NotConfigured: it is none that is called by HTTP.
            Denied: the user has no account of it, it would go elsewhere, or somebody has to approve it first.
        """
        ready = await self._proxying.ready(session, call)
        verdict = await self._approvals.consider(session, [ready.considered], answers)
        if verdict.asks is not None:
            return verdict.asks
        if verdict.refused:
            raise Denied(verdict.refused[0], {"toolkit": call.toolkit[:_MOST_QUOTED]})
        with self._counted(session):
            return await self._proxying.carry_out(session, ready)

    async def proxy_inside(self, session: Session, call: RawCall, *, is_counted: bool = True) -> RawResult:
        """The same for code of the session's: in its sandbox, whose calls were counted already, or in a box of the
        user's. Raises: as `proxy`, and Denied where a person has to approve it first.
        """
        ready = await self._proxying.ready(session, call)
        await self._approvals.check_inside(session, ready.considered)
        with contextlib.nullcontext() if is_counted else self._counted(session):
            return await self._proxying.carry_out(session, ready)

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

    async def _multi_execute(self, request: Execute) -> Outcome:
        given, session = request.arguments, request.session
        calls = [
            replace(call, idempotency_key=_sent_as(request, number))
            for number, call in enumerate(many.calls_of(given["tools"], session))
        ]
        ready = [await self._ready_or_why_not(call, request.custom) for call in calls]
        able = [number for number, one in enumerate(ready) if isinstance(one, Ready)]
        verdict = await self._considered(request, [one for one in ready if isinstance(one, Ready)])
        if verdict.asks is not None:
            if not request.for_code:
                return verdict.asks
            raise Denied(
                "some of these calls need a person's approval, and code cannot ask one: make them one by one, which "
                "writes them down, and leave it to the model to have them approved"
            )
        for number, words in verdict.refused.items():
            ready[able[number]] = words

        async def run(number: int) -> ToolResult:
            one = ready[number]
            if isinstance(one, str):
                return _only(_logged(ToolResult(data={}, error=one)))
            try:
                return _only(_logged(await self._carried_out(one, self._counted(session))))
            except QuotaExceeded as problem:
                return _only(_logged(ToolResult(data={}, error=problem.message)))

        ended = await many.run_many(calls, run)
        mounts = self._mounts_of(session.spec.project)
        to_file = given["sync_response_to_workbench"]
        told = await many.told(ended, session, mounts, self._clock, to_file=to_file)
        return replace(told, data={**told.data, **meta.workflow(given.get("session_id"))})

    async def _ready_or_why_not(self, call: ToolCall, custom: tuple[Tool, ...]) -> Ready | str:
        if call.slug in meta.META_SLUGS:
            return many.no_meta(call.slug)
        try:
            return await self._calling.ready(call, custom)
        except WorkbenchError as problem:
            return problem.message

    async def _manage(self, request: Execute) -> ToolResult:
        given = request.arguments
        data = await self._connecting.manage(
            request.session,
            given["toolkits"],
            request.address,
            anew=bool(given.get("reinitiate_all")),
            for_code=request.for_code,
        )
        return ToolResult(data={**data, **meta.workflow(request.arguments.get("session_id"))})

    async def _wait(self, request: Execute) -> ToolResult:
        given = request.arguments
        data = await self._connecting.wait(request.session, given["toolkits"], for_all=given.get("mode") == "all")
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

    async def _proxy_tool(self, request: Execute) -> Outcome:
        # BARRIER: a key that is not good for raw calls would make them by this name; held by
        # tests/unit/core/router/test_router.py.
        if not request.may_proxy:
            raise Denied("this needs a key with the scope `proxy`", {"scope": "proxy"})
        given = request.arguments
        call = RawCall(
            toolkit=given["toolkit"],
            endpoint=given["endpoint"],
            method=given["method"],
            body=given.get("body"),
            query=tuple((str(name), str(one)) for name, one in (given.get("query_params") or {}).items()),
            headers=tuple((str(name), str(one)) for name, one in (given.get("headers") or {}).items()),
            account=request.account,
        )
        try:
            if request.for_code:
                made: RawResult | InputRequired = await self.proxy_inside(request.session, call, is_counted=False)
            else:
                made = await self.proxy(request.session, call, request.answers)
        except InvalidRequest:
            raise
        except WorkbenchError as problem:
            return ToolResult(data={}, error=problem.message)
        if isinstance(made, InputRequired):
            return made
        return ToolResult(data=made.told(), error=made.problem, http_status=made.status)


def _check_for_code(request: Execute) -> None:
    """BARRIER: code in a box of the user's would have the tools that were taken away from the session's code, or
    approve its own calls; held by tests/unit/core/router/test_router.py.
    """
    spec = request.session.spec
    if request.for_code and request.slug not in meta.SANDBOX_TOOLS and not spec.config.sandbox.tool_execution:
        raise Denied(f"tool execution is switched off for session {spec.id}, so its token runs no tools; use a key")
    if request.for_code and request.answers.are_there:
        raise Denied("a token of a session approves nothing: answer with a key of the project")


def _sent_as(request: Execute, number: int) -> str:
    """The same for the same call sent again with the mark that tells it apart; another one for every other call."""
    if not request.mark:
        return secrets.token_hex(16)
    spec = request.session.spec
    text = "\n".join((spec.project, spec.id, request.session.created_at, request.mark, str(number)))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _logged(outcome: Outcome) -> Outcome:
    if isinstance(outcome, InputRequired) or outcome.log_id:
        return outcome
    return replace(outcome, log_id=f"log_{secrets.token_hex(8)}")


def _only(outcome: Outcome) -> ToolResult:
    assert isinstance(outcome, ToolResult), "nothing is asked once a call is made"
    return outcome
