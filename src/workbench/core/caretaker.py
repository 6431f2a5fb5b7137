"""Caretaker: looks after what nobody uses. Idle sandboxes stand still, then end; records that nobody needs are dropped;
cells whose waiting process was killed get their end, and so do sessions whose maker or deleter was.

A family, a session with its branches, shares a sandbox, and is cared for as one: it is as idle as the last of them that
was used, and takes the longest of their limits.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from workbench.contracts.clock import Clock
from workbench.contracts.host import SandboxHost, SandboxState, gone_reason
from workbench.contracts.mounts import MountFolders
from workbench.contracts.storage import Records
from workbench.core.ends import MOMENT_S, Ends
from workbench.core.languages import Languages
from workbench.core.places import SWITCHED_OFF, Places
from workbench.core.sessions import Sessions
from workbench.errors import (
    Conflict,
    HostIncompatible,
    HostUnavailable,
    NotFound,
    SandboxUnavailable,
    StoreUnavailable,
    WorkbenchError,
)
from workbench.model.ids import MountId, ProjectId, SessionId
from workbench.model.records import CellRecord, CellStatus
from workbench.model.session import Session

_PAGE = 100
# Whoever was here a minute ago is likely to come back: short memory is found elsewhere.
_JUST_USED_S = 60
_DAY_S = 24 * 3600
# Nobody takes as long to make or to delete a session, or to begin in one: whoever was at it was ended.
_LEFT_OVER_S = 600
# What is kept for days need not be looked through every minute.
_SWEEP_EVERY_S = 600
# A link for uploading lives a week at most; whoever began with it then has another day to end.
_UPLOAD_S = 8 * _DAY_S
# Of what could not be done: a host that is away fails every session alike.
_MOST_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CarePolicy:
    """What the server does where a session says nothing; 0 is never."""

    freeze_after_s: int = 900
    end_after_s: int = 43_200
    keep_cells_days: int = 30
    keep_audit_days: int = 90
    memory_reserve_percent: int = 10
    """below so much free memory of the machine idle sandboxes are ended, the longest unused first"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one look has done."""

    settled: int = 0
    """cells that have their end now, and had none"""
    frozen: int = 0
    ended: int = 0
    dropped_cells: int = 0
    dropped_audit: int = 0
    dropped_tokens: int = 0
    dropped_uploads: int = 0
    problems: tuple[str, ...] = ()
    """what could not be done, for the log; the next look tries again"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of cells without an end."""

    finished: int
    pending: frozenset[SessionId]
    """sessions in which something waits or runs, as far as is known"""
    problems: tuple[str, ...] = ()
    host_is_away: bool = False
    """it did not answer, and was not asked any further"""


@dataclass(frozen=True, slots=True)
class _Family:
    project: ProjectId
    mount: MountId
    members: tuple[Session, ...]
    used_at: str

    @property
    def one(self) -> Session:
        """Any of those that have something in the sandbox; or any that could have, if none has."""
        living = [one for one in self.members if not one.ending]
        return next((one for one in living if one.begun), living[0])


@dataclass(slots=True)
class _Tally:
    frozen: int = 0
    ended: int = 0
    problems: list[str] = field(default_factory=list)
    idle: list[_Family] = field(default_factory=list)
    """that live on and could be ended"""
    host_is_away: bool = False
    """a host that hangs is waited for once a round"""

    def failed(self, what: str, problem: WorkbenchError) -> None:
        self.problems.append(f"{what}: {problem.message}")
        self.host_is_away = self.host_is_away or isinstance(problem, HostUnavailable)


class Caretaker:
    """Of all projects. One at a time looks; two would do no harm."""

    def __init__(
        self,
        *,
        host: SandboxHost,
        records: Records,
        mounts: MountFolders,
        clock: Clock,
        policy: CarePolicy,
        free_memory_percent: Callable[[], float],
        languages: Languages,
    ) -> None:
        self._host = host
        self._records = records
        self._mounts = mounts
        self._clock = clock
        self._policy = policy
        self._free_memory_percent = free_memory_percent
        self._languages = languages
        self._swept_at = ""

    async def look(self) -> Round:
        """One round over everything. What fails for one session is told, and does not keep it from the others.

        Raises:
            StoreUnavailable: there is nothing to look at.
        """
        settled = await self.settle_pending()
        tally = _Tally(problems=list(settled.problems), host_is_away=settled.host_is_away)
        sweeps = self._swept_at < self._clock.after(-_SWEEP_EVERY_S)
        await self._end_left_over(tally)
        async for family in self._idle_families(settled.pending):
            if tally.host_is_away:
                break
            try:
                await self._care(family, tally)
            except WorkbenchError as problem:
                tally.failed(f"sandbox of {family.mount}", problem)
        await self._make_room(tally)
        tally.problems += self._mounts.retry_saves()
        if sweeps:
            await self._end_unbegun(tally)
        done = Round(
            settled=settled.finished,
            frozen=tally.frozen,
            ended=tally.ended,
            problems=tuple(tally.problems[:_MOST_TOLD]),
        )
        return await self._swept(done) if sweeps else done

    async def _swept(self, done: Round) -> Round:
        """With what is older than it is kept dropped."""
        days, house = self._policy, self._records.house
        self._swept_at = self._clock.now_iso()
        cells, audit = (self._clock.after(-kept * _DAY_S) for kept in (days.keep_cells_days, days.keep_audit_days))
        return replace(
            done,
            dropped_cells=await house.drop_cells_ended_before(cells) if days.keep_cells_days else 0,
            dropped_audit=await house.drop_audit_before(audit) if days.keep_audit_days else 0,
            dropped_uploads=await self._drop_uploads(),
            dropped_tokens=await self._records.keys.remove_tokens_expired_before(self._swept_at),
        )

    async def _drop_uploads(self) -> int:
        with contextlib.suppress(StoreUnavailable):
            return await self._mounts.drop_staged(_UPLOAD_S)
        # An object store that does not answer is told by the saves.
        return 0

    async def settle_pending(self) -> Settled:
        """Ask for the end of every cell that has none: whoever waited for it may have been killed.

        Results that are there are taken first: a sandbox that is noted as lost is closed, with all it still keeps.
        """
        left: list[tuple[ProjectId, CellRecord]] = []
        finished, pending, problems, away = 0, set[SessionId](), list[str](), False
        async for project, record in self._pending():
            if away:
                pending.add(record.session)
                continue
            try:
                now, missing = await self._ends(project).asked(record, 0.0)
            except WorkbenchError as problem:
                pending.add(record.session)
                problems.append(_untold(record, problem))
                away = isinstance(problem, HostUnavailable)
                continue
            if missing is not None:
                # Read again before anything is concluded: its code need not be held.
                left.append((project, replace(record, code="")))
            elif now.status is CellStatus.PENDING:
                pending.add(record.session)
            else:
                finished += 1
        if left:
            await self._clock.pause(MOMENT_S)
        for project, record in left:
            if away:
                pending.add(record.session)
                continue
            try:
                if (await self._ends(project).concluded(record)).status is not CellStatus.PENDING:
                    finished += 1
                else:
                    pending.add(record.session)
            except NotFound:
                # Gone with its session.
                continue
            except WorkbenchError as problem:
                pending.add(record.session)
                problems.append(_untold(record, problem))
                away = isinstance(problem, HostUnavailable)
        return Settled(finished=finished, pending=frozenset(pending), problems=tuple(problems), host_is_away=away)

    async def _pending(self) -> AsyncIterator[tuple[ProjectId, CellRecord]]:
        after = None
        while page := await self._records.house.pending(after, _PAGE):
            for project, record in page:
                yield project, record
            after = page[-1][1].id

    async def _end_left_over(self, tally: _Tally) -> None:
        """Sessions that somebody was ended over: in the making, or in the middle of being deleted."""
        after: SessionId | None = None
        while page := await self._records.house.left_over(self._clock.after(-_LEFT_OVER_S), after, _PAGE):
            for session in page:
                if tally.host_is_away:
                    return
                try:
                    # Gone already, if its deleter is only slow.
                    with contextlib.suppress(NotFound):
                        await self._sessions(session.spec.project).end(session)
                except WorkbenchError as problem:
                    tally.failed(f"session {session.spec.id}, which was not deleted to its end", problem)
            after = page[-1].spec.id

    async def _end_unbegun(self, tally: _Tally) -> None:
        """Sandboxes that were made for sessions which then never began, as their maker was ended: nothing is in them.

        At first of all sessions; from then on of those that were used since.
        """
        after: SessionId | None = None
        since = self._clock.after(-_DAY_S) if self._swept_at else ""
        while page := await self._records.house.unbegun(since, after, _PAGE):
            for session in page:
                if tally.host_is_away:
                    return
                try:
                    if await self._is_unbegun_and_lives(session):
                        family = await self._family(session.spec.project, session.mount, begun=False)
                        if family is not None and self._is_idle_for(family, _LEFT_OVER_S):
                            tally.ended += await self._end(family, "whoever began to use it was ended")
                except WorkbenchError as problem:
                    tally.failed(f"sandbox of {session.mount}", problem)
            after = page[-1].spec.id

    async def _is_unbegun_and_lives(self, session: Session) -> bool:
        if session.used_at >= self._clock.after(-_LEFT_OVER_S):
            return False
        state = await self._described(session)
        return state is not None and not state.gone

    async def _described(self, session: Session) -> SandboxState | None:
        """None if nobody knows it."""
        try:
            return await self._host.describe_sandbox(session.sandbox)
        except SandboxUnavailable as problem:
            if gone_reason(problem) is None:
                raise
            return None

    async def _idle_families(self, pending: frozenset[SessionId]) -> AsyncIterator[_Family]:
        """Those with a sandbox in which nothing waits or runs, as far as the records know."""
        after: SessionId | None = None
        seen: set[MountId] = set()
        while page := await self._records.house.begun(after, _PAGE):
            for session in page:
                if session.mount in seen:
                    continue
                seen.add(session.mount)
                # What runs for long, or beside all cells, writes files too.
                self._mounts.save_soon(session.mount)
                family = await self._family(session.spec.project, session.mount)
                if family is not None and not any(one.spec.id in pending for one in family.members):
                    yield family
            after = page[-1].spec.id

    async def _family(self, project: ProjectId, mount: MountId, *, begun: bool = True) -> _Family | None:
        """None if it has no sandbox (or has, if none has `begun` in it), or if one of it is being made."""
        found = await self._records.sessions(project).family(mount)
        members = tuple(one for one in found if not self._is_left_over(one))
        living = [one for one in members if not one.ending]
        if not living or any(one.begun for one in living) != begun or any(one.unfinished for one in living):
            return None
        ended_at = await self._records.cells(project).last_end(tuple(one.spec.id for one in members))
        return _Family(project, mount, members, max(ended_at, *(one.used_at for one in members)))

    def _is_left_over(self, session: Session) -> bool:
        return (session.ending or session.unfinished) and session.used_at < self._clock.after(-_LEFT_OVER_S)

    async def _care(self, family: _Family, tally: _Tally) -> None:
        if not any(one.spec.config.sandbox.enable for one in family.members):
            # BARRIER: what runs in a session that was switched off would go on for hours, if who switched it off was
            # ended before the sandbox was; held by tests/unit/core/test_caretaker.py.
            tally.ended += await self._end(family, SWITCHED_OFF)
            return
        policy = self._policy
        freeze_s = max(_never_is_longest(one.spec.idle.freeze_after_s, policy.freeze_after_s) for one in family.members)
        end_s = max(_never_is_longest(one.spec.idle.end_after_s, policy.end_after_s) for one in family.members)
        if self._is_idle_for(family, min(freeze_s, end_s)):
            family = await self._with_notebooks(family)
        if self._is_idle_for(family, end_s):
            if await self._end(family, f"it was not used for {in_words(end_s)}"):
                tally.ended += 1
                return
        elif self._is_idle_for(family, freeze_s) and await self._freeze(family):
            tally.frozen += 1
        if self._is_idle_for(family, _JUST_USED_S):
            tally.idle.append(family)

    def _is_idle_for(self, family: _Family, seconds: float) -> bool:
        return seconds < _NEVER and family.used_at < self._clock.after(-seconds)

    async def _with_notebooks(self, family: _Family) -> _Family:
        """As used as an attached notebook used it, which only the host sees; written down, as any other use."""
        state = await self._described(family.one)
        if state is None or state.attached_idle_s is None:
            return family
        used_at = self._clock.after(-state.attached_idle_s)
        if used_at <= family.used_at:
            return family
        with contextlib.suppress(NotFound):
            await self._records.sessions(family.project).use(family.one.spec.id, used_at)
        return await self._family(family.project, family.mount) or family

    async def _freeze(self, family: _Family) -> bool:
        """Whether it stands still now, and did not before."""
        try:
            state = await self._described(family.one)
            if state is None or state.gone or state.frozen:
                return False
            return await self._host.freeze_sandbox(family.one.sandbox)
        except SandboxUnavailable as problem:
            # Whoever uses it next is told.
            if gone_reason(problem) is None:
                raise
            return False

    async def _end(self, family: _Family, why: str) -> bool:
        """Freeze it, look whether it was used meanwhile, and end it if it still stands still: so who comes at the same
        time loses nothing without being told, and finds it running.
        """
        places, one = self._places(family.project), family.one
        reason = f"{why}, so its sandbox was ended; files in /mnt/files are kept"
        try:
            if not await self._host.freeze_sandbox(one.sandbox):
                # A cell runs that no record tells of, or a notebook is at work.
                return False
            # Nobody writes any more. Not waited for: the files stay here, and a save that fails is tried again.
            self._mounts.save_soon(family.mount)
            async with self._thawed_unless_ended(one) as ended:
                await places.take_ends(one.sandbox)
                if await self._family(family.project, family.mount, begun=one.begun) != family:
                    return False
                await self._host.close_sandbox(one.sandbox, if_frozen=True)
                ended.append(True)
        except Conflict:
            # Somebody came.
            return False
        except SandboxUnavailable as problem:
            if (gone := gone_reason(problem)) is None:
                raise
            # It had ended before, by itself.
            reason = gone
        await places.lost(one, reason)
        return True

    @contextlib.asynccontextmanager
    async def _thawed_unless_ended(self, session: Session) -> AsyncIterator[list[bool]]:
        ended: list[bool] = []
        try:
            yield ended
        finally:
            if not ended:
                with contextlib.suppress(WorkbenchError):
                    await self._host.thaw_sandbox(session.sandbox)

    async def _make_room(self, tally: _Tally) -> None:
        reserve = self._policy.memory_reserve_percent
        for family in sorted(tally.idle, key=lambda family: family.used_at):
            if not reserve or self._free_memory_percent() >= reserve or tally.host_is_away:
                return
            try:
                now = await self._with_notebooks(family)
                if self._is_idle_for(now, _JUST_USED_S):
                    tally.ended += await self._end(
                        now, "the machine was short of memory, and it was the longest unused"
                    )
            except WorkbenchError as problem:
                tally.failed(f"sandbox of {family.mount}", problem)

    def _sessions(self, project: ProjectId) -> Sessions:
        places = self._places(project)
        return Sessions(self._host, self._records, self._mounts, self._clock, places, project, self._languages)

    def _places(self, project: ProjectId) -> Places:
        sessions, cells = self._records.sessions(project), self._records.cells(project)
        return Places(self._host, sessions, cells, self._mounts, self._clock)

    def _ends(self, project: ProjectId) -> Ends:
        sessions, cells = self._records.sessions(project), self._records.cells(project)
        return Ends(self._host, sessions, cells, self._places(project), self._clock, self._languages)


_NEVER = float("inf")


def _never_is_longest(own_s: int | None, servers_s: int) -> float:
    return (servers_s if own_s is None else own_s) or _NEVER


def in_words(seconds: float) -> str:
    """As people say it: `12 h`, `15 min`, `90 s`."""
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def _untold(record: CellRecord, problem: WorkbenchError) -> str:
    unknown = "not known yet" if isinstance(problem, HostUnavailable | HostIncompatible) else "not written down"
    return f"the end of {record.kind} {record.id} is {unknown}: {problem.message}"
