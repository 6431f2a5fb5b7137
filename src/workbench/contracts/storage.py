"""Records, with their parts, and MountStore: where records and files of sessions are kept.

For the author of the next store: several processes use it at once, any of them may be killed at any moment, and a
session's whole story of sandboxes and epochs rests on every method being one step. `testing.storage_contract` holds it.
A *family* is all sessions of one mount; they are always in the same sandbox, and of the same project. Names of sessions
are taken for all projects at once. Every method may raise `StoreUnavailable`; then nothing was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from workbench.contracts.added import AddedStore
from workbench.contracts.connections import ConnectionStore
from workbench.model.access import Key
from workbench.model.approval import ApprovalMark, SeenShape
from workbench.model.configuration import ConfigurationRecord
from workbench.model.execution import CellResult, CommandResult, RuleCount
from workbench.model.ids import CellId, KeyId, MountId, ProjectId, SandboxId, SessionId
from workbench.model.records import AuditEntry, CellRecord, Problem
from workbench.model.session import Session
from workbench.model.tier import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which records to list."""

    user: str | None
    """None for everybody's"""
    after: SessionId | None = None
    """go on after this one, be it still there or not"""
    limit: int = 100


class SessionStore(Protocol):
    """Sessions of one project. Those of others are not there for `get`, `use` and `list`; their names are taken."""

    async def add(self, session: Session) -> None:
        """Keep the first of a family. On return it will survive a crash of this process.

        Raises:
            Conflict: there is one of that name, or one that has its mount.
        """
        ...

    async def add_branch(self, branch: Session, seen: Session) -> bool:
        """Keep one more of a family, if the record that it branches from is still as it was `seen`, as for `replace`.

        So a family never gets a new member behind the back of who deletes or moves its last.

        Raises:
            Conflict: there is one of that name.
        """
        ...

    async def get(self, session: SessionId) -> Session:
        """Raises: NotFound."""
        ...

    async def use(self, session: SessionId, at: str) -> Session:
        """Note that it is used, and give it as it is; `used_at` never goes back.

        Raises:
            NotFound: there is none.
        """
        ...

    async def list(self, request: PageRequest) -> tuple[Session, ...]:
        """Those of one user or all, by name; a page goes on where the last one ended, whatever came and went."""
        ...

    async def family(self, mount: MountId) -> tuple[Session, ...]:
        """All sessions of this mount, whoever's, by name; also those that are being made or deleted."""
        ...

    async def replace(self, seen: Session, new: Session, *, tier_before: str = "") -> bool:
        """Write `new` if the record is still as it was `seen`, in everything but `used_at`, which keeps its value.

        Of the spec only the tier, `snapshots`, `idle` and `config` ever change, the last only with its version: then
        the one before is kept as well, with those of the past, under the tier of `seen`, or `tier_before` if that was
        another one already; mount, kernel, principal and parent never do.
        One step, among all processes; False if someone else was first, or it is gone. An epoch that was written
        survives a crash of the machine: callers are told of it right after.
        """
        ...

    async def move(self, seen: Session, new: Session, reason: str) -> bool:
        """As `replace`, for a `new` that is in another sandbox; in the same step the rest of the family goes along.

        The others are in the sandbox of `new` as well, not begun, with their next epoch, and with the `reason` as
        their `last_loss` where something had begun.
        """
        ...

    async def past_configurations(self, session: SessionId, before: int, limit: int) -> tuple[ConfigurationRecord, ...]:
        """Of a session's earlier configurations those with a smaller version, newest first; none if there is no such
        session. As many versions as `MOST_VERSIONS` are kept, with the present one.
        """
        ...

    async def change_tier(self, sandbox: SandboxId, tier: Tier, *, cold: bool) -> bool:
        """Another tier for all sessions in this sandbox; if `cold`, only while none of them has begun.

        False if nothing was changed: they are gone, have moved on, or one has begun.
        """
        ...

    async def remove_unless_last(self, session: Session) -> bool:
        """Drop the record if another of its family is left; False if none is, or the record is gone.

        Of several that leave at once exactly one is the last, and closes up behind them all.
        """
        ...

    async def remove(self, session: Session) -> None:
        """Drop the record, with those of its cells and its tokens; nothing happens if there is none, or if it is that
        of a later session of the same name. `remove_unless_last` drops them as well.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPageRequest:
    """Which cells of a session to list, in the order they were accepted."""

    session: SessionId
    after: tuple[str, CellId] | None = None
    """go on after this one: `created_at` and `id`, be it still there or not"""
    limit: int = 100
    newest_first: bool = False
    """the same backwards"""


class CellStore(Protocol):
    """Cells and commands of sessions. One whose record cannot be read any more is told as such, and keeps nobody from
    the others.
    """

    async def add(self, record: CellRecord) -> CellRecord | None:
        """Keep it. If its session has one with the same id, or the same idempotency key if it has one, that one is
        returned and nothing is kept; one step, also among several that come at once.

        Raises:
            NotFound: there is no such session.
        """
        ...

    async def get(self, session: SessionId, cell: CellId) -> CellRecord:
        """Raises: NotFound."""
        ...

    async def with_idempotency_key(self, session: SessionId, key: str) -> CellRecord | None:
        """The one that was accepted with it."""
        ...

    async def move(self, session: SessionId, cell: CellId, sandbox: SandboxId) -> None:
        """It was sent to another sandbox, as the first never had it; nothing happens if it is not pending."""
        ...

    async def finish(
        self,
        session: SessionId,
        cell: CellId,
        at: str,
        end: CellResult | CommandResult | Problem,
        *,
        sandbox: SandboxId | None = None,
        free_key: bool = False,
    ) -> CellRecord | None:
        """Write its end, with a result `ended` and with a problem `failed`, if it is pending; the record as it then is.

        The first end that is written stays. With a `sandbox` it is written only while that is the record's: who
        concludes from the end of one sandbox must not end a cell that was sent to another meanwhile. With `free_key`
        its idempotency key is free for another from then on. None if the cell is gone with its session.
        In the same step what the rules of the corrections had to do with it is counted, once, for its project.
        """
        ...

    async def pending_in(self, sandbox: SandboxId) -> tuple[CellRecord, ...]:
        """Those without an end that were sent to it, of all sessions in it."""
        ...

    async def list(self, request: CellPageRequest) -> tuple[CellRecord, ...]:
        """A page of a session's."""
        ...

    async def latest_step(self, session: SessionId) -> CellRecord | None:
        """The latest that said where it is, by `thought`, `current_step` or `current_step_metric`."""
        ...

    async def last_end(self, sessions: tuple[SessionId, ...]) -> str:
        """When the last of these sessions' cells ended; empty if none did."""
        ...


class RuleStore(Protocol):
    """How often the rules of the corrections had something to do, in one project. Written by `CellStore.finish`."""

    async def counted(self) -> tuple[RuleCount, ...]:
        """Those that ever had, by name."""
        ...


class KeyStore(Protocol):
    """Keys and tokens of all projects."""

    async def add(self, key: Key) -> None:
        """Keep it.

        Raises:
            NotFound: it is a token, and there is no such session.
            Conflict: there is one of that name.
        """
        ...

    async def add_first(self, key: Key) -> bool:
        """Keep it if there is no other, be it good or not; tokens do not count. One step, among all processes."""
        ...

    async def get(self, key: KeyId) -> Key:
        """Also one that is no more good. Raises: NotFound."""
        ...

    async def list(self, project: ProjectId | None) -> tuple[Key, ...]:
        """Those of a project, or all; oldest first, with those that are no more good, without tokens."""
        ...

    async def revoke(self, key: KeyId, at: str) -> bool:
        """From now on it is no good; False if it was not before, or is not there."""
        ...

    async def rotate(self, old: KeyId, new: Key, expires_at: str) -> bool:
        """Keep `new`, and have `old` replaced by it, good until `expires_at` or its own end if sooner; one step.

        False, and nothing is kept, if `old` is not there, was revoked, or was rotated before.
        """
        ...

    async def remove_tokens_expired_before(self, at: str) -> int:
        """How many there were."""
        ...


class AuditStore(Protocol):
    """Who did what."""

    async def add(self, entry: AuditEntry) -> None:
        """Keep it; one about a session that names no user with that of the session, if there is one."""
        ...

    async def list(
        self, project: ProjectId, *, before: str = "", session: SessionId | None = None, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        """Newest first; with `before` those of earlier times, with `session` those about one."""
        ...


class Housekeeping(Protocol):
    """What concerns all projects at once; for who keeps the house."""

    async def begun(self, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """Sessions that have begun and are not being deleted, of all projects, by name."""
        ...

    async def left_over(self, before: str, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """Sessions that are being deleted or made, and were last used before then, of all projects, by name."""
        ...

    async def unbegun(self, since: str, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """Sessions that have not begun, are not being deleted or made, and were used since then; as `begun`."""
        ...

    async def in_sandbox(self, sandbox: SandboxId) -> tuple[Session, ...]:
        """Sessions of all projects that are in it now, by name; also those that are being made or deleted."""
        ...

    async def pending(self, after: CellId | None, limit: int) -> tuple[tuple[ProjectId, CellRecord], ...]:
        """Cells without an end, of all projects, by id; a page may be longer, as it has all cells of its last id."""
        ...

    async def drop_cells_ended_before(self, at: str) -> int:
        """How many there were."""
        ...

    async def drop_audit_before(self, at: str) -> int:
        """How many there were."""
        ...

    async def forget_user(self, project: ProjectId, user: str) -> None:
        """Drop what is still there of them, cells, tokens, connected accounts and audit entries, for good: nothing of
        it is left in the file that the store writes to. Their sessions were deleted before. What answers of tools
        looked like in their project goes as well, as it may have been theirs.
        """
        ...


class ToolMemory(Protocol):
    """What is remembered of tools: approvals of a session, which go with it, and what answers look like in projects."""

    async def keep(self, session: SessionId, mark: ApprovalMark, now: str) -> bool:
        """Keep it if nothing is kept about its subject; what was kept until before `now` does not count. One step,
        among all processes. Raises: NotFound: there is no such session.
        """
        ...

    async def put(self, session: SessionId, mark: ApprovalMark, now: str) -> None:
        """Keep it, whatever was kept about its subject. Raises: NotFound: there is no such session."""
        ...

    async def marks(self, session: SessionId, now: str) -> tuple[ApprovalMark, ...]:
        """Those that are kept at `now`, by subject."""
        ...

    async def take(self, session: SessionId, subject: str, now: str) -> bool:
        """Drop what was granted about the subject; False if nothing is granted at `now`. One step, among all."""
        ...

    async def drop(self, session: SessionId, subjects: Sequence[str]) -> None:
        """Keep nothing about these any more."""
        ...

    async def saw(self, project: ProjectId, tool: str, at: str, merged: Callable[[str], str]) -> None:
        """One more answer of a tool. `merged` makes the shape that is kept of the one before, which is empty at first;
        it is quick, and may be asked again. One step, among all processes.
        """
        ...

    async def shapes(self, project: ProjectId, tools: Sequence[str]) -> dict[str, SeenShape]:
        """Of these tools, as far as there are any."""
        ...

    async def forget_shapes(self, project: ProjectId | None, toolkit: str | None = None) -> int:
        """All of a project, or of all with None; only of tools whose names begin with that of the toolkit, if it is
        given. How many there were.
        """
        ...


class Records(Protocol):
    """A whole store. Owned by who wired it, and closed there."""

    def sessions(self, project: ProjectId) -> SessionStore:
        """Of a project."""
        ...

    def cells(self, project: ProjectId) -> CellStore:
        """Of a project's sessions; those of others are not there."""
        ...

    def rules(self, project: ProjectId) -> RuleStore:
        """Of a project."""
        ...

    @property
    def keys(self) -> KeyStore:
        """Of all projects."""
        ...

    @property
    def audit(self) -> AuditStore:
        """Of all projects."""
        ...

    @property
    def tools(self) -> ToolMemory:
        """Of all projects."""
        ...

    @property
    def house(self) -> Housekeeping:
        """Of all projects."""
        ...

    @property
    def connections(self) -> ConnectionStore:
        """Of all projects."""
        ...

    @property
    def added(self) -> AddedStore:
        """Toolkits that were added, of all projects."""
        ...

    async def check(self) -> None:
        """Open it, if it is not, and see that it answers. Raises: StoreUnavailable."""
        ...

    async def aclose(self) -> None:
        """May be called twice."""
        ...
