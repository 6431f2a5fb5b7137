"""The story of a session's sandboxes: the record names the one to use, whoever comes first makes it, and a loss is
written down before anyone is told.

    (X, not begun) --make X, start its kernel--> (X, begun) --X is gone--> (Y, not begun, next epoch, why)

Every arrow is one compare-and-set in the store, so that any number of processes can follow them at once: who loses a
race goes on with what the winner wrote. Making X twice is making it once, because X is a name that we chose.

A session and its branches, a family, are in the same sandbox, each with a kernel of its own. The first arrow is each
one's own: X is made by whoever comes first, and every other finds it and starts its kernel there. Who finds that X is
gone for one that had begun has noticed a loss, and does not make X anew under that one; should one find its kernel
missing in a living X nevertheless, X was made anew, and is gone all the same.

The second arrow takes them all, in one step: whoever notices the loss moves the whole family to the same Y, also those
that had not begun and those that are being deleted, so that they meet again there, around the same files. Nobody is
asked and nobody can be in the way. Who comes second with the same loss finds its own record changed, and goes on there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from workbench.contracts.clock import Clock
from workbench.contracts.host import (
    KernelOrder,
    SandboxHost,
    SandboxOrder,
    SandboxState,
    gone_reason,
    never_began,
    sandbox_gone,
)
from workbench.contracts.mounts import MountFolders
from workbench.contracts.storage import CellStore, SessionStore
from workbench.core.languages import is_python
from workbench.core.warming import warm_for_code
from workbench.core.work import NOWHERE, End, kernel_of, wait
from workbench.errors import (
    Conflict,
    HostIncompatible,
    HostUnavailable,
    KernelUnavailable,
    NotFound,
    SandboxOff,
    SandboxUnavailable,
    WorkbenchError,
)
from workbench.model.corrections import DEFAULT_SWITCHES, DEFAULT_TEXT, VARIABLE, switched, text_of
from workbench.model.execution import MemoryState, Receipt
from workbench.model.ids import CellId, SandboxId, SessionId, new_sandbox_id
from workbench.model.records import CellRecord, Problem
from workbench.model.session import WITHOUT_TOOLS, Session

# A machine on which sandboxes end before their first answer will not do better the fourth time.
ATTEMPTS = 3
_PAUSE_S = 0.02
# As long as a host takes at most to make one, and then some; the mount of one that ends is free much sooner.
_MAKING_S = 150.0
_FREEING_S = 15.0
SWITCHED_OFF = "its sandbox was switched off"
_MADE_ANEW = "the workbench host that it lived in has ended"


class Places:
    """Where sessions live."""

    def __init__(
        self,
        host: SandboxHost,
        store: SessionStore,
        cells: CellStore,
        mounts: MountFolders,
        clock: Clock,
        corrections: str = DEFAULT_TEXT,
    ) -> None:
        self._corrections = corrections
        """the switches that are on, unless a session says otherwise"""
        self._host = host
        self._store = store
        self._cells = cells
        self._mounts = mounts
        self._clock = clock

    async def use(self, session: SessionId) -> Session:
        """The record, noted as used.

        Raises:
            NotFound: there is none.
            Conflict: it is being deleted.
        """
        return usable(await self._store.use(session, self._clock.now_iso()))

    async def enter(self, session: SessionId) -> Session:
        """The same, for what happens in its sandbox.

        Raises:
            SandboxOff: it is configured to have none.
        """
        return with_sandbox(await self.use(session))

    async def ready(self, session: Session, *, kernel: bool = True, code: str = "") -> Session:
        """The session with a sandbox and a kernel, as far as the record knows.

        Without need of a `kernel` one that does not come up, say for its start-up code, is left for later. A sandbox
        that has to be made is made for the `code` that is about to run in it.
        """
        for _ in range(ATTEMPTS):
            if with_sandbox(session).begun:
                return session
            try:
                await self.make(session, kernel=kernel, code=code)
            except SandboxUnavailable as problem:
                if (reason := gone_reason(problem)) is None:
                    raise
                session = await self.lost(session, reason)
            else:
                session = await self._begin(session)
        if with_sandbox(session).begun:
            return session
        raise never_stays(session)

    async def make(self, session: Session, *, kernel: bool = True, code: str = "") -> None:
        """What the record names, or find it made; the record is left to the caller.

        Raises:
            SandboxUnavailable: with a `gone_reason` if it ended, or had ended before for another of the family.
        """
        await self._check_family(session)
        await self._create(session, warm_for_code(session.spec.start_up, code) if is_python(session) else "")
        # Again: its host may have ended while we asked, and the next one makes what the last one had.
        await self._check_family(session)
        order = KernelOrder(
            at=kernel_of(session),
            epoch=session.epoch,
            working_folder=session.spec.working_folder,
            start_up=session.spec.start_up,
            lost_before=session.last_loss,
            snapshots=session.spec.snapshots,
            runtime=session.spec.runtime,
        )
        try:
            await self._host.start_kernel(order)
        except KernelUnavailable:
            if kernel:
                raise

    async def _check_family(self, session: Session) -> None:
        """Those that have begun must be where their records say, be it the session itself for another process.

        A sandbox that was lost before we ever were in it would be made anew under its name, and never be noticed as
        lost by those who had something in it.
        """
        for one in await self._store.family(session.mount):
            if not one.begun or one.ending or one.sandbox != session.sandbox:
                continue
            try:
                await self._host.describe_kernel(kernel_of(one))
            except NotFound:
                if await self._still_begun(one):
                    raise sandbox_gone(session.sandbox, _MADE_ANEW) from None

    async def _still_begun(self, session: Session) -> bool:
        """And not deleted, which ends a kernel but is written down before."""
        try:
            now = await self._store.get(session.spec.id)
        except NotFound:
            return False
        return now.begun and not now.ending and now.sandbox == session.sandbox and now.created_at == session.created_at

    async def _create(self, session: Session, warm: str) -> None:
        found = await self._made_or_found(session, warm)
        if found.tier != session.spec.tier.name:
            # It was ordered before the session got another tier.
            await self._host.change_tier(session.sandbox, session.spec.tier)

    async def _made_or_found(self, session: Session, warm: str) -> SandboxState:
        order = SandboxOrder(
            sandbox=session.sandbox,
            tier=session.spec.tier,
            mount=session.mount,
            env=self._environment(session),
            warm=warm,
            runtime=session.spec.runtime,
        )
        waited_s = 0.0
        await self._mounts.prepare(session.mount)
        while True:
            try:
                return await self._host.create_sandbox(order)
            except Conflict as conflict:
                found = await self._found(session)
                if found is not None and found.gone:
                    raise sandbox_gone(session.sandbox, found.gone) from conflict
                if found is not None:
                    return found
                # Someone else has it made just now, or its predecessor is on its way out.
                if waited_s >= (_FREEING_S if "mount" in conflict.context else _MAKING_S):
                    raise
            await self._clock.pause(_PAUSE_S)
            waited_s += _PAUSE_S

    def _environment(self, session: Session) -> dict[str, str]:
        switches = session.spec.config.sandbox
        env = dict(session.spec.env)
        if not switches.tool_execution:
            env |= WITHOUT_TOOLS
        on = switched(self._corrections, switches.corrections)
        if on != DEFAULT_SWITCHES:
            env[VARIABLE] = text_of(on)
        return env

    async def _found(self, session: Session) -> SandboxState | None:
        try:
            return await self._host.describe_sandbox(session.sandbox)
        except SandboxUnavailable as problem:
            if gone_reason(problem) is None:
                raise
            return None

    async def _begin(self, session: Session) -> Session:
        begun = replace(session, begun=True)
        if await self._store.replace(session, begun):
            return begun
        try:
            now = usable(await self._store.get(session.spec.id))
        except (NotFound, Conflict):
            await self.leave(session)
            raise
        if now.sandbox != session.sandbox:
            # Lost and closed while we were at it: what we made was made anew, and stands in the way of the next one.
            await self.leave(session)
        elif not now.spec.config.sandbox.enable:
            # Switched off meanwhile, by somebody who saw nothing of it.
            await self._host.close_sandbox(session.sandbox)
        elif now.spec.snapshots != session.spec.snapshots:
            # Switched while there was no kernel to tell, but one that we had ordered.
            await self._host.set_snapshots(kernel_of(now), on=now.spec.snapshots)
        return now

    async def leave(self, session: Session) -> None:
        """End what was made for a session that is not there any more: its kernel, and the sandbox and the files as far
        as no other of its family is.
        """
        family = await self._store.family(session.mount)
        here = [one for one in family if one.sandbox == session.sandbox]
        if any(not one.ending for one in here):
            await self._host.end_kernel(kernel_of(session))
            return
        await self._host.close_sandbox(session.sandbox)
        if len(here) == len(family):
            await self._mounts.remove(session.mount)

    def save_soon(self, session: Session) -> None:
        """What has run may have written files: where they have to be saved, that begins."""
        self._mounts.save_soon(session.mount)

    async def gone(self, session: Session) -> str | None:
        """Why its sandbox is gone, if it is; None also if nobody can tell."""
        try:
            return (await self._host.describe_sandbox(session.sandbox)).gone or None
        except WorkbenchError as problem:
            return gone_reason(problem)

    async def lost(
        self,
        session: Session,
        reason: str,
        *,
        told: Receipt | None = None,
        but: CellId | None = None,
        host_needed: bool = False,
    ) -> Session:
        """Write down that its sandbox is gone, and choose the next, for its whole family; the record as it then is.

        `told` is the receipt that is about to say so: the next memory begins at its epoch, and need not say it again.
        `but` is the cell whose end the caller has in hand. With `host_needed` nothing is written down unless the host
        has answered, as what it had may live.

        Raises:
            HostUnavailable: it was needed.
        """
        # Before the record: whoever reads of the next sandbox finds the mount free for it.
        try:
            if await self.take_ends(session.sandbox, but=but):
                session = await self._reread(session)
            await self._host.close_sandbox(session.sandbox)
        except HostUnavailable:
            if host_needed:
                raise
        why = "" if told is not None else reason if session.begun else session.last_loss
        moved = replace(
            session,
            sandbox=new_sandbox_id(),
            begun=False,
            epoch=max(session.epoch + 1, told.epoch if told is not None else 0),
            last_loss=why,
        )
        if await self._store.move(session, moved, reason):
            return moved
        try:
            return await self._store.get(session.spec.id)
        except NotFound:
            if told is None:
                raise
            # Deleted meanwhile; what ran in it to this end still has its result.
            return moved

    async def end_kernel(self, session: Session, reason: str) -> Session:
        """End its memory and leave the sandbox to others of its family; the record as it then is."""
        await self._host.end_kernel(kernel_of(session))
        while session.begun:
            ended = replace(session, begun=False, epoch=session.epoch + 1, last_loss=reason)
            session = ended if await self._store.replace(session, ended) else await self._store.get(session.spec.id)
        return session

    async def take_ends(self, sandbox: SandboxId, *, but: CellId | None = None) -> bool:
        """Write down how everything ended that a sandbox still keeps, because it goes with it; whether there was any.

        Raises:
            HostUnavailable: the host does not answer, so that it is to be kept as it is.
        """
        taken = False
        for record in await self._cells.pending_in(sandbox):
            if record.id != but:
                taken = await self._take_end(record) or taken
        return taken

    async def _take_end(self, record: CellRecord) -> bool:
        try:
            end: End | Problem | None = await wait(self._host, record, 0.0)
        except (HostUnavailable, HostIncompatible):
            raise
        except WorkbenchError as problem:
            if never_began(problem):
                # Who sent it may send it on to the next sandbox; nobody calls it lost with this one.
                await self._cells.move(record.session, record.id, NOWHERE)
                return False
            if isinstance(problem, NotFound) or gone_reason(problem) is not None:
                # There is nothing to take.
                return False
            end = Problem.of(problem)
        if end is None:
            return False
        if not isinstance(end, Problem):
            with contextlib.suppress(NotFound):
                await self.settle(await self._store.get(record.session), end.receipt)
        await self._cells.finish(record.session, record.id, self._clock.now_iso(), end, sandbox=record.sandbox)
        return True

    async def _reread(self, session: Session) -> Session:
        """With the epoch that it has by now, if it is still there, and in the same sandbox."""
        try:
            now = await self._store.get(session.spec.id)
        except NotFound:
            return session
        return now if (now.sandbox, now.created_at) == (session.sandbox, session.created_at) else session

    async def without_kernel(self, session: Session) -> Session:
        """For one whose kernel is not where the record says, although the sandbox lives; the record as it then is.

        Another process made a lost sandbox anew before we noticed; or the session was deleted, and that is raised.
        """
        if await self._still_begun(session):
            return await self.lost(session, _MADE_ANEW)
        return usable(await self._store.get(session.spec.id))

    async def settle(self, session: Session, receipt: Receipt) -> None:
        """Keep what a receipt says before it is given to the caller."""
        while receipt.epoch > session.epoch or (receipt.state is MemoryState.LOST and session.last_loss):
            kept = replace(session, epoch=max(session.epoch, receipt.epoch), last_loss="")
            if await self._store.replace(session, kept):
                return
            try:
                now = await self._store.get(session.spec.id)
            except NotFound:
                return
            if now.sandbox != session.sandbox or now.created_at != session.created_at:
                # Others have moved on, to an epoch of their own.
                return
            session = now


def usable(session: Session) -> Session:
    """Itself, unless it is being deleted, or is not there yet."""
    name = session.spec.id
    if session.ending:
        raise Conflict(
            f"session {name!r} is being deleted; delete it again if that does not end, then make it anew",
            {"session": name},
        )
    if session.unfinished:
        raise Conflict(
            f"session {name!r} is being branched from {session.parent!r}; ask again, or delete it if that does not end",
            {"session": name},
        )
    return session


def with_sandbox(session: Session) -> Session:
    """Itself, if it can be used and may have a sandbox."""
    if not usable(session).spec.config.sandbox.enable:
        raise SandboxOff(
            f"session {session.spec.id!r} is configured without a sandbox, so nothing runs in it here: run it in the "
            "box that the session is for, or switch its sandbox on",
            {"session": session.spec.id},
        )
    return session


@contextlib.contextmanager
def unless_gone() -> Iterator[None]:
    """A sandbox that is gone is no error for who only wants to know, or to stop, what is in it."""
    try:
        yield
    except SandboxUnavailable as problem:
        if gone_reason(problem) is None:
            raise


def never_stays(session: Session) -> SandboxUnavailable:
    """For a machine on which nothing lives."""
    return SandboxUnavailable(
        f"sandboxes of session {session.spec.id!r} ended {ATTEMPTS} times before they could be used; "
        "`workbench doctor` and the host's log tell more",
        {"session": session.spec.id},
    )
