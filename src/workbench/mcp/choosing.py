"""Which session a call means, and what to say when there is no such one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from workbench.core import requests
from workbench.errors import Conflict, InvalidRequest, NotFound, WorkbenchError
from workbench.mcp import guide
from workbench.mcp.answers import Next
from workbench.mcp.guide import INSTEAD, TAKEN
from workbench.mcp.tool import Tool
from workbench.mcp.visit import Visit
from workbench.model.execution import CellResult, CommandResult, Outcome
from workbench.model.ids import SessionId, session_id
from workbench.model.runtime import PYTHON

R = TypeVar("R")
E = TypeVar("E", CellResult, CommandResult)
# Names in an answer; whoever has more lists them by other means.
_MOST_NAMED = 20
_MOST_LOOKED_AT = 200
# One that is being deleted has its sandbox ended and its files dropped first.
_ENDING_S = 15.0
# Who deletes a session as often as it is made does not want it.
_ATTEMPTS = 2
_PAUSE_S = 0.05
# One that another call of the same client makes, or that is just being deleted, is free or there after this.
_FREE_S = 2.0

DELETED = "the session was deleted while this ran. Its variables and files are gone, but for what branches of it have"


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

    On a session's own address the name is only a word of the caller's, which is kept and told back. Elsewhere it is
    never made on the caller's behalf, be it the default one: who names it counts on what was in it.

    Raises:
        NotFound: it cannot be the name of a session.
    """
    if visit.own_session is not None:
        return Chosen(id=visit.own_session, told=named or visit.own_session, is_default=False)
    if not named:
        return Chosen(id=visit.default_session, told=visit.default_session, is_default=True)
    try:
        return Chosen(id=session_id(named), told=named, is_default=False)
    except InvalidRequest:
        raise NotFound(f"no session {named[:60]!r}", {"session": named[:60]}) from None


async def with_session(visit: Visit, chosen: Chosen, work: Callable[[], Awaitable[R]]) -> tuple[R, bool]:
    """Do it; whether the session was made for it. Only the default one is ever made. `work` may be done again.

    Raises:
        NotFound: there is no such session, and nothing was made or run.
        Conflict: the default one cannot be made; `INSTEAD` in its context names one that can be used.
    """
    is_new = False
    for _ in range(_ATTEMPTS):
        try:
            return await work(), is_new
        except NotFound:
            if not chosen.is_default:
                raise
        except Conflict:
            if not chosen.is_default or not await _is_deleted(visit, chosen.id):
                raise
        is_new = await _make(visit, chosen)
    return await work(), is_new


async def _make(visit: Visit, chosen: Chosen) -> bool:
    until = asyncio.get_running_loop().time() + _FREE_S
    while True:
        try:
            await visit.bench.create_session(requests.CreateSession(session=chosen.id, user=visit.user, passing=True))
            break
        except Conflict:
            if await exists(visit, chosen.id):
                # Another call of the same client was quicker.
                return False
            if (heirs := await heirs_of(visit, chosen.id)) is not None:
                raise heirs from None
            if asyncio.get_running_loop().time() > until:
                raise await _not_free(visit, chosen) from None
        await asyncio.sleep(_PAUSE_S)
    await visit.around.note("session.create", chosen.id, "by a call of a tool")
    return True


async def heirs_of(visit: Visit, session: SessionId) -> Conflict | None:
    """For one that was deleted and cannot be made anew, as branches of it have its files."""
    page = await visit.bench.list_sessions(requests.ListSessions(user=None, limit=1000))
    heirs = [str(one.session.spec.id) for one in page.sessions if str(one.session.mount) == session]
    if not heirs:
        return None
    return Conflict(
        f"session {session!r} was deleted, and its files are now those of its branches ({', '.join(heirs)}): "
        "name one of them as session_id",
        {"session": session, INSTEAD: heirs[0]},
    )


async def _not_free(visit: Visit, chosen: Chosen) -> Conflict:
    """Names are the whole server's, and a session of another project is nothing that could be used here."""
    known = await living(visit)
    words = f"no session {chosen.id!r} can be made: this name is not free on this server. "
    words += f"Name one of those that live as session_id ({', '.join(known)})" if known else "None of yours lives"
    words += "; for another default session, the client's address needs another `?session=`"
    return Conflict(words, {"session": chosen.id, TAKEN: "yes", **({INSTEAD: known[0]} if known else {})})


async def with_its_session(visit: Visit, session: SessionId, result: E) -> tuple[E, bool]:
    """As it is told; whether its session was deleted under it, and nothing of what is usual after a loss holds."""
    if result.outcome is not Outcome.LOST or not await _is_leaving(visit, session):
        return result, False
    what = "cell" if isinstance(result, CellResult) else "command"
    words = f"The {what} did not come to its end: {DELETED}."
    return replace(result, explanation=words, receipt=replace(result.receipt, reason="")), True


async def _is_leaving(visit: Visit, session: SessionId) -> bool:
    try:
        return await _state(visit, session) == "ending"
    except NotFound:
        return True
    except WorkbenchError:
        return False


async def _is_deleted(visit: Visit, session: SessionId) -> bool:
    """Waits for the end of one that is on its way."""
    with contextlib.suppress(NotFound, TimeoutError):
        async with asyncio.timeout(_ENDING_S):
            while await _state(visit, session) == "ending":  # noqa: ASYNC110  (another process may delete it)
                await asyncio.sleep(_PAUSE_S)
            return False
    return not await exists(visit, session)


async def _state(visit: Visit, session: SessionId) -> str:
    return (await visit.bench.describe_session(requests.DescribeSession(session=session))).state


async def exists(visit: Visit, session: SessionId) -> bool:
    """Whether there is such a session."""
    try:
        await _state(visit, session)
    except NotFound:
        return False
    return True


async def living(visit: Visit) -> list[str]:
    """Names of sessions that this caller can use, latest used first and not too many; none if nobody knows."""
    with contextlib.suppress(WorkbenchError):
        if visit.own_session is not None:
            return [visit.own_session] if await exists(visit, visit.own_session) else []
        page = await visit.bench.list_sessions(requests.ListSessions(user=None, limit=_MOST_LOOKED_AT))
        found = sorted((one.session for one in page.sessions), key=lambda one: one.used_at, reverse=True)
        return [str(one.spec.id) for one in found if not one.ending][:_MOST_NAMED]
    return []


async def in_its_language(visit: Visit, tool: Tool[Any], session: str, step: Next | None) -> Next | None:
    """The step, or one that does the same where the session has another language than the step."""
    if step is None or not guide.is_python(step):
        return step
    with contextlib.suppress(WorkbenchError):
        chosen = choose(visit, session)
        if (await visit.bench.runtime_of(chosen.id)).name != PYTHON:
            return guide.look_at_files(visit, tool, session)
    return step
