"""How a cell or command comes to its end: the record gets its result, or the reason why there is none.

    pending --the host has its result--> ended        pending --the host says that it never began--> failed
       |
       `--nobody has it--> who sent it may be about to send it elsewhere: it is given a moment, and looked at again
             the sandbox is gone      -> ended, lost
             it had ended, is dropped -> ended, lost
             it never came            -> failed, once the host has promised not to take it any more
             it never began there     -> failed; and its idempotency key is free again, as in all that never began and
                                         that nobody was told of

Whoever reads a pending record asks for its end, so that nothing is lost with the process that had waited for it. The
first end that is written stays, and one that was concluded from a sandbox is not written once the cell has left it.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.contracts.clock import Clock
from workbench.contracts.host import SandboxHost, gone_reason, never_began, sandbox_gone, was_dropped
from workbench.contracts.storage import CellStore, SessionStore
from workbench.core.languages import Languages
from workbench.core.places import Places
from workbench.core.work import NOWHERE, WAIT_S, End, address_of, lost, wait
from workbench.errors import (
    Conflict,
    HostIncompatible,
    HostUnavailable,
    NotFound,
    SandboxUnavailable,
    StoreUnavailable,
    WorkbenchError,
)
from workbench.model.execution import MemoryState, Outcome, Receipt
from workbench.model.records import CellRecord, CellStatus, Problem
from workbench.model.session import Session

# For whoever sent it to send it elsewhere, or to write its end.
MOMENT_S = 1.0
# As long as the way from the record to the host may take at all; the promise of the host holds for later ones.
_ON_ITS_WAY_S = 10.0


class Ends:
    """Of the cells and commands of one project."""

    def __init__(
        self,
        host: SandboxHost,
        sessions: SessionStore,
        cells: CellStore,
        places: Places,
        clock: Clock,
        languages: Languages,
    ) -> None:
        self._host = host
        self._sessions = sessions
        self._cells = cells
        self._places = places
        self._clock = clock
        self._languages = languages

    async def settled(self, session: Session, record: CellRecord, result: End, *, told: bool) -> CellRecord:
        """The record with its result; what the receipt says is kept before.

        `told` if the caller gets the result in hand: then the next memory need not tell a loss again.
        """
        # Beside all that follows: nobody waits for it.
        self._places.save_soon(session)
        result = self._languages.receipted(session, result)
        if session.sandbox == record.sandbox:
            # Else others have moved on, to an epoch of their own.
            try:
                result = await self._kept(session, record, result, told=told)
            except StoreUnavailable:
                # Not taken away from who has it in hand. Who asks later finds it at the host, and keeps all of it.
                return self._in_hand(record, result)
        return await self._finished(record, result)

    async def _kept(self, session: Session, record: CellRecord, result: End, *, told: bool) -> End:
        receipt = result.receipt
        if result.outcome is Outcome.LOST and (reason := await self._places.gone(session)) is not None:
            moved = await self._places.lost(session, reason, told=receipt if told else None, but=record.id)
            told_now = replace(receipt, epoch=moved.epoch, state=MemoryState.LOST, reason=receipt.reason or reason)
            return replace(result, receipt=told_now)
        await self._places.settle(session, receipt)
        return result

    async def failed(self, record: CellRecord, problem: WorkbenchError) -> CellRecord:
        """The record of something that never began."""
        return await self._finished(record, Problem.of(problem))

    async def _finished(self, record: CellRecord, end: End | Problem, *, free_key: bool = False) -> CellRecord:
        at = self._clock.now_iso()
        try:
            kept = await self._cells.finish(
                record.session, record.id, at, end, sandbox=record.sandbox, free_key=free_key
            )
        except StoreUnavailable:
            # It has its end whatever the store can do, and who asks later finds it at the host.
            kept = None
        return kept if kept is not None else self._in_hand(record, end)

    def _in_hand(self, record: CellRecord, end: End | Problem) -> CellRecord:
        """As it is, although it could not be written down."""
        at = self._clock.now_iso()
        if isinstance(end, Problem):
            return replace(record, status=CellStatus.FAILED, ended_at=at, problem=end)
        return replace(record, status=CellStatus.ENDED, ended_at=at, result=end)

    async def unseen(self, session: Session, record: CellRecord, problem: WorkbenchError) -> CellRecord:
        """For who sent it and waited: its place failed, and nobody saw its end."""
        if not isinstance(problem, HostUnavailable):
            return await self.settled(session, record, _lost(session, record, problem), told=True)
        # A host that does not answer may still be at it: nothing is written down, and who asks later may learn more.
        return self._in_hand(record, _lost(session, record, problem))

    async def awaited(self, record: CellRecord, wait_s: float) -> CellRecord:
        """As it is, or at its end if that comes within `wait_s`.

        Raises:
            HostUnavailable: the host does not answer, so that it cannot be waited for; without a wait the record is
                given as it is.
        """
        left_s = wait_s
        while record.status is CellStatus.PENDING:
            try:
                record, missing = await self.asked(record, left_s)
                if missing is not None:
                    await self._clock.pause(MOMENT_S)
                    record = await self.concluded(record)
            except (HostUnavailable, HostIncompatible):
                if wait_s:
                    raise
                return record
            left_s -= MOMENT_S if missing is not None else min(left_s, WAIT_S)
            if left_s <= 0:
                break
        return record

    async def asked(self, record: CellRecord, wait_s: float) -> tuple[CellRecord, WorkbenchError | None]:
        """The record after its host was asked; and why it is not there, if it is not.

        Raises:
            HostUnavailable: the host does not answer.
        """
        if record.sandbox == NOWHERE:
            return record, _not_begun(record)
        try:
            result = await wait(self._host, record, wait_s)
        except (HostUnavailable, HostIncompatible):
            raise
        except WorkbenchError as problem:
            if isinstance(problem, NotFound) or gone_reason(problem) is not None:
                return record, problem
            return await self.failed(record, problem), None
        if result is None:
            return record, None
        try:
            session = await self._sessions.get(record.session)
        except NotFound:
            return await self._finished(record, result), None
        return await self.settled(session, record, result, told=False), None

    async def concluded(self, seen: CellRecord) -> CellRecord:
        """For one that was not there a moment ago. As it is, if somebody has gone on with it.

        Raises:
            NotFound: it is gone with its session.
            HostUnavailable: the host does not answer.
        """
        record = await self._cells.get(seen.session, seen.id)
        if record.status is not CellStatus.PENDING or record.sandbox != seen.sandbox:
            return record
        record, missing = await self.asked(record, 0.0)
        if missing is None:
            return record
        session = await self._sessions.get(record.session)
        if was_dropped(missing):
            return await self.settled(session, record, _lost(session, record, missing), told=False)
        if record.created_at > self._clock.after(-_ON_ITS_WAY_S):
            # Whoever sent it may be at it: about to send it, or to write down that it goes elsewhere.
            return record
        if gone_reason(missing) is None and not never_began(missing):
            return await self._never_came(record)
        not_begun = session.sandbox == record.sandbox and not session.begun
        if never_began(missing) or not_begun:
            return await self._never_ran(record, missing)
        return await self.settled(session, record, _lost(session, record, missing), told=False)

    async def _never_came(self, record: CellRecord) -> CellRecord:
        """Who wrote it down was ended before it was sent, or is slow."""
        try:
            # From here on it cannot come any more, however slow its sender is.
            await self._host.forget_cell(address_of(record))
        except Conflict:
            # It came just now.
            return record
        except SandboxUnavailable as problem:
            if gone_reason(problem) is None:
                raise
        return await self._never_ran(record, _never_sent(record))

    async def _never_ran(self, record: CellRecord, problem: WorkbenchError) -> CellRecord:
        """Whoever sent it is not there to be told: with the same idempotency key it can be sent once more."""
        return await self._finished(record, Problem.of(problem), free_key=True)


_ENDED = (
    "The sandbox is gone: {}. Variables, background processes and files outside /mnt/files are lost, and what was "
    "printed last may be missing; /mnt/files is as it was left. Whether everything was done is not known: look at "
    "/mnt/files, then run again what is needed. The next call gets a new sandbox."
)
_UNKNOWN = (
    "The workbench host of this machine does not answer ({}), so how it ended, or whether it ended, is not known. "
    "`workbench host status` tells how the host is."
)
_DROPPED = (
    "The workbench host keeps nothing of it any more ({}), so how it ended is not known: look at what it was to do, "
    "then run again what is needed."
)


def _lost(session: Session, record: CellRecord, problem: WorkbenchError) -> End:
    """The result of something whose end nobody saw."""
    if (reason := gone_reason(problem)) is not None:
        return lost(record, _ENDED.format(reason), Receipt(epoch=session.epoch, state=MemoryState.LOST, reason=reason))
    words = _UNKNOWN if isinstance(problem, HostUnavailable) else _DROPPED
    unknown = f"not known: {problem.message}"
    return lost(
        record, words.format(problem.message), Receipt(epoch=session.epoch, state=MemoryState.LOST, reason=unknown)
    )


def _never_sent(record: CellRecord) -> HostUnavailable:
    return HostUnavailable(
        f"{record.kind} {record.id} was never sent: the process that had accepted it ended before. Run it again",
        {"cell": record.id},
    )


def _not_begun(record: CellRecord) -> SandboxUnavailable:
    nowhere = sandbox_gone(record.sandbox, "it ended before", began=False)
    return SandboxUnavailable(
        f"{record.kind} {record.id} never began: the sandbox that it was sent to ended before its turn. Run it again",
        nowhere.context | {"cell": record.id},
    )
