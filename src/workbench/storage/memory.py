"""Records in this process's memory: for unit tests, and for services that need not outlive themselves."""

from __future__ import annotations

from dataclasses import replace

from workbench.contracts.storage import PageRequest
from workbench.errors import Conflict, NotFound
from workbench.model.ids import SessionId
from workbench.model.session import Session
from workbench.storage.wording import exists_already, no_such_session


class MemorySessionStore:
    """A SessionStore without a disk. Nothing here awaits, so every method is one step."""

    def __init__(self) -> None:
        self._records: dict[SessionId, Session] = {}

    async def add(self, session: Session) -> None:
        """As the contract has it."""
        if session.spec.id in self._records:
            raise Conflict(exists_already(session.spec.id), {"session": session.spec.id})
        self._records[session.spec.id] = session

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

    async def replace(self, seen: Session, new: Session) -> bool:
        """As the contract has it."""
        record = self._records.get(seen.spec.id)
        if record is None or replace(record, used_at=seen.used_at) != seen:
            return False
        self._records[seen.spec.id] = replace(new, used_at=record.used_at)
        return True

    async def remove(self, session: SessionId) -> None:
        """As the contract has it."""
        self._records.pop(session, None)

    async def aclose(self) -> None:
        """Nothing to close."""
