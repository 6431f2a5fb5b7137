"""UpstreamSource: Composio's own toolkits, asked for with the operator's own key and passed on as they are.

Accounts are connected there, under the id of the session's user. The key goes to that one server, and nowhere else.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from workbench.egress.guard import GuardedBackend
from workbench.egress.targets import target_of
from workbench.errors import (
    Denied,
    InvalidRequest,
    NotConfigured,
    NotFound,
    UpstreamBadAnswer,
    UpstreamLimited,
    UpstreamRefused,
    UpstreamUnavailable,
)
from workbench.model.connection import Secret
from workbench.model.toolkit import UNVERSIONED, Json, Tool, ToolCall, Toolkit, ToolResult
from workbench.toolkits.one_server import OneServer, check_private, client_for
from workbench.toolkits.scrubbing import Scrubber

ADDRESS = "https://backend.composio.dev"
_API = "/api/v3.1"
_PAGE, _MOST_PAGES = 500, 40
_LIST_S = 60.0
_MOST_BYTES = 50 * 2**20
# Tools of others change with their releases.
_KEEP_S = 3600.0
_MOST_WORDS = 1000
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Whom to ask, and for what."""

    toolkits: tuple[str, ...]
    key: Secret
    address: str = ADDRESS
    call_s: float = 180.0


@dataclass(frozen=True, slots=True)
class _Listed:
    at: float
    toolkits: tuple[Toolkit, ...]
    tools: Mapping[str, Tool]
    refused: Mapping[str, str]


class UpstreamSource:
    """A ToolSource. `aclose` it."""

    def __init__(self, upstream: Upstream, *, backend: GuardedBackend) -> None:
        self._upstream = upstream
        self._scrubber = Scrubber(None, [upstream.key])
        self._url = target_of(upstream.address)
        self._backend = backend
        self._server = OneServer(self._url, backend, _MOST_BYTES)
        self._http = client_for(self._server, {"x-api-key": upstream.key.reveal()}, upstream.call_s)
        self._listed: _Listed | None = None
        self._lock = asyncio.Lock()

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As the contract has it."""
        return (await self._told()).toolkits

    async def tools(self) -> tuple[Tool, ...]:
        """As the contract has it.

        Raises:
            UpstreamUnavailable: it does not answer.
            UpstreamRefused: it does not take the key.
        """
        return tuple((await self._told()).tools.values())

    async def refused(self) -> dict[str, str]:
        """Tools that are not used, with the reason."""
        return dict((await self._told()).refused)

    async def run(self, call: ToolCall) -> ToolResult:
        """As the contract has it."""
        tool = (await self._told()).tools.get(call.slug)
        if tool is None:
            raise NotFound(f"{call.slug} is no tool of {', '.join(self._upstream.toolkits)} at Composio")
        body: Json = {"arguments": call.arguments, "user_id": call.session.spec.user}
        if call.account:
            await self._check_own(call)
            body["connected_account_id"] = call.account
        if tool.version != UNVERSIONED:
            body["version"] = tool.version
        try:
            async with asyncio.timeout(self._upstream.call_s):
                answer = await self._asked("POST", f"/tools/execute/{call.slug}", body=body)
        except UpstreamUnavailable as problem:
            return ToolResult(data={}, error=f"{problem.message}; {call.slug} may have been carried out")
        except TimeoutError:
            words = f"Composio did not answer within {self._upstream.call_s:g} s; {call.slug} may have been carried out"
            return ToolResult(data={}, error=words)
        return self._result(call.slug, answer)

    async def _check_own(self, call: ToolCall) -> None:
        """BARRIER: the operator's key is good for all accounts there, and an agent would name somebody else's; held by
        tests/toolkits/test_upstream.py.

        Raises:
            Denied: it is not the session's user's.
        """
        user = call.session.spec.user
        refused = Denied(f"no account {call.account[:100]!r} of user {user!r} at Composio; name one of theirs, or none")
        if not _ACCOUNT.fullmatch(call.account):
            raise refused
        try:
            told = await self._asked("GET", f"/connected_accounts/{call.account}")
        except InvalidRequest:
            raise refused from None
        if told.get("user_id") != user:
            raise refused

    async def aclose(self) -> None:
        """May be called twice."""
        await self._http.aclose()

    def _result(self, slug: str, answer: Json) -> ToolResult:
        data = answer.get("data")
        if not isinstance(data, dict):
            data = {} if data is None else {"result": data}
        error = answer.get("error")
        words = error if isinstance(error, str) else json.dumps(error) if error else ""
        if not answer.get("successful", not words) and not words:
            words = f"{slug} failed, and Composio did not say why"
        return ToolResult(
            data=self._scrubber.value(data),
            error=self._scrubber.text(words[:_MOST_WORDS]),
            log_id=str(answer.get("log_id") or ""),
        )

    async def _told(self) -> _Listed:
        now = asyncio.get_running_loop().time()
        if self._listed is not None and now - self._listed.at < _KEEP_S:
            return self._listed
        async with self._lock:
            if self._listed is None or now - self._listed.at >= _KEEP_S:
                async with asyncio.timeout(_LIST_S):
                    self._listed = await self._read(now)
            return self._listed

    async def _read(self, now: float) -> _Listed:
        toolkits: list[Toolkit] = []
        tools: dict[str, Tool] = {}
        refused: dict[str, str] = {}
        for slug in self._upstream.toolkits:
            found = await self._items(slug)
            if not found:
                raise NotConfigured(
                    f"Composio has no tools of a toolkit {slug!r}; check how it is written, and add it again",
                    {"toolkit": slug},
                )
            toolkits.append(_toolkit(slug, found[0]))
            for one in found:
                tool = _tool(slug, one)
                if isinstance(tool, Tool):
                    tools.setdefault(tool.slug, tool)
                else:
                    refused[str(one.get("slug"))[:60]] = tool
        return _Listed(now, tuple(toolkits), tools, refused)

    async def _items(self, slug: str) -> list[Json]:
        found: list[Json] = []
        cursor = ""
        for _ in range(_MOST_PAGES):
            query = {"toolkit_slug": slug, "limit": str(_PAGE), **({"cursor": cursor} if cursor else {})}
            page = await self._asked("GET", "/tools", query=query)
            items = page.get("items")
            if not isinstance(items, list):
                raise UpstreamBadAnswer("Composio's list of tools has no `items`")
            found += [one for one in items if isinstance(one, dict)]
            cursor = str(page.get("next_cursor") or "")
            if not cursor:
                break
        return found

    async def _asked(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Json | None = None
    ) -> Json:
        check_private(self._url, self._backend)
        url = self._url.copy_with(path=f"{self._url.path.rstrip('/')}{_API}{path}", query=None)
        try:
            answer = await self._http.request(method, url, params=query, json=body)
        except httpx2.HTTPError as problem:
            if self._server.problem is not None:
                refusal, self._server.problem = self._server.problem, None
                raise refusal from problem
            raise UpstreamUnavailable(f"Composio does not answer: {type(problem).__name__}") from problem
        return self._read_answer(answer)

    def _read_answer(self, answer: httpx2.Response) -> Json:
        try:
            told = answer.json()
        except (ValueError, RecursionError):
            told = None
        words = self._scrubber.text(_words(told) or f"the status {answer.status_code}")
        match answer.status_code:
            case 401 | 403:
                raise UpstreamRefused(f"Composio does not take the key of this toolkit: {words}; add it with a new one")
            case 429:
                after = answer.headers.get("retry-after", "")
                context = {"retry_after_s": after} if after.isdigit() else {}
                raise UpstreamLimited(f"Composio wants to be asked less often: {words}", context)
            case status if status >= 500:
                raise UpstreamUnavailable(f"Composio failed: {words}")
            case status if status >= 300:
                raise InvalidRequest(f"Composio refuses it: {words}")
        if not isinstance(told, dict):
            raise UpstreamUnavailable("Composio's answer is no JSON object")
        return told


def _words(told: Any) -> str:
    """What an error of it says, with its own next step."""
    error = told.get("error", told) if isinstance(told, dict) else None
    if isinstance(error, str):
        return error[:_MOST_WORDS]
    if not isinstance(error, dict):
        return ""
    parts = [error.get("message"), error.get("suggested_fix")]
    return "; ".join(one for one in parts if isinstance(one, str) and one)[:_MOST_WORDS]


def _toolkit(slug: str, item: Json) -> Toolkit:
    told = item.get("toolkit")
    told = told if isinstance(told, dict) else {}
    name = str(told.get("name") or slug)[:200]
    return Toolkit(
        slug=slug,
        name=name,
        description=f"{name}, by Composio: accounts are connected there, under the id of the session's user.",
        logo=str(told.get("logo") or "")[:2000],
        no_auth=True,
    )


def _tool(toolkit: str, item: Json) -> Tool | str:
    """The tool, or why it cannot be used."""
    slug = str(item.get("slug") or "").upper()
    takes = item.get("input_parameters")
    gives = item.get("output_parameters")
    if not slug.replace("_", "").isalnum() or not slug.isascii():
        return "its slug is none"
    if not isinstance(takes, dict) or takes.get("type", "object") != "object":
        return "its input schema is none of an object"
    gives = gives if isinstance(gives, dict) and gives.get("type", "object") == "object" else {}
    name = str(item.get("name") or slug)
    return Tool(
        slug=slug,
        name=name,
        description=str(item.get("description") or name),
        toolkit=toolkit,
        input_schema={"properties": {}, **takes, "type": "object"},
        output_schema={"properties": {}, **gives, "type": "object"},
        tags=tuple(str(one) for one in item.get("tags") or () if isinstance(one, str)),
        scopes=tuple(str(one) for one in item.get("scopes") or () if isinstance(one, str)),
        no_auth=True,
        version=str(item.get("version") or UNVERSIONED),
    )
