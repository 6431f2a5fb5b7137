"""Which session a call means, and what to say when there is no such one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from workbench.core import requests
from workbench.errors import Conflict, InvalidRequest, NotFound
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId, session_id

R = TypeVar("R")
# Names in an answer; whoever has more lists them by other means.
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A session that a call is for."""

    id: SessionId
    told: str
    """what the caller calls it, and is told back"""
    is_default: bool
    """nobody named it, so that it may be made"""


def choose(visit: Visit, named: str) -> Chosen:
    """The one that `named` means: a session's id, or nothing.

    On a session's own address the name is only a word of the caller's, which is kept and told back.

    Raises:
        NotFound: it cannot be the name of a session.
    """
    if visit.own_session is not None:
        return Chosen(id=visit.own_session, told=named or visit.own_session, is_default=False)
    if not named:
        return Chosen(id=visit.default_session, told=visit.default_session, is_default=True)
    try:
        return Chosen(id=session_id(named), told=named, is_default=named == visit.default_session)
    except InvalidRequest:
        raise NotFound(f"no session {named[:60]!r}", {"session": named[:60]}) from None


async def with_session(visit: Visit, chosen: Chosen, work: Callable[[], Awaitable[R]]) -> tuple[R, bool]:
    """Do it; whether the session was made for it. Only the default one is ever made.

    Raises:
        NotFound: there is no such session, and nothing was made or run.
    """
    try:
        return await work(), False
    except NotFound:
        if not chosen.is_default or await exists(visit, chosen.id):
            raise
    try:
        await visit.bench.create_session(requests.CreateSession(session=chosen.id, user=visit.user))
        await visit.around.note("session.create", chosen.id, "by a call of a tool")
    except Conflict:
        # Another call of the same client was quicker.
        return await work(), False
    return await work(), True


async def exists(visit: Visit, session: SessionId) -> bool:
    """Whether there is such a session."""
    try:
        await visit.bench.describe_session(requests.DescribeSession(session=session))
    except NotFound:
        return False
    return True


async def living(visit: Visit) -> list[str]:
    """Names of sessions that this caller can use, the first of them if there are many."""
    if visit.own_session is not None:
        return [visit.own_session]
    page = await visit.bench.list_sessions(requests.ListSessions(user=None, limit=_MOST_NAMED))
    return [one.session.spec.id for one in page.sessions]
