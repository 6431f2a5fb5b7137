"""Keys, tokens and the audit in this process's memory."""

from __future__ import annotations

from dataclasses import replace

from workbench.errors import Conflict, NotFound
from workbench.model.access import Key
from workbench.model.ids import KeyId, ProjectId, SessionId
from workbench.model.records import AuditEntry
from workbench.storage.shelves import Shelves
from workbench.storage.wording import key_exists_already, no_such_key, no_such_session


class MemoryKeyStore:
    """A KeyStore without a disk."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._keys = shelves.keys

    async def add(self, key: Key) -> None:
        """As the contract has it."""
        if key.id in self._keys:
            raise Conflict(key_exists_already(key.id), {"key": key.id})
        if key.session is not None and key.session not in self._shelves.sessions:
            raise NotFound(no_such_session(key.session), {"session": key.session})
        self._keys[key.id] = key

    async def add_first(self, key: Key) -> bool:
        """As the contract has it."""
        if any(known.session is None for known in self._keys.values()):
            return False
        await self.add(key)
        return True

    async def get(self, key: KeyId) -> Key:
        """As the contract has it."""
        if key not in self._keys:
            raise NotFound(no_such_key(key), {"key": key})
        return self._keys[key]

    async def list(self, project: ProjectId | None) -> tuple[Key, ...]:
        """As the contract has it."""
        keys = [key for key in self._keys.values() if key.session is None and project in (None, key.project)]
        return tuple(sorted(keys, key=lambda key: (key.created_at, key.id)))

    async def revoke(self, key: KeyId, at: str) -> bool:
        """As the contract has it."""
        found = self._keys.get(key)
        if found is None or not found.valid_at(at):
            return False
        self._keys[key] = replace(found, revoked_at=at)
        return True

    async def rotate(self, old: KeyId, new: Key, expires_at: str) -> bool:
        """As the contract has it."""
        found = self._keys.get(old)
        if found is None or found.revoked_at or found.replaced_by is not None:
            return False
        await self.add(new)
        end = min(found.expires_at, expires_at) if found.expires_at else expires_at
        self._keys[old] = replace(found, replaced_by=new.id, expires_at=end)
        return True

    async def remove_tokens_expired_before(self, at: str) -> int:
        """As the contract has it."""
        old = [key for key in self._keys.values() if key.session is not None and key.expires_at]
        old = [key for key in old if key.expires_at < at]
        for key in old:
            del self._keys[key.id]
        return len(old)


class MemoryAuditStore:
    """An AuditStore without a disk."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._entries = shelves.audit

    async def add(self, entry: AuditEntry) -> None:
        """As the contract has it."""
        about = self._shelves.sessions.get(entry.session) if entry.session is not None else None
        if not entry.user and about is not None and about.spec.project == entry.project:
            entry = replace(entry, user=about.spec.user)
        self._entries.append(entry)

    async def list(
        self, project: ProjectId, *, before: str = "", session: SessionId | None = None, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        """As the contract has it."""
        mine = [one for one in reversed(self._entries) if one.project == project and session in (None, one.session)]
        found = [entry for entry in mine if not before or entry.at < before]
        return tuple(sorted(found, key=lambda entry: entry.at, reverse=True)[:limit])
