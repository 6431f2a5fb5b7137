"""Who asks, and whether they may. Keys are looked up each time: one that was revoked is no good from then on."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request
from starlette.datastructures import Headers

from workbench.errors import Denied, Unauthenticated
from workbench.model.access import Caller, Scope
from workbench.model.ids import SessionId
from workbench.server.door import Door, Note, SessionVisit, Visit
from workbench.server.questions import check_question
from workbench.server.refusals import API
from workbench.wire.rest import SessionName

# What SDKs call the header of a key, of one for a session, of a user's and of an organisation's: ours are all alike.
_KEY_HEADERS = ("x-api-key", "x-session-access-key", "x-user-api-key", "x-org-api-key")
SessionPath = Annotated[SessionName, Path(description="Its id.")]


def presented(headers: Headers) -> str:
    """The key that came with a request, in one header or the same in several.

    Raises:
        Unauthenticated: none did, or different ones.
    """
    # All of each name: one header can come twice.
    asked = [one.partition(" ") for one in headers.getlist("authorization")]
    found = {key.strip() for kind, _, key in asked if kind.lower() == "bearer"}
    found.update(key.strip() for name in _KEY_HEADERS for key in headers.getlist(name))
    found.discard("")
    if len(found) == 1:
        return found.pop()
    if found:
        # BARRIER: what stands in between might look at one of them, and we at the other; held by
        # tests/composio/test_credentials.py.
        names = [name for name in ("authorization", *_KEY_HEADERS) if any(map(str.strip, headers.getlist(name)))]
        raise Unauthenticated(f"this came with different keys, in {' and '.join(names)}; send one of them only")
    raise Unauthenticated(
        "this needs a key: send one as `Authorization: Bearer <key>` or `x-api-key: <key>`; `workbench keys create` on "
        "the server's machine makes one"
    )


async def authenticated(door: Door, headers: Headers) -> Caller:
    """The caller.

    Raises:
        Unauthenticated: no key, or one that is not or no more good.
    """
    return await door.service.access.authenticate(presented(headers))


async def check_still_good(visit: Visit) -> None:
    """For what takes long.

    Raises:
        Unauthenticated: the key was revoked meanwhile, or has expired.
    """
    # BARRIER: who was shut out would go on reading; held by tests/server/test_refusals.py.
    if not await visit.door.service.access.still_good(visit.caller):
        raise Unauthenticated("the key was revoked meanwhile, or has expired; use another one")


def require(caller: Caller, scope: Scope) -> None:
    """Raises: Denied if the key has not the scope."""
    # BARRIER: a key for one thing would do another; held by tests/server/test_refusals.py.
    if not caller.may(scope):
        has = ", ".join(sorted(caller.scopes)) or "none"
        raise Denied(
            f"this needs a key with the scope `{scope}`, and yours has: {has}; `workbench keys create --scope {scope}` "
            "makes one",
            {"scope": scope},
        )


def _require_key(caller: Caller, what: str) -> None:
    # BARRIER: who was given one session would reach others of its project; held by tests/server/test_refusals.py.
    if caller.session is not None:
        raise Denied(
            f"a token of a session cannot {what}; use a key of the project for it", {"session": caller.session}
        )


def require_session(caller: Caller, session: str) -> None:
    """Raises: Denied if it is a token of another."""
    # BARRIER: as above; held by tests/server/test_refusals.py.
    if caller.session is not None and caller.session != session:
        raise Denied(
            f"this token is for session {caller.session!r} only; make one for {session!r} by "
            f"POST /v1/sessions/{session}/tokens with a key, or use the key",
            {"session": caller.session},
        )


def _at_the_door(request: Request) -> tuple[Door, Note, Caller]:
    note: Note = request.scope["workbench.note"]
    assert note.caller is not None, "the front lets nobody in here without a key"
    if not request.scope["path"].startswith(API):
        # SDKs of other ages send what we do not know.
        check_question(request)
    return request.app.state.door, note, note.caller


def _session_visit(request: Request, session: str) -> SessionVisit:
    door, note, caller = _at_the_door(request)
    note.session = session
    require(caller, Scope.SESSIONS)
    require_session(caller, session)
    return SessionVisit(
        door=door,
        note=note,
        caller=caller,
        workbench=door.service.workbench(caller.project),
        session=SessionId(session),
    )


def _visit(request: Request, scope: Scope) -> Visit:
    door, note, caller = _at_the_door(request)
    _require_key(caller, "do this")
    require(caller, scope)
    return Visit(door=door, note=note, caller=caller, workbench=door.service.workbench(caller.project))


async def in_session(request: Request, session_id: SessionPath) -> SessionVisit:
    """For what a session's token may do as well."""
    return _session_visit(request, session_id)


async def owning_session(request: Request, session_id: SessionPath) -> SessionVisit:
    """For what changes a session's cost, ends it, or reaches beyond it."""
    visit = _session_visit(request, session_id)
    _require_key(visit.caller, "change its size, branch it, make or remove contexts, make tokens or delete it")
    return visit


async def in_project(request: Request) -> Visit:
    """For sessions of the project."""
    return _visit(request, Scope.SESSIONS)


async def administering(request: Request) -> Visit:
    """For keys, users and the audit."""
    return _visit(request, Scope.ADMIN)


async def anyone(request: Request) -> Visit:
    """For what the core decides by itself."""
    door, note, caller = _at_the_door(request)
    return Visit(door=door, note=note, caller=caller, workbench=door.service.workbench(caller.project))


Anyone = Annotated[Visit, Depends(anyone)]
InSession = Annotated[SessionVisit, Depends(in_session)]
OwningSession = Annotated[SessionVisit, Depends(owning_session)]
InProject = Annotated[Visit, Depends(in_project)]
Administering = Annotated[Visit, Depends(administering)]
