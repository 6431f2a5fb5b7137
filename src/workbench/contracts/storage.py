"""SessionStore, MountStore: where records and files of sessions are kept.

For the author of the next store: several processes use it at once, any of them may be killed at any moment, and a
session's whole story of sandboxes and epochs rests on `replace` being one step. `testing.storage_contract` holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from workbench.model.ids import MountId, SessionId
from workbench.model.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which records to list."""

    user: str
    after: SessionId | None = None
    """go on after this one, be it still there or not"""
    limit: int = 100


class SessionStore(Protocol):
    """Owned by who wired it, and closed there."""

    async def add(self, session: Session) -> None:
        """Keep a new one. On return it will survive a crash of this process.

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
        """Those of one user, by name: a page goes on where the last one ended, whatever came and went between."""
        ...

    async def replace(self, seen: Session, new: Session) -> bool:
        """Write `new` if the record is still as it was `seen`, in everything but `used_at`, which keeps its value.

        Of the spec only the tier ever changes. One step, among all processes; False if someone else was first, or it
        is gone. An epoch that was written survives a crash of the machine: callers are told of it right after.
        """
        ...

    async def remove(self, session: SessionId) -> None:
        """Drop the record; nothing happens if there is none."""
        ...

    async def aclose(self) -> None:
        """May be called twice."""
        ...


class MountStore(Protocol):
    """Files of sessions."""

    async def remove(self, mount: MountId) -> None:
        """Drop the mount and everything in it; nothing happens if there is none.

        Raises:
            Conflict: a sandbox uses it.
        """
        ...
