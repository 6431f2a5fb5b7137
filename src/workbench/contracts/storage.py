"""SessionStore, MountStore: where records and files of sessions are kept.

For the author of the next store: several processes use it at once, any of them may be killed at any moment, and a
session's whole story of sandboxes and epochs rests on every method being one step. `testing.storage_contract` holds it.
A *family* is all sessions of one mount; they are always in the same sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from workbench.model.ids import MountId, SandboxId, SessionId
from workbench.model.session import Session
from workbench.model.tier import Tier


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
        """Those of one user, by name: a page goes on where the last one ended, whatever came and went between."""
        ...

    async def family(self, mount: MountId) -> tuple[Session, ...]:
        """All sessions of this mount, whoever's, by name; also those that are being made or deleted."""
        ...

    async def replace(self, seen: Session, new: Session) -> bool:
        """Write `new` if the record is still as it was `seen`, in everything but `used_at`, which keeps its value.

        Of the spec only the tier and `snapshots` ever change; mount, kernel, principal and parent never do. One step,
        among all processes; False if someone else was first, or it is gone. An epoch that was written survives a crash
        of the machine: callers are told of it right after.
        """
        ...

    async def move(self, seen: Session, new: Session, reason: str) -> bool:
        """As `replace`, for a `new` that is in another sandbox; in the same step the rest of the family goes along.

        The others are in the sandbox of `new` as well, not begun, with their next epoch, and with the `reason` as
        their `last_loss` where something had begun.
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
        """Drop the record; nothing happens if there is none, or if it is that of a later session of the same name."""
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
