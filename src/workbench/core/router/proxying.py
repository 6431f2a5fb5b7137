"""COMPOSIO_PROXY_EXECUTE and proxy_execute: raw calls to the service of a toolkit, as a session's user."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from workbench.contracts.clock import Clock
from workbench.contracts.service_calls import ServiceAnswer, ServiceCalls, ServiceOrder
from workbench.core.mounts import Mounts
from workbench.core.router import files
from workbench.core.router.accounts import Accounts
from workbench.core.router.approving import Considered
from workbench.core.router.calling import check_same
from workbench.core.router.catalogue import Catalogue, is_enabled
from workbench.core.router.offered import PROXY_EXECUTE
from workbench.core.router.rules import Rules
from workbench.errors import Denied, InvalidRequest, NotConfigured, WorkbenchError
from workbench.model.configuration import SessionConfig, is_named, plain
from workbench.model.connection import NOT_CONNECTED, Credential, hosts_for
from workbench.model.ids import ProjectId
from workbench.model.session import Session
from workbench.model.toolkit import AuthKind, Json, Tool, ToolCall, Toolkit

_MOST_QUOTED = 100
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_HARMLESS = ("GET", "HEAD")
_FIELD = re.compile(r"\{([A-Za-z0-9_]+)\}")
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# What proves the account is ours to send.
_OURS = frozenset({"authorization", "cookie", "host", "proxy-authorization"})
# By which some services take a call for one of another method.
_METHOD_HEADERS = frozenset({"x-http-method-override", "x-http-method", "x-method-override"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCall:
    """As it was asked for."""

    toolkit: str
    endpoint: str = field(repr=False)
    """a path below the service's own address, or a whole URL of it"""
    method: str
    body: Any = field(default=None, repr=False)
    binary: bytes | None = field(default=None, repr=False)
    """sent as it is, in the place of `body`"""
    content_type: str = ""
    binary_from: str = field(default="", repr=False)
    """where `binary` is, if it is not given: a URL, or a file of the session's mount"""
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResult:
    """What a service answered."""

    status: int
    data: Any = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    """why there is no whole answer"""
    file: KeptFile | None = None
    """what it gave instead of data, in the session's mount"""

    def told(self) -> Json:
        """As the tool tells it."""
        data = self.data if self.file is None else self.file.told
        return {"status": self.status, "data": data, "headers": self.headers}


@dataclass(frozen=True, slots=True)
class KeptFile:
    """An answer that is a file."""

    path: str
    """in the mount"""
    content_type: str
    size: int
    told: Json


@dataclass(frozen=True, slots=True)
class ReadyRaw:
    """One that can be made."""

    toolkit: Toolkit
    call: RawCall
    considered: Considered


class Proxying:
    """Makes raw calls. Owns nothing; without `services` there is nobody who could."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        accounts: Accounts,
        services: ServiceCalls | None,
        clock: Clock,
        mounts_of: Callable[[ProjectId], Mounts],
    ) -> None:
        self._catalogue = catalogue
        self._accounts = accounts
        self._services = services
        self._clock = clock
        self._mounts_of = mounts_of

    async def ready(self, session: Session, call: RawCall) -> ReadyRaw:
        """The call, if it can be made. Raises: InvalidRequest, NotFound, NotConfigured, Denied."""
        if not session.spec.config.proxies:
            raise InvalidRequest(
                f"raw calls to services are switched off in session {session.spec.id}; set `proxy_execute.enable` and "
                "`sandbox.enable_proxy_execution` by an update of the session",
                {"session": session.spec.id, "toolkit": call.toolkit[:_MOST_QUOTED]},
            )
        toolkit = await self._catalogue.of(session.spec.project).toolkit(call.toolkit.strip().lower())
        if not is_enabled(session.spec.config, toolkit):
            raise Denied(
                f"the toolkit {toolkit.slug} is not enabled in session {session.spec.id}: no raw calls are made to it",
                {"toolkit": toolkit.slug},
            )
        if self._services is None or not toolkit.hosts:
            raise NotConfigured(
                f"the toolkit {toolkit.slug} is not called by HTTP with an account, so that there is nothing to call "
                "directly; use its tools",
                {"toolkit": toolkit.slug},
            )
        if call.method.upper() not in _METHODS:
            raise InvalidRequest(f"`method` has to be one of {', '.join(_METHODS)}", {"field": "method"})
        for name, _ in call.headers:
            # BARRIER: what looks like reading would be a deletion, which somebody is to be asked about first; held by
            # tests/unit/core/router/test_proxying.py.
            if name.lower() in _METHOD_HEADERS:
                raise InvalidRequest(
                    f"the header {name[:_MOST_QUOTED]!r} is not sent: say what is meant by `method`",
                    {"field": "headers"},
                )
            if name.lower() in _OURS:
                raise InvalidRequest(
                    f"the header {name[:_MOST_QUOTED]!r} is not the caller's to send: the account's is sent along",
                    {"field": "headers"},
                )
        considered = _considered(session, toolkit, call)
        # BARRIER: what is ruled out as a tool would be done by a raw call; held by
        # tests/unit/core/router/test_proxying.py.
        if reason := Rules(session.spec.config).why_not(toolkit, considered.tool):
            raise Denied(
                f"no raw calls like this are made to {toolkit.slug} in session {session.spec.id}, {reason}; they could "
                f"do what tools may not: use its tools, or have {PROXY_EXECUTE} named in the session's permissions",
                {"toolkit": toolkit.slug},
            )
        if toolkit.no_auth:
            return ReadyRaw(toolkit, call, considered)
        standing = await self._accounts.standing(session, toolkit)
        if not standing.reach.is_active:
            raise Denied(standing.reach.words, {"toolkit": toolkit.slug, "reason": NOT_CONNECTED})
        return ReadyRaw(toolkit, call, replace(considered, whose=standing.names_of(call.account)))

    async def carry_out(self, session: Session, ready: ReadyRaw) -> RawResult:
        """Make it. Raises: Denied, InvalidRequest, UpstreamError: nothing was sent."""
        assert self._services is not None, "ready says so"
        toolkit, call = ready.toolkit, ready.call
        mounts = self._mounts_of(session.spec.project)
        if call.binary_from:
            call = replace(call, binary=await files.sent(call.binary_from, session, mounts))
        credential = None
        if not toolkit.no_auth:
            credential = await self._accounts.credential_for(session, toolkit, call.account)
            check_same(credential, ready.considered.whose)
        answer = await self._services.call(_order(toolkit, call, credential))
        # BARRIER: a place that refuses everybody would be called to have a key written down as no good; held by
        # tests/toolkits/test_raw_calls.py.
        if answer.status == 401 and credential is not None and credential.kind is AuthKind.OAUTH2:
            credential = await self._accounts.renewed(session, toolkit, credential)
            answer = await self._services.call(_order(toolkit, call, credential))
        return await self._result(answer, session, mounts)

    async def _result(self, answer: ServiceAnswer, session: Session, mounts: Mounts) -> RawResult:
        made = RawResult(
            status=answer.status or 0, data=answer.data, headers=dict(answer.headers), problem=answer.problem
        )
        if answer.file is None:
            return made
        try:
            told = await files.kept(answer.file, session, mounts, self._clock)
        except WorkbenchError as problem:
            return replace(made, problem=f"it was done, but the file that came could not be kept: {problem.message}")
        path = told[files.KEY].partition("/")[2]
        size = len(answer.file.content)
        return replace(made, file=KeptFile(path, answer.file.content_type, size, told))


def _considered(session: Session, toolkit: Toolkit, call: RawCall) -> Considered:
    """As a tool of that toolkit, which only reads if its method does."""
    harmless = call.method.upper() in _HARMLESS
    tool = Tool(
        slug=PROXY_EXECUTE,
        name="Proxy execute",
        description="",
        toolkit=toolkit.slug,
        input_schema={"type": "object"},
        tags=("readOnlyHint", "idempotentHint", "openWorldHint") if harmless else ("destructiveHint", "openWorldHint"),
        acts_as=_ruled(session.spec.config, toolkit),
    )
    arguments: Json = {"method": call.method.upper(), "endpoint": call.endpoint, "toolkit": toolkit.slug}
    more = {"query": list(call.query), "body": call.body, "headers": list(call.headers)}
    arguments |= {name: value for name, value in more.items() if value}
    if call.binary is not None:
        digest = hashlib.sha256(call.binary).hexdigest()
        arguments["binary_body"] = f"{len(call.binary)} bytes, SHA-256 {digest}"
    if call.binary_from:
        arguments["binary_body"] = call.binary_from
    return Considered(ToolCall(slug=PROXY_EXECUTE, arguments=arguments, session=session, account=call.account), tool)


def _ruled(config: SessionConfig, toolkit: Toolkit) -> tuple[str, ...]:
    """Tools of that toolkit of which the configuration says something: a raw call could be any of them. None, if it
    says something of raw calls themselves.
    """
    named = [one.partition(":")[0] for one in config.permissions.overrides]
    if is_named(PROXY_EXECUTE, named):
        return ()
    of_it = plain(f"{toolkit.slug}_")
    choices = [one.tools for one in config.tools_of(toolkit.slug)]
    listed = [name for one in choices for name in (*(one.disable or ()), *(one.require_approval or ()))]
    return tuple(dict.fromkeys((*listed, *(name for name in named if plain(name).startswith(of_it)))))


def _order(toolkit: Toolkit, call: RawCall, credential: Credential | None) -> ServiceOrder:
    headers, body = list(call.headers), call.binary
    if body is not None:
        headers.append(("content-type", call.content_type or "application/octet-stream"))
    elif call.body is not None:
        is_text = isinstance(call.body, str)
        body = (call.body if is_text else json.dumps(call.body, ensure_ascii=False)).encode("utf-8", "replace")
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("content-type", "text/plain; charset=utf-8" if is_text else "application/json"))
    return ServiceOrder(
        method=call.method.upper(),
        url=_url(toolkit, call, credential),
        headers=tuple(headers),
        body=body,
        hosts=hosts_for(toolkit, credential),
        credential=credential,
    )


def _url(toolkit: Toolkit, call: RawCall, credential: Credential | None) -> str:
    """Absolute. Where it leads is checked by who sends it."""
    url = call.endpoint
    if not urlsplit(url).scheme:
        if not toolkit.base_url:
            raise InvalidRequest(f"{toolkit.slug} has no address of its own: give a whole URL", {"field": "endpoint"})
        url = f"{_base(toolkit, credential).rstrip('/')}/{url.lstrip('/')}"
    if call.query:
        url = f"{url}{'&' if '?' in url else '?'}{urlencode(call.query)}"
    return url


def _base(toolkit: Toolkit, credential: Credential | None) -> str:
    """The service's own address, with what the account fills in."""

    def put(found: re.Match[str]) -> str:
        secret = credential.values.get(found[1]) if credential is not None else None
        value = secret.reveal().strip() if secret is not None else ""
        # BARRIER: `evil.example/` as a subdomain would be another host; held by
        # tests/unit/core/router/test_proxying.py.
        if not _PART.fullmatch(value):
            raise InvalidRequest(
                f"the connected account of {toolkit.slug} has no {found[1]} that is part of a host's name: connect it "
                "again with one, or give a whole URL",
                {"field": found[1]},
            )
        return value

    return _FIELD.sub(put, toolkit.base_url)
