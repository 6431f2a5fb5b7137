"""McpSource: the tools of one MCP server, be it a program that is run here or a server that is asked by HTTP.

It is started or reached when it is first needed, stays, and is started again after it ended, as often as is reasonable.
Whatever it says is somebody else's: names and schemas are checked, answers are bounded in time and size.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace

import httpx2
import mcp_types
import pydantic
from mcp.client.streamable_http import streamable_http_client

from mcp import Client, MCPError
from workbench import __version__
from workbench.egress.guard import GuardedBackend
from workbench.egress.targets import shown, target_of
from workbench.errors import (
    InvalidRequest,
    NotFound,
    UpstreamBadAnswer,
    UpstreamUnavailable,
    WorkbenchError,
)
from workbench.model.connection import Secret
from workbench.model.toolkit import ReturnedFile, Tool, ToolCall, Toolkit, ToolResult
from workbench.toolkits.children import Child, Program
from workbench.toolkits.mcp_stdio import transport_of
from workbench.toolkits.mcp_tools import MOST_TOOLS, Listed, breaks, listed, result_of
from workbench.toolkits.one_server import OneServer, check_private, client_for
from workbench.toolkits.scrubbing import Scrubber

MOST_ANSWER_BYTES = 50 * 2**20
_MOST_STARTS, _WITHIN_S = 5, 60.0
_START_S = 60.0
_MOST_PAGES = 50
# Of what it tells about its tools.
_MOST_TOLD_BYTES = 16 * 2**20
_MOST_WORDS = 500
# What is under way when its server is closed is not waited for.
_CLOSE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAddress:
    """A server that is asked by HTTP."""

    url: str
    headers: Mapping[str, Secret] = field(default_factory=dict)
    """in each request, and to nobody else"""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions:
    """How long is waited."""

    start_s: float = _START_S
    """until it has told its tools"""
    call_s: float = 120.0
    most_bytes: int = MOST_ANSWER_BYTES


class McpSource:
    """A ToolSource. `aclose` it."""

    def __init__(
        self,
        toolkit: Toolkit,
        place: Program | McpAddress,
        *,
        backend: GuardedBackend,
        secrets: tuple[Secret, ...] = (),
        options: McpOptions | None = None,
    ) -> None:
        self._toolkit = toolkit
        self._place = place
        self._backend = backend
        self._options = options or McpOptions()
        self._scrubber = Scrubber(None, secrets)
        self._life: _Life | None = None
        self._lock = asyncio.Lock()
        self._starts: collections.deque[float] = collections.deque(maxlen=_MOST_STARTS)
        self._listed: Listed | None = None
        self._is_closed = False
        self._ending: set[asyncio.Task[None]] = set()

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As the contract has it."""
        return (self._toolkit,)

    async def tools(self) -> tuple[Tool, ...]:
        """As the contract has it; the server is started or reached for it if it was not before.

        Raises:
            UpstreamUnavailable: it cannot be started or reached, or does not speak MCP.
        """
        return (await self._told()).tools

    async def refused(self) -> dict[str, str]:
        """Tools of the server that are not used, with the reason."""
        return (await self._told()).refused

    async def run(self, call: ToolCall) -> ToolResult:
        """As the contract has it."""
        told = await self._told()
        name = told.names.get(call.slug)
        if name is None:
            raise NotFound(
                f"{call.slug} is no tool of {self._toolkit.slug}; `workbench toolkits show {self._toolkit.slug}` "
                "lists those it has",
                {"tool": call.slug[:100]},
            )
        life = await self._alive()
        try:
            async with asyncio.timeout(self._options.call_s):
                with life.used():
                    answer = await life.client.call_tool(name, dict(call.arguments))
                if call.slug in told.promises and (wrong := breaks(told.promises[call.slug], answer)):
                    raise RuntimeError(wrong)
                return self._scrubbed(result_of(call.slug, answer, self._options.most_bytes))
        except TimeoutError:
            words = (
                f"{call.slug} took more than {self._options.call_s:g} s and was given up; it may have been carried out"
            )
            return ToolResult(data={}, error=words)
        except MCPError as problem:
            return self._failed(call.slug, life, problem)
        except (RuntimeError, pydantic.ValidationError) as problem:
            words = f"{call.slug} was carried out, and its answer is not what the server promises: {_plain(problem)}"
            return ToolResult(data={}, error=self._scrubber.text(words[: 2 * _MOST_WORDS]))
        except UpstreamBadAnswer as problem:
            words = f"{call.slug} was carried out, and its answer cannot be used: {problem.message}"
            return ToolResult(data={}, error=self._scrubber.text(words))

    async def aclose(self) -> None:
        """End the server, if it is a program, and everything of it. May be called twice."""
        self._is_closed = True
        life, self._life = self._life, None
        for ending in self._ending:
            ending.cancel()
        if self._ending:
            await asyncio.wait(self._ending)
        if life is not None:
            await life.aclose()

    def _scrubbed(self, result: ToolResult) -> ToolResult:
        return replace(
            result,
            data=self._scrubber.value(result.data),
            error=self._scrubber.text(result.error),
            file=None if result.file is None else self._scrubbed_file(result.file),
            more_files=tuple(map(self._scrubbed_file, result.more_files)),
        )

    def _scrubbed_file(self, file: ReturnedFile) -> ReturnedFile:
        return replace(file, content=self._scrubber.raw(file.content))

    def _failed(self, slug: str, life: _Life, problem: MCPError) -> ToolResult:
        """Raises: InvalidRequest, and what kept the request from leaving."""
        words = self._scrubber.text(problem.message[:_MOST_WORDS])
        if problem.code == mcp_types.INVALID_PARAMS:
            raise InvalidRequest(f"{slug} cannot use these arguments: {words}", {"tool": slug})
        # By HTTP nobody knows whether the next request would find the session that this one had.
        life.is_spoiled = life.server is not None
        refusal = life.take_refusal()
        if isinstance(refusal, UpstreamBadAnswer):
            words = f"{slug} was carried out, and its answer cannot be used: {refusal.message}"
        elif refusal is not None:
            # It never came to a connection.
            raise refusal
        elif problem.code == mcp_types.CONNECTION_CLOSED or life.is_over:
            said = self._scrubber.text(life.last_words)
            words = f"the server of {slug} ended during the call; it may have been carried out{_said(said)}"
        return ToolResult(data={}, error=words or f"{slug} failed, and its server did not say why")

    async def _told(self) -> Listed:
        if self._listed is None or (self._life is not None and self._life.tools_changed):
            await self._alive()
        assert self._listed is not None
        return self._listed

    async def _alive(self) -> _Life:
        """The connection there is, or a new one, which has told its tools."""
        async with self._lock:
            life = self._life
            if life is not None and not life.is_over and (not life.tools_changed or await self._listed_anew(life)):
                return life
            if life is not None:
                self._life = None
                if life.is_spoiled:
                    self._let_end(life)
                else:
                    await life.aclose()
            if self._is_closed:
                raise UpstreamUnavailable(f"the toolkit {self._toolkit.slug} was removed")
            self._check_pace(life)
            self._life = await self._begun()
            return self._life

    def _let_end(self, life: _Life) -> None:
        """Without taking it from those who still wait for an answer of it."""
        ending = asyncio.create_task(life.end_unused(self._options.call_s), name="the end of a connection")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _listed_anew(self, life: _Life) -> bool:
        """Whether its tools could be listed; if not, its end is near."""
        try:
            async with asyncio.timeout(self._options.start_s):
                await self._list(life)
        except (MCPError, TimeoutError, pydantic.ValidationError):
            return False
        return True

    def _check_pace(self, last: _Life | None) -> None:
        now = asyncio.get_running_loop().time()
        # BARRIER: a program that ends at once would be started in a circle; held by tests/toolkits/test_mcp_stdio.py.
        if len(self._starts) == _MOST_STARTS and now - self._starts[0] < _WITHIN_S:
            wait_s = _WITHIN_S - (now - self._starts[0])
            said = self._scrubber.text(last.last_words) if last is not None else ""
            raise UpstreamUnavailable(
                f"the MCP server of {self._toolkit.slug} was started {_MOST_STARTS} times within {_WITHIN_S:.0f} s and "
                f"did not stay; it is tried again in {wait_s:.0f} s{_said(said)}; `workbench toolkits test "
                f"{self._toolkit.slug}` tries it alone",
                {"toolkit": self._toolkit.slug},
            )
        self._starts.append(now)

    async def _begun(self) -> _Life:
        life = _Life(self._opened, f"MCP server of {self._toolkit.slug}")
        try:
            async with asyncio.timeout(self._options.start_s):
                await life.begin()
                await self._list(life)
        except BaseException as problem:
            # Before it is closed, which is an end as well.
            told = await self._why(life, problem)
            await life.aclose()
            raise told from problem
        return life

    async def _why(self, life: _Life, problem: BaseException) -> BaseException:
        if (refusal := life.take_refusal()) is not None:
            return refusal
        if isinstance(problem, WorkbenchError) or not isinstance(problem, Exception):
            return problem
        what = _shown_place(self._place)
        if isinstance(problem, pydantic.ValidationError):
            why = f"what it tells is not what the protocol has: {_plain(problem)}; this is for its author to mend"
        elif isinstance(problem, TimeoutError):
            why = f"it did not tell its tools within {self._options.start_s:g} s"
        else:
            why = await life.how_it_ended() or f"it does not speak MCP: {_plain(problem)}"
        said = self._scrubber.text(life.last_words)
        return UpstreamUnavailable(
            f"the MCP server of {self._toolkit.slug} ({what}) cannot be used: {self._scrubber.text(why)}{_said(said)}",
            {"toolkit": self._toolkit.slug},
        )

    async def _list(self, life: _Life) -> None:
        life.tools_changed = False
        found: list[mcp_types.Tool] = []
        cursor: str | None = None
        size = 0
        for _ in range(_MOST_PAGES):
            page = await life.client.list_tools(cursor=cursor)
            size += len(page.model_dump_json())
            # BARRIER: page by page it would fill the memory of the server; held by
            # tests/toolkits/test_hostile_servers.py.
            if size > _MOST_TOLD_BYTES:
                raise UpstreamBadAnswer(
                    f"the MCP server of {self._toolkit.slug} tells more than {_MOST_TOLD_BYTES // 2**20} MiB about its "
                    "tools; this is for its author to mend",
                    {"toolkit": self._toolkit.slug},
                )
            found += page.tools
            cursor = page.next_cursor
            if not cursor or len(found) > MOST_TOOLS:
                break
        told = self._scrubbed_list(await asyncio.to_thread(listed, self._toolkit.slug, found))
        if told.refused and not told.tools:
            name, why = next(iter(told.refused.items()))
            raise UpstreamBadAnswer(
                f"none of the {len(told.refused)} tools of {self._toolkit.slug} can be used; the first, {name}: {why}; "
                "this is for the author of the server to mend",
                {"toolkit": self._toolkit.slug},
            )
        self._listed = told

    def _scrubbed_list(self, told: Listed) -> Listed:
        """A server that tells its key to whoever looks at its tools tells it to agents."""
        tools = [
            replace(
                one,
                name=self._scrubber.text(one.name),
                description=self._scrubber.text(one.description),
                input_schema=self._scrubber.value(one.input_schema),
                output_schema=self._scrubber.value(one.output_schema),
            )
            for one in told.tools
        ]
        return replace(told, tools=tuple(tools))

    @contextlib.asynccontextmanager
    async def _opened(self, life: _Life) -> AsyncIterator[Client]:
        if isinstance(self._place, McpAddress):
            async with self._by_http(self._place, life) as client:
                yield client
            return
        child = await Child.start(self._place)
        life.child = child
        try:
            async with self._client(transport_of(child), life) as client:
                yield _without_checks(client)
        finally:
            await child.aclose()

    @contextlib.asynccontextmanager
    async def _by_http(self, place: McpAddress, life: _Life) -> AsyncIterator[Client]:
        url = target_of(place.url)
        if place.headers:
            check_private(url, self._backend)
        life.server = OneServer(url, self._backend, 2 * self._options.most_bytes)
        headers = {name: one.reveal() for name, one in place.headers.items()}
        async with client_for(life.server, headers, self._options.call_s) as http:
            transport = streamable_http_client(
                str(url), http_client=http, max_sse_event_size=2 * self._options.most_bytes
            )
            async with self._client(transport, life) as client:
                yield _without_checks(client)

    def _client(self, transport: object, life: _Life) -> Client:
        async def noticed(message: object) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                life.tools_changed = True

        return Client(
            transport,  # type: ignore[arg-type]
            read_timeout_seconds=self._options.call_s,
            client_info=mcp_types.Implementation(name="open-workbench", version=__version__),
            message_handler=noticed,
            cache=None,
        )


class _Life:
    """One connection from its beginning to its end, held by a task of its own: the library wants both in one task."""

    def __init__(self, opened: _Opened, name: str) -> None:
        self._opened = opened
        self._name = name
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.child: Child | None = None
        self.server: OneServer | None = None
        self.tools_changed = False
        self.is_spoiled = False
        """the next call is better made by another one"""
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @property
    def client(self) -> Client:
        """To be asked."""
        return self._ready.result()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, by itself or by us."""
        if self.is_spoiled:
            return True
        return self._task is None or self._task.done() or (self.child is not None and self.child.silent.is_set())

    def take_refusal(self) -> WorkbenchError | None:
        """What kept us from asking by HTTP, or from reading the answer; told once."""
        if self.server is None:
            return None
        problem, self.server.problem = self.server.problem, None
        return problem

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """While somebody waits for an answer of it."""
        self._users += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def end_unused(self, within_s: float) -> None:
        """As soon as nobody waits for an answer of it."""
        try:
            async with asyncio.timeout(within_s):
                await self._unused.wait()
        except TimeoutError:
            pass
        finally:
            await self.aclose()

    @property
    def last_words(self) -> str:
        """Of a program, on standard error."""
        return self.child.words[-_MOST_WORDS:] if self.child is not None else ""

    async def how_it_ended(self) -> str:
        """Of a program that has, in words; empty if it has not."""
        if self.child is None or not self.child.silent.is_set():
            return ""
        code = await self.child.ended()
        return f"it ended at once, with the code {code}" if code is not None else "it closed its output"

    async def begin(self) -> None:
        """Wait until it can be asked. Raises: whatever keeps it from that."""
        self._task = asyncio.create_task(self._run(), name=self._name)
        await asyncio.shield(self._ready)

    async def _run(self) -> None:
        try:
            async with self._opened(self) as client:
                self._ready.set_result(client)
                await self._until_the_end()
        except Exception as problem:  # noqa: BLE001 - told to who waits for it; later ones are the end as well
            if not self._ready.done():
                self._ready.set_exception(_first(problem))
                # Nobody may be waiting any more.
                self._ready.exception()

    async def _until_the_end(self) -> None:
        ends = [asyncio.create_task(self._stop.wait())]
        if self.child is not None:
            ends.append(asyncio.create_task(self.child.silent.wait()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.wait(ends)

    async def aclose(self) -> None:
        """May be called twice."""
        if self._task is None:
            return
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        done, _ = await asyncio.wait([self._task], timeout=_CLOSE_S)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CLOSE_S)


_Opened = collections.abc.Callable[[_Life], contextlib.AbstractAsyncContextManager[Client]]


def _without_checks(client: Client) -> Client:
    """BARRIER: the library would hold an answer against the server's schema with all of its expressions, in the one
    thread that serves everybody; we do so ourselves, within bounds. Held by tests/toolkits/test_hostile_servers.py.
    """

    async def unchecked(name: str, result: mcp_types.CallToolResult) -> None:
        del name, result

    client.session.validate_tool_result = unchecked  # type: ignore[method-assign]
    return client


def _first(problem: BaseException) -> BaseException:
    """Of a group, the one that the others follow from."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def _plain(problem: BaseException) -> str:
    if isinstance(problem, pydantic.ValidationError):
        first = problem.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}"[:_MOST_WORDS]
    words = str(problem) or type(problem).__name__
    return words.splitlines()[0][:_MOST_WORDS]


def _said(words: str) -> str:
    return f"; it said: {words[-_MOST_WORDS:]}" if words else ""


def _shown_place(place: Program | McpAddress) -> str:
    return shown(httpx2.URL(place.url)) if isinstance(place, McpAddress) else place.command[0]


def secrets_of(values: Mapping[str, Secret]) -> Iterator[Secret]:
    """All of them, and what is behind the first word of headers such as `Bearer …`."""
    for one in values.values():
        yield one
        scheme, _, rest = one.reveal().partition(" ")
        if rest and scheme.isalpha():
            yield Secret(rest)
