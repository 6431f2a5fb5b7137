"""Sessions that clients get which name none, and what becomes of them when those clients are gone.

Their memory is worth nothing to anybody else, but what is in /mnt/files may be somebody's work: without files one goes
with its client, with files it is kept until nobody has used it for a week. What somebody named is never touched.
"""

from __future__ import annotations

import asyncio
import datetime

from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.errors import InvalidRequest, NotFound
from workbench.model.ids import SessionId, is_passing
from workbench.model.session import Session, SessionDescription

KEPT_DAYS = 7
_AT_REST = ("cold", "idle", "frozen", "lost")
# What its client called off on leaving has to end first.
_COMES_TO_REST_S = 15.0
_LOOK_EVERY_S = 0.5
_FIRST = SessionId("mcp-")
_PAGE = 100


async def check_may_be_named(bench: Workbench, session: SessionId) -> None:
    """Raises: InvalidRequest for a name of the kind that is not kept, unless there is such a session."""
    if is_passing(session) and not await bench.user_of(session):
        raise InvalidRequest(
            f"no session {session!r}, and none is made by this name: it is such a one as clients get that name none; "
            "choose another",
            {"session": session},
        )


async def client_left(bench: Workbench, session: SessionId) -> Session | None:
    """Delete what its client used alone, and left without files; what was deleted."""
    try:
        described = await _at_rest(bench, session)
        # One whose sandbox has ended can have files as well; nobody makes it another only to look.
        if described is None or described.state == "lost" or not await _is_alone(bench, described):
            return None
        if described.state != "cold" and await bench.has_files(requests.HasFiles(session=session)):
            return None
        await bench.delete_session(requests.DeleteSession(session=session))
    except NotFound:
        return None
    return described.session


async def _at_rest(bench: Workbench, session: SessionId) -> SessionDescription | None:
    """None if it does not come to rest."""
    until = asyncio.get_running_loop().time() + _COMES_TO_REST_S
    while asyncio.get_running_loop().time() < until:
        described = await bench.describe_session(requests.DescribeSession(session=session))
        if described.state in _AT_REST:
            return described
        await asyncio.sleep(_LOOK_EVERY_S)
    return None


async def _is_alone(bench: Workbench, described: SessionDescription, before: str | None = None) -> bool:
    """Nothing runs in it, and it is neither a branch nor has any.

    Its contexts are its own, and go with it, unless one was used since `before`.
    """
    session = described.session
    if not is_passing(session.spec.id) or session.parent is not None or session.context_of is not None:
        return False
    contexts = await bench.list_contexts(requests.ListContexts(session=session.spec.id))
    if {one.session.spec.id for one in contexts} != {*described.shared_with}:
        return False
    if any(one.state not in _AT_REST or (before and one.session.used_at >= before) for one in contexts):
        return False
    if described.state not in _AT_REST:
        return False
    if described.state != "idle":
        return True
    return not await bench.list_processes(requests.ListProcesses(session=session.spec.id))


def unused_before(now: datetime.datetime) -> str:
    """What was last used earlier than this is nobody's any more."""
    return (now - datetime.timedelta(days=KEPT_DAYS)).strftime("%Y-%m-%dT%H:%M:%S")


async def delete_if_unused(bench: Workbench, session: SessionId, before: str) -> Session | None:
    """Whatever files it has; what was deleted.

    Raises:
        NotFound: there is no such session.
    """
    described = await bench.describe_session(requests.DescribeSession(session=session))
    if described.session.used_at >= before or not await _is_alone(bench, described, before):
        return None
    await bench.delete_session(requests.DeleteSession(session=session))
    return described.session


async def unused(bench: Workbench, before: str) -> list[SessionId]:
    """Those of a project that are to be looked at."""
    found: list[SessionId] = []
    after: SessionId | None = _FIRST
    while after is not None and after.startswith(_FIRST):
        page = await bench.list_sessions(requests.ListSessions(user=None, after=after, limit=_PAGE))
        found += [
            one.session.spec.id
            for one in page.sessions
            if is_passing(one.session.spec.id) and one.session.used_at < before
        ]
        after = page.next_after
    return found
