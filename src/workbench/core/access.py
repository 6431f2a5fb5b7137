"""Who may come in, and for what: keys of projects, tokens for one session, and the book of who did what."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import AsyncIterator

from workbench.contracts.clock import Clock
from workbench.contracts.storage import Records
from workbench.core import requests
from workbench.core.places import usable
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, Unauthenticated, WorkbenchError
from workbench.model.access import Caller, Key, NewKey, Scope, digest_of, new_secret, taken_apart
from workbench.model.access import presented as as_sent
from workbench.model.ids import DEFAULT_PROJECT, KeyId, MountId, ProjectId, SessionId, new_key_id, project_id
from workbench.model.records import AuditEntry

# Ten years for a key, a month for a token: longer ones are a mistake of units.
_MOST_KEY_S, _MOST_TOKEN_S, _MOST_OVERLAP_S = 3660 * 86_400, 30 * 86_400, 90 * 86_400
_MOST_LABEL = 200
_MOST_ENTRIES = 1000
_FIRST = "the first key"


class Access:
    """Keys and tokens of all projects. Every method may raise `StoreUnavailable`."""

    def __init__(self, *, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    async def authenticate(self, presented: str) -> Caller:
        """Who sent this. The store is asked each time: a key that was revoked is no good from that moment on.

        Raises:
            Unauthenticated: it is not or no more good.
        """
        name, secret = taken_apart(presented)
        try:
            key = await self._records.keys.get(name)
        except NotFound:
            raise _unknown() from None
        # BARRIER: whoever gets past here owns a project's sessions; held by tests/unit/core/test_access.py.
        if not key.accepts(secret) or as_sent(key, secret) != presented:
            raise _unknown()
        if not key.valid_at(self._clock.now_iso()):
            raise _no_more_good(key)
        return Caller(project=key.project, key=key.id, scopes=key.scopes, session=key.session)

    async def still_good(self, caller: Caller) -> bool:
        """Whether the key that the caller came with could still be used now; for what goes on for long."""
        if caller.key is None:
            return True
        try:
            key = await self._records.keys.get(caller.key)
        except NotFound:
            return False
        return key.valid_at(self._clock.now_iso())

    async def create_key(self, request: requests.CreateKey) -> NewKey:
        """A new key of a project: the owner of the data folder names any, a key its own.

        Raises:
            Denied: the caller is no admin, or of another project, or has not all of these scopes itself.
            InvalidRequest: no scopes, or a lifetime or label that cannot be.
        """
        async with self._noted(request.by, "key.create", project=request.project) as told:
            _check_admin(request.by)
            _check_new(request)
            expires = "" if request.lifetime_s is None else self._clock.after(request.lifetime_s)
            made = self._made(project_id(request.project), request.label, request.scopes, expires)
            await self._records.keys.add(made.key)
            told.append(f"{made.key.id} for {_named(made.key.scopes)}")
        return made

    async def list_keys(self, request: requests.ListKeys) -> requests.KeyPage:
        """Those of the caller's project, or all for the owner of the data folder; without tokens.

        Raises:
            Denied: the caller is no admin.
        """
        _check_admin(request.by)
        project = None if request.by.key is None else request.by.project
        return requests.KeyPage(keys=await self._records.keys.list(project))

    async def revoke_key(self, request: requests.RevokeKey) -> Key:
        """Of a key or a token; nothing happens if it is no good already. Tokens need no admin.

        Raises:
            NotFound: there is none in the caller's project.
            Denied: the caller is no admin, or a token, which may revoke only itself.
        """
        key = await self._found(request.by, request.key)
        async with self._noted(request.by, "key.revoke", project=key.project) as told:
            if key.session is None:
                _check_admin(request.by)
            elif request.by.key != key.id:
                _check_no_token(request.by)
            await self._records.keys.revoke(key.id, self._clock.now_iso())
            told.append(key.id)
            return await self._records.keys.get(key.id)

    async def rotate_key(self, request: requests.RotateKey) -> NewKey:
        """A new key with the same project, label, scopes and lifetime; the old one stays good for the overlap.

        Raises:
            NotFound: there is none in the caller's project.
            Denied: the caller is no admin.
            Conflict: it was revoked, or rotated before.
            InvalidRequest: it is a token, or the overlap cannot be.
        """
        old = await self._found(request.by, request.key)
        async with self._noted(request.by, "key.rotate", project=old.project) as told:
            _check_admin(request.by)
            _check_seconds("an overlap", request.overlap_s, 0, _MOST_OVERLAP_S)
            if old.session is not None:
                raise InvalidRequest("a token is not rotated: make a new one for its session", {"key": old.id})
            expires = self._clock.after(_lifetime_s(old)) if old.expires_at else ""
            made = self._made(old.project, old.label, old.scopes, expires)
            if not await self._records.keys.rotate(old.id, made.key, self._clock.after(request.overlap_s)):
                raise _not_rotated(old)
            told.append(f"{old.id} to {made.key.id}")
        return made

    async def create_token(self, request: requests.CreateToken) -> NewKey:
        """A token that is good for one session only, and for a while.

        Raises:
            NotFound: no such session in the caller's project.
            Denied: the caller may not use sessions, or is a token itself.
            InvalidRequest: a lifetime that cannot be.
        """
        async with self._noted(request.by, "token.create", session=request.session) as told:
            made, _ = await self._new_token(request)
            told.append(made.key.id)
        return made

    async def create_local_sandbox(self, request: requests.CreateLocalSandbox) -> requests.LocalSandbox:
        """A token for a box that the caller runs, in place of the sandbox that this session does not have here.

        Raises:
            NotFound: no such session in the caller's project.
            Denied: the caller may not use sessions, or is a token itself.
            Conflict: the session's sandbox is on.
            InvalidRequest: a lifetime that cannot be.
        """
        wanted = requests.CreateToken(by=request.by, session=request.session, lifetime_s=request.lifetime_s)
        async with self._noted(request.by, "local_sandbox.create", session=request.session) as told:
            token, mount = await self._new_token(wanted, without_sandbox=True)
            told.append(token.key.id)
        return requests.LocalSandbox(token=token, mount=mount)

    async def _new_token(
        self, request: requests.CreateToken, *, without_sandbox: bool = False
    ) -> tuple[NewKey, MountId]:
        """It, and the files of its session."""
        by = request.by
        # BARRIER: a token that could make tokens would never expire; held by tests/unit/core/test_access.py.
        _check_no_token(by)
        _check_seconds("a token's lifetime", request.lifetime_s, 1, _MOST_TOKEN_S)
        session = usable(await self._records.sessions(by.project).get(request.session))
        if without_sandbox and session.spec.config.sandbox.enable:
            raise _has_sandbox(session.spec.id)
        # BARRIER: nobody gives away more than they have; held by tests/unit/core/test_access.py.
        scopes = frozenset({Scope.SESSIONS, *([Scope.PROXY] if by.may(Scope.PROXY) else [])})
        made = self._made(by.project, "", scopes, self._clock.after(request.lifetime_s), session.spec.id)
        await self._records.keys.add(made.key)
        await self._check_same_session(made.key, session.created_at)
        return made, session.mount

    async def _check_same_session(self, token: Key, created_at: str) -> None:
        """Tokens go with their session; one for a later session of the same name must not be given out."""
        assert token.session is not None
        try:
            if (await self._records.sessions(token.project).get(token.session)).created_at == created_at:
                return
        except NotFound:
            pass
        await self._records.keys.revoke(token.id, self._clock.now_iso())
        raise NotFound(f"session {token.session!r} was deleted meanwhile", {"session": token.session})

    async def first_key(self) -> NewKey | None:
        """A key for everything in the default project, if there is no key at all, be it good or not."""
        made = self._made(DEFAULT_PROJECT, _FIRST, frozenset(Scope), "")
        if not await self._records.keys.add_first(made.key):
            return None
        await self.note(Caller(), "key.create", detail=f"{made.key.id}, {_FIRST}")
        return made

    async def note(
        self,
        caller: Caller,
        action: str,
        *,
        session: SessionId | None = None,
        user: str = "",
        outcome: str = "ok",
        detail: str = "",
    ) -> None:
        """Write down that it was done, or refused. Never what was in it."""
        await self._records.audit.add(
            AuditEntry(
                at=self._clock.now_iso(),
                project=caller.project,
                key=caller.key,
                session=session,
                user=user,
                action=action,
                outcome=outcome,
                detail=detail,
            )
        )

    async def list_audit(self, request: requests.ListAudit) -> tuple[AuditEntry, ...]:
        """Of the caller's project.

        Raises:
            Denied: the caller is no admin.
            InvalidRequest: a page that cannot be.
        """
        _check_admin(request.by)
        if not 1 <= request.limit <= _MOST_ENTRIES:
            raise InvalidRequest(f"a page has 1 to {_MOST_ENTRIES} entries, not {request.limit}")
        return await self._records.audit.list(
            request.by.project, before=request.before, session=request.session, limit=request.limit
        )

    @contextlib.asynccontextmanager
    async def _noted(
        self, by: Caller, action: str, *, project: ProjectId | None = None, session: SessionId | None = None
    ) -> AsyncIterator[list[str]]:
        """Note how it went, with the details that are told; what the owner does is noted where it was done."""
        told: list[str] = []
        where = by if by.key is not None or project is None else Caller(project=project)
        try:
            yield told
        except WorkbenchError as problem:
            with contextlib.suppress(WorkbenchError):
                await self.note(where, action, session=session, outcome=problem.code)
            raise
        await self.note(where, action, session=session, detail=" ".join(told))

    async def _found(self, by: Caller, name: KeyId) -> Key:
        key = await self._records.keys.get(name)
        # BARRIER: another project's key does not exist; held by tests/unit/core/test_access.py.
        if by.key is not None and key.project != by.project:
            raise NotFound(
                f"no key {name!r} in project {by.project!r}; `workbench keys list` shows them", {"key": name}
            )
        return key

    def _made(
        self, project: ProjectId, label: str, scopes: frozenset[Scope], expires: str, session: SessionId | None = None
    ) -> NewKey:
        secret = new_secret()
        key = Key(
            id=new_key_id(),
            project=project,
            label=label,
            scopes=scopes,
            session=session,
            digest=digest_of(secret),
            created_at=self._clock.now_iso(),
            expires_at=expires,
        )
        return NewKey(key=key, presented=as_sent(key, secret))


def _check_admin(by: Caller) -> None:
    if not by.may(Scope.ADMIN):
        raise Denied("this needs a key with the scope admin", {"scope": Scope.ADMIN})


def _check_no_token(by: Caller) -> None:
    if by.session is not None:
        raise Denied("a token is good for what runs in its session; use a key of the project for this")
    if not by.may(Scope.SESSIONS):
        raise Denied("this needs a key with the scope sessions", {"scope": Scope.SESSIONS})


def _check_new(request: requests.CreateKey) -> None:
    by = request.by
    if by.key is not None and request.project != by.project:
        raise Denied(f"a key of project {by.project!r} makes keys of that project only", {"project": request.project})
    # BARRIER: nobody gives away more than they have; held by tests/unit/core/test_access.py.
    if missing := [scope for scope in request.scopes if not by.may(scope)]:
        raise Denied(f"a key cannot give what it has not: {_named(frozenset(missing))}")
    if not request.scopes:
        raise InvalidRequest(f"a key needs a scope: {_named(frozenset(Scope))}")
    if len(request.label) > _MOST_LABEL or not request.label.isprintable():
        raise InvalidRequest(f"a label is one line of at most {_MOST_LABEL} characters")
    if request.lifetime_s is not None:
        _check_seconds("a key's lifetime", request.lifetime_s, 1, _MOST_KEY_S)


def _check_seconds(what: str, seconds: int, least: int, most: int) -> None:
    if not least <= seconds <= most:
        raise InvalidRequest(f"{what} is {least} to {most} seconds, not {seconds}")


def _named(scopes: frozenset[Scope]) -> str:
    return ", ".join(sorted(scopes))


def _lifetime_s(key: Key) -> float:
    made, end = (datetime.datetime.fromisoformat(text) for text in (key.created_at, key.expires_at))
    return (end - made).total_seconds()


def _unknown() -> Unauthenticated:
    """The same for a wrong name and a wrong secret: which of both it was helps only those who guess."""
    return Unauthenticated("no such key; `workbench keys create` makes one")


def _no_more_good(key: Key) -> Unauthenticated:
    what = "key" if key.session is None else "token"
    if key.revoked_at:
        return Unauthenticated(f"{what} {key.id} was revoked; use another one", {"key": key.id})
    if key.replaced_by is not None:
        return Unauthenticated(f"key {key.id} was rotated: use {key.replaced_by} in its place", {"key": key.id})
    return Unauthenticated(f"{what} {key.id} has expired; make a new one", {"key": key.id})


def _has_sandbox(session: SessionId) -> Conflict:
    return Conflict(
        f"session {session!r} has its sandbox on this server, and cannot run in a box of yours as well: make a session "
        'with {"sandbox": {"enable": false}} (`workbench sessions create --no-sandbox`), or switch the sandbox of this '
        "one off",
        {"session": session},
    )


def _not_rotated(key: Key) -> Conflict:
    why = f"was rotated to {key.replaced_by} before" if key.replaced_by is not None else "is revoked"
    return Conflict(f"key {key.id} {why}: rotate that one, or make a new key", {"key": key.id})
