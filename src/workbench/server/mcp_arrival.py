"""Who comes to MCP, by which address, and what they see there: known before a word of the protocol is read."""

from __future__ import annotations

import hashlib
import urllib.parse
import uuid
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request

from workbench.errors import Conflict, Denied, InvalidRequest, NotFound
from workbench.mcp.families import Families, Family, chosen_families
from workbench.mcp.leftovers import check_may_be_named
from workbench.model.access import Caller, Scope
from workbench.model.ids import SessionId, session_id
from workbench.server.addresses import is_loopback, without_port
from workbench.server.auth import require, require_session
from workbench.server.door import Door, Note
from workbench.wire.rest import UserName

CONNECTION_HEADER = "mcp-session-id"
DEFAULT_USER = "mcp"
_ASKED = ("tools", "session", "user")
_USER: TypeAdapter[str] = TypeAdapter(UserName)
_MOST_QUOTED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request."""

    note: Note
    caller: Caller
    connection: str
    """the id that the client was given when it connected; empty if it has none"""
    default_session: SessionId
    names_default: bool
    """the caller has chosen it"""
    own_session: SessionId | None
    has_sandbox: bool
    """of its own session"""
    families: Families
    user: str


async def arrived(door: Door, request: Request) -> Arrival:
    """What is to be known of a request.

    Raises:
        Denied: not by this name, with this key, or for this session.
        NotFound: the address is of a session that there is not.
        InvalidRequest: a parameter of the address cannot be used.
    """
    note: Note = request.scope["workbench.note"]
    caller = note.caller
    assert caller is not None, "the front lets nobody in here without a key"
    check_names(request.headers, door.options.names)
    require(caller, Scope.SESSIONS)
    own = await _own_session(door, caller, request)
    asked = _asked(request.query_params)
    connection = request.headers.get(CONNECTION_HEADER, "")
    default = _default_session(caller, connection, own, asked.get("session", ""))
    if "session" in asked:
        await check_may_be_named(door.service.workbench(caller.project), default)
    # Until a tool says which one it was.
    note.session = own or ""
    return Arrival(
        note=note,
        caller=caller,
        connection=connection,
        default_session=default,
        names_default="session" in asked,
        own_session=own,
        has_sandbox=own is None or await _has_sandbox(door, caller, own),
        families=_families(door, asked, request),
        user=_user(asked["user"]) if "user" in asked else DEFAULT_USER,
    )


def _families(door: Door, asked: dict[str, str], request: Request) -> Families:
    """On a session's own address, which SDKs hand to agents, there is all that the session offers."""
    if "tools" in asked:
        return chosen_families(asked["tools"])
    is_own = "session_id" in request.path_params
    return door.options.families | {Family.ROUTER} if is_own else door.options.families


def check_names(headers: Headers, names: frozenset[str] | None) -> None:
    """Raises: Denied for a request that came by a name that is not ours, or from a page of somebody else's."""
    if names is None:
        return
    # BARRIER: a page in a browser on this machine could have its own name lead here, and use the server as its own;
    # held by tests/mcp/http/test_access.py.
    host = without_port(headers.get("host", "")).lower()
    if not _is_ours(host, names):
        raise Denied(
            f"this server is not called {host[:_MOST_QUOTED]!r}; ask it by the address that it prints when it starts, "
            "or set WORKBENCH_PUBLIC_URL to the one that clients use",
            {"host": host[:_MOST_QUOTED]},
        )
    if (origin := headers.get("origin")) is not None and not _is_ours(_host_of(origin), names):
        raise Denied(
            f"pages from {origin[:_MOST_QUOTED]!r} may not use this server; if they are its own, set "
            "WORKBENCH_PUBLIC_URL to their address",
            {"origin": origin[:_MOST_QUOTED]},
        )


def _is_ours(host: str, names: frozenset[str]) -> bool:
    return host in names or is_loopback(host)


def _host_of(origin: str) -> str:
    try:
        parts = urllib.parse.urlsplit(origin)
        # No browser sends a name with it; whoever does means to be taken for what follows.
        return "" if "@" in parts.netloc else parts.hostname or ""
    except ValueError:
        return ""


async def _own_session(door: Door, caller: Caller, request: Request) -> SessionId | None:
    """The one that the address, or the caller's token, is for."""
    named: str | None = request.path_params.get("session_id")
    if named is None:
        return caller.session
    require_session(caller, named)
    try:
        own = session_id(named)
        known = bool(await door.service.workbench(caller.project).user_of(own))
    except InvalidRequest:
        known = False
    if not known:
        raise NotFound(
            f"no session {named[:_MOST_QUOTED]!r}, so nothing is at this address; make it by POST /v1/sessions, or "
            "use /mcp, where each client has a session of its own",
            {"session": named[:_MOST_QUOTED]},
        )
    return own


async def _has_sandbox(door: Door, caller: Caller, session: SessionId) -> bool:
    try:
        record = await door.service.workbench(caller.project).configurations.get(session)
    except (NotFound, Conflict):
        # It is on its way; the tool that is called says so.
        return True
    return record.spec.config.sandbox.enable


def _asked(query: QueryParams) -> dict[str, str]:
    asked = {}
    for name, value in query.multi_items():
        if name not in _ASKED or name in asked:
            why = "there twice" if name in asked else "no parameter of this address"
            raise InvalidRequest(
                f"{name[:_MOST_QUOTED]!r} is {why}; it takes: {', '.join(_ASKED)}",
                {"parameter": name[:_MOST_QUOTED]},
            )
        asked[name] = value
    return asked


def _default_session(caller: Caller, connection: str, own: SessionId | None, named: str) -> SessionId:
    if own is not None:
        if named and named != own:
            raise InvalidRequest(
                f"this is the way to session {own!r} and to no other; leave `?session=` out, or use /mcp with a key of "
                "the project",
                {"parameter": "session"},
            )
        return own
    if named:
        return session_id(named)
    # BARRIER: who learns another's connection would be in its session; with the key in it, theirs has another name.
    # Held by tests/mcp/http/test_restart.py.
    digest = hashlib.sha256(f"{caller.project}\n{caller.key}\n{connection}".encode())
    return SessionId(f"mcp-{digest.hexdigest()[:12]}")


def _user(text: str) -> str:
    try:
        return _USER.validate_python(text)
    except ValidationError:
        raise InvalidRequest(
            "`?user=` must be a name of 1 to 200 characters in one line", {"parameter": "user"}
        ) from None


def could_be_ours(connection: str) -> bool:
    """Whether such an id was ever given out, by this server or one before it."""
    try:
        known = uuid.UUID(hex=connection)
    except ValueError:
        return False
    return known.hex == connection and known.version == 4
