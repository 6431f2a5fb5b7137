"""Records in this process's memory: for unit tests, and for services that need not outlive themselves."""

from __future__ import annotations

from dataclasses import replace

from workbench.contracts.storage import PageRequest
from workbench.errors import Conflict, NotFound
from workbench.model.ids import MountId, SandboxId, SessionId
from workbench.model.session import Session
from workbench.model.tier import Tier
from workbench.storage.wording import exists_already, files_in_use, no_such_session


class MemorySessionStore:
    """A SessionStore without a disk. Nothing here awaits, so every method is one step."""

    def __init__(self) -> None:
        self._records: dict[SessionId, Session] = {}

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
        if session not in self._records:
            raise NotFound(no_such_session(session), {"session": session})
        return self._records[session]

    async def use(self, session: SessionId, at: str) -> Session:
        """As the contract has it."""
        record = await self.get(session)
        self._records[session] = replace(record, used_at=max(record.used_at, at))
        return self._records[session]

    async def list(self, request: PageRequest) -> tuple[Session, ...]:
        """As the contract has it."""
        after = request.after or ""
        found = [self._records[name] for name in sorted(self._records) if name > after]
        return tuple(one for one in found if one.spec.user == request.user)[: request.limit]

    async def family(self, mount: MountId) -> tuple[Session, ...]:
        """As the contract has it."""
        return tuple(self._records[name] for name in sorted(self._records) if self._records[name].mount == mount)

    async def replace(self, seen: Session, new: Session) -> bool:
        """As the contract has it."""
        if not self._is_as(seen):
            return False
        self._records[seen.spec.id] = replace(new, used_at=self._records[seen.spec.id].used_at)
        return True

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

    def _is_there(self, session: Session) -> bool:
        record = self._records.get(session.spec.id)
        return record is not None and record.created_at == session.created_at

    async def aclose(self) -> None:
        """Nothing to close."""
