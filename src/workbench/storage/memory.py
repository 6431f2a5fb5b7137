"""Records in this process's memory: for unit tests, and for services that need not outlive themselves.

Nothing here awaits, so every method is one step.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.contracts.storage import PageRequest
from workbench.errors import Conflict, NotFound
from workbench.model.configuration import MOST_VERSIONS, ConfigurationRecord
from workbench.model.ids import DEFAULT_PROJECT, CellId, MountId, ProjectId, SandboxId, SessionId
from workbench.model.records import CellRecord, CellStatus
from workbench.model.session import Session
from workbench.model.tier import Tier
from workbench.storage.memory_added import MemoryAddedStore
from workbench.storage.memory_cells import MemoryCellStore
from workbench.storage.memory_connections import MemoryConnectionStore
from workbench.storage.memory_keys import MemoryAuditStore, MemoryKeyStore
from workbench.storage.memory_rules import MemoryRuleStore
from workbench.storage.memory_tools import MemoryToolMemory
from workbench.storage.shelves import Shelves
from workbench.storage.wording import exists_already, files_in_use, no_such_session


class MemorySessionStore:
    """A SessionStore without a disk."""

    def __init__(self, shelves: Shelves | None = None, project: ProjectId = DEFAULT_PROJECT) -> None:
        self._shelves = shelves or Shelves()
        self._records = self._shelves.sessions
        self._project = project

    async def add(self, session: Session) -> None:
        """As the contract has it."""
        self._check_free(session.spec.id)
        if await self.family(session.mount):
            raise Conflict(files_in_use(session.spec.id), {"session": session.spec.id})
        self._records[session.spec.id] = session

    async def add_branch(self, branch: Session, seen: Session) -> bool:
        """As the contract has it."""
        self._check_free(branch.spec.id)
        if not self._is_as(seen):
            return False
        self._records[branch.spec.id] = branch
        return True

    def _check_free(self, session: SessionId) -> None:
        if session in self._records:
            raise Conflict(exists_already(session), {"session": session})

    async def get(self, session: SessionId) -> Session:
        """As the contract has it."""
        record = self._records.get(session)
        if record is None or record.spec.project != self._project:
            raise NotFound(no_such_session(session), {"session": session})
        return record

    async def use(self, session: SessionId, at: str) -> Session:
        """As the contract has it."""
        record = await self.get(session)
        self._records[session] = replace(record, used_at=max(record.used_at, at))
        return self._records[session]

    async def list(self, request: PageRequest) -> tuple[Session, ...]:
        """As the contract has it."""
        after = request.after or ""
        found = [self._records[name] for name in sorted(self._records) if name > after]
        mine = [one for one in found if one.spec.project == self._project]
        return tuple(one for one in mine if request.user in (None, one.spec.user))[: request.limit]

    async def family(self, mount: MountId) -> tuple[Session, ...]:
        """As the contract has it."""
        return tuple(self._records[name] for name in sorted(self._records) if self._records[name].mount == mount)

    async def replace(self, seen: Session, new: Session, *, tier_before: str = "") -> bool:
        """As the contract has it."""
        if not self._is_as(seen):
            return False
        self._records[seen.spec.id] = replace(new, used_at=self._records[seen.spec.id].used_at)
        if new.config_version != seen.config_version:
            self._keep_configuration(seen, tier_before or seen.spec.tier.name)
        return True

    def _keep_configuration(self, seen: Session, tier: str) -> None:
        past = self._shelves.past_configurations.setdefault(seen.spec.id, [])
        since = seen.configured_at or seen.created_at
        past.append(ConfigurationRecord(version=seen.config_version, at=since, tier=tier, config=seen.spec.config))
        del past[: -(MOST_VERSIONS - 1)]

    async def past_configurations(self, session: SessionId, before: int, limit: int) -> tuple[ConfigurationRecord, ...]:
        """As the contract has it."""
        record = self._records.get(session)
        if record is None or record.spec.project != self._project:
            return ()
        past = self._shelves.past_configurations.get(session, [])
        return tuple(one for one in reversed(past) if one.version < before)[:limit]

    def _is_as(self, seen: Session) -> bool:
        record = self._records.get(seen.spec.id)
        return record is not None and replace(record, used_at=seen.used_at) == seen

    async def move(self, seen: Session, new: Session, reason: str) -> bool:
        """As the contract has it."""
        if not await self.replace(seen, new):
            return False
        for one in self._in(seen.sandbox):
            self._records[one.spec.id] = replace(
                one,
                sandbox=new.sandbox,
                begun=False,
                epoch=one.epoch + 1,
                last_loss=reason if one.begun else one.last_loss,
            )
        return True

    def _in(self, sandbox: SandboxId) -> tuple[Session, ...]:
        return tuple(one for one in self._records.values() if one.sandbox == sandbox)

    async def change_tier(self, sandbox: SandboxId, tier: Tier, *, cold: bool) -> bool:
        """As the contract has it."""
        family = self._in(sandbox)
        if cold and any(one.begun for one in family):
            return False
        for one in family:
            self._records[one.spec.id] = replace(one, spec=replace(one.spec, tier=tier))
        return bool(family)

    async def remove_unless_last(self, session: Session) -> bool:
        """As the contract has it."""
        if not self._is_there(session) or len(await self.family(session.mount)) == 1:
            return False
        await self.remove(session)
        return True

    async def remove(self, session: Session) -> None:
        """As the contract has it."""
        if self._is_there(session):
            del self._records[session.spec.id]
            self._shelves.drop_with_session(session.spec.id)

    def _is_there(self, session: Session) -> bool:
        record = self._records.get(session.spec.id)
        return record is not None and record.created_at == session.created_at

    async def aclose(self) -> None:
        """Nothing to close."""


class MemoryHousekeeping:
    """A Housekeeping without a disk."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    async def begun(self, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """As the contract has it."""
        return tuple(one for one in self._after(after) if one.begun and not one.ending)[:limit]

    async def left_over(self, before: str, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """As the contract has it."""
        found = [one for one in self._after(after) if one.ending or one.unfinished]
        return tuple(one for one in found if one.used_at < before)[:limit]

    async def unbegun(self, since: str, after: SessionId | None, limit: int) -> tuple[Session, ...]:
        """As the contract has it."""
        found = [one for one in self._after(after) if not (one.begun or one.ending or one.unfinished)]
        return tuple(one for one in found if one.used_at >= since)[:limit]

    async def in_sandbox(self, sandbox: SandboxId) -> tuple[Session, ...]:
        """As the contract has it."""
        return tuple(one for one in self._after(None) if one.sandbox == sandbox)

    def _after(self, after: SessionId | None) -> list[Session]:
        return [one for name, one in sorted(self._shelves.sessions.items()) if name > (after or "")]

    async def pending(self, after: CellId | None, limit: int) -> tuple[tuple[ProjectId, CellRecord], ...]:
        """As the contract has it."""
        cells = sorted(self._shelves.cells.values(), key=lambda cell: (cell.id, cell.session))
        found = [cell for cell in cells if cell.status is CellStatus.PENDING and cell.id > (after or "")]
        last = found[:limit][-1].id if found[:limit] else ""
        return tuple((self._shelves.sessions[cell.session].spec.project, cell) for cell in found if cell.id <= last)

    async def drop_cells_ended_before(self, at: str) -> int:
        """As the contract has it."""
        old = [name for name, cell in self._shelves.cells.items() if cell.ended_at and cell.ended_at < at]
        for name in old:
            del self._shelves.cells[name]
        return len(old)

    async def drop_audit_before(self, at: str) -> int:
        """As the contract has it."""
        kept = [entry for entry in self._shelves.audit if entry.at >= at]
        dropped = len(self._shelves.audit) - len(kept)
        self._shelves.audit[:] = kept
        return dropped

    async def forget_user(self, project: ProjectId, user: str) -> None:
        """As the contract has it."""
        for session in list(self._shelves.sessions.values()):
            if (session.spec.project, session.spec.user) == (project, user):
                self._shelves.drop_with_session(session.spec.id)
        for account in [one.account for one in self._shelves.accounts.values()]:
            if (account.project, account.user) == (project, user):
                self._shelves.drop_account(account.id)
        for name in [one for one in self._shelves.shapes if one[0] == project]:
            del self._shelves.shapes[name]
        entries = [entry for entry in self._shelves.audit if entry.project == project]
        theirs = {entry.session for entry in entries if entry.user == user and entry.session is not None}
        self._shelves.audit[:] = [
            entry
            for entry in self._shelves.audit
            if entry.project != project or not (entry.user == user or (not entry.user and entry.session in theirs))
        ]


class MemoryRecords:
    """Records without a disk."""

    def __init__(self) -> None:
        self._shelves = Shelves()
        self.keys = MemoryKeyStore(self._shelves)
        self.audit = MemoryAuditStore(self._shelves)
        self.tools = MemoryToolMemory(self._shelves)
        self.house = MemoryHousekeeping(self._shelves)
        self.connections = MemoryConnectionStore(self._shelves)
        self.added = MemoryAddedStore(self._shelves)

    def sessions(self, project: ProjectId) -> MemorySessionStore:
        """As the contract has it."""
        return MemorySessionStore(self._shelves, project)

    def cells(self, project: ProjectId) -> MemoryCellStore:
        """As the contract has it."""
        return MemoryCellStore(self._shelves, project)

    def rules(self, project: ProjectId) -> MemoryRuleStore:
        """As the contract has it."""
        return MemoryRuleStore(self._shelves, project)

    async def check(self) -> None:
        """It always answers."""

    async def aclose(self) -> None:
        """Nothing to close."""
