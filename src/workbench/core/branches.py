"""Going back, and making one session of another: undo, branches in the same sandbox, copies in a sandbox of their own.

All need a memory that lives. A branch or copy is written down first, as unfinished, so that nobody uses it before its
memory is there, and so that whatever was made for it can be deleted by its name if its maker is ended on the way.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from workbench.contracts.clock import Clock
from workbench.contracts.host import SandboxHost, gone_reason
from workbench.contracts.storage import SessionStore
from workbench.core import requests
from workbench.core.languages import Languages
from workbench.core.places import Places, with_sandbox
from workbench.core.sessions import Sessions, checked_branch
from workbench.core.work import kernel_of
from workbench.errors import Conflict, InvalidRequest, NotFound, SandboxUnavailable, WorkbenchError
from workbench.model.execution import Receipt
from workbench.model.ids import MountId, SessionId, new_kernel_id, new_sandbox_id
from workbench.model.session import MAIN_KERNEL, Session

# No host keeps as many.
_MOST_CELLS = 10_000


class Branches:
    """Sessions whose memory comes from a snapshot, or from another session."""

    def __init__(
        self,
        host: SandboxHost,
        store: SessionStore,
        clock: Clock,
        places: Places,
        sessions: Sessions,
        languages: Languages,
    ) -> None:
        self._host = host
        self._store = store
        self._clock = clock
        self._places = places
        self._sessions = sessions
        self._languages = languages

    async def undo(self, request: requests.UndoCells) -> requests.Undone:
        """The epoch is kept before it is told, as for a restart."""
        if not 1 <= request.cells <= _MOST_CELLS:
            raise InvalidRequest(f"1 to {_MOST_CELLS} cells can be undone, not {request.cells}")
        session = await self._places.enter(request.session)
        self._languages.check_kept(session, "taken back")
        with _memory_needed(session):
            moved = await self._host.undo(kernel_of(session), request.cells)
        await self._places.settle(session, Receipt(epoch=moved.kernel.epoch))
        described = await self._sessions.describe(requests.DescribeSession(session=request.session))
        return requests.Undone(described=described, not_carried=moved.not_carried)

    async def branch(self, request: requests.BranchSession) -> requests.Branched | requests.CopiedSession:
        """One that fails leaves nothing behind."""
        name = checked_branch(request.branch)
        origin = await self._places.enter(request.session)
        self._languages.check_kept(origin, "copied" if request.copy else "branched")
        return await (self._copy(origin, name) if request.copy else self._share(origin, name))

    async def _share(self, origin: Session, name: SessionId) -> requests.Branched:
        while True:
            _check_memory(origin)
            branch = self._sketch(origin, name)
            if await self._store.add_branch(branch, origin):
                break
            origin = with_sandbox(await self._store.get(origin.spec.id))
        async with self._deleted_if_it_fails(branch):
            with _memory_needed(origin):
                moved = await self._host.branch(kernel_of(origin), branch.kernel, branch.epoch)
            opened = await self._open(branch, moved.kernel.epoch)
        return requests.Branched(described=await self._sessions.described(opened), not_carried=moved.not_carried)

    async def _copy(self, origin: Session, name: SessionId) -> requests.CopiedSession:
        copy = replace(
            self._sketch(origin, name),
            mount=MountId(name),
            principal=name,
            kernel=MAIN_KERNEL,
            sandbox=new_sandbox_id(),
        )
        _check_memory(origin)
        await self._store.add(copy)
        async with self._deleted_if_it_fails(copy):
            await self._places.make(copy)
            with _memory_needed(origin), _same_host_needed(copy):
                copied = await self._host.copy_into(kernel_of(origin), kernel_of(copy))
            opened = await self._open(copy, copy.epoch)
        return requests.CopiedSession(
            described=await self._sessions.described(opened),
            carried=copied.carried,
            not_carried=copied.not_carried,
            files_note=copied.files_note,
        )

    def _sketch(self, origin: Session, name: SessionId) -> Session:
        now = self._clock.now_iso()
        return Session(
            spec=replace(origin.spec, id=name),
            created_at=now,
            used_at=now,
            mount=origin.mount,
            principal=origin.principal,
            parent=origin.spec.id,
            kernel=new_kernel_id(),
            sandbox=origin.sandbox,
            unfinished=True,
        )

    async def _open(self, session: Session, epoch: int) -> Session:
        """Let it be used: its memory is there."""
        while True:
            opened = replace(session, begun=True, unfinished=False, epoch=max(session.epoch, epoch))
            if await self._store.replace(session, opened):
                return opened
            now = await self._store.get(session.spec.id)
            if now.created_at != session.created_at or now.ending:
                raise NotFound(
                    f"session {session.spec.id!r} was deleted while it was made", {"session": session.spec.id}
                )
            if now.sandbox != session.sandbox:
                raise _no_memory(session, "the sandbox was lost while it was made")
            session = now

    @contextlib.asynccontextmanager
    async def _deleted_if_it_fails(self, session: Session) -> AsyncIterator[None]:
        """Nobody was told of it; who asks again may use the same name."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(WorkbenchError):
                try:
                    await self._sessions.end(session)
                except NotFound:
                    # Whoever deleted it did not see what was made after that.
                    await self._places.leave(session)
            raise


def _check_memory(session: Session) -> None:
    if not session.begun:
        lost = f"its sandbox is gone: {session.last_loss}" if session.last_loss else "nothing was run in it yet"
        raise _no_memory(session, lost)


@contextlib.contextmanager
def _memory_needed(session: Session) -> Iterator[None]:
    """Say in words of the session that there is none, before or while it is used."""
    _check_memory(session)
    try:
        yield
    except SandboxUnavailable as problem:
        reason = gone_reason(problem)
        if reason is None:
            raise
        raise _no_memory(session, f"its sandbox is gone: {reason}") from problem


@contextlib.contextmanager
def _same_host_needed(copy: Session) -> Iterator[None]:
    try:
        yield
    except NotFound as problem:
        if problem.context.get("sandbox") != copy.sandbox:
            raise
        raise Conflict(
            f"session {copy.parent!r} lives in a host that is being replaced, and new sandboxes are made by its "
            "successor: branch it without a copy, or carry over by files what is needed",
            {"session": str(copy.parent)},
        ) from problem


def _no_memory(session: Session, why: str) -> Conflict:
    return Conflict(
        f"session {session.spec.id!r} has no memory that could be undone, branched or copied: {why}. Files in "
        "/mnt/files are as they were left: run in it what is needed, then ask again",
        {"session": session.spec.id},
    )
