"""The session that `workbench mcp` makes when it is given no name, and what becomes of it afterwards.

Its memory is worth nothing to the next process, but what is in /mnt/files may be somebody's work: a session without
files is deleted with its process, one with files is kept for a week. A lock in the data folder says which processes
live, so that those that were killed are found by the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from workbench.cli.printing import notice
from workbench.core.requests import DeleteSession, DescribeSession
from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder, take_lock
from workbench.errors import InvalidRequest, NotFound, WorkbenchError
from workbench.mcp.leftovers import KEPT_DAYS, check_may_be_named, delete_if_unused, unused_before
from workbench.model.ids import MountId, SessionId, session_id
from workbench.settings import Settings

# Clients wait for two seconds, ask by a signal, wait again, and kill.
_TIDY_S = 10.0
_SUFFIX = ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSession:
    """The default session of a process."""

    id: SessionId
    stays: bool
    """somebody named it"""
    data: DataFolder

    @classmethod
    def of(cls, settings: Settings, named: SessionId | None) -> OwnSession:
        """The one that is named, or a new one."""
        made = named or SessionId(f"mcp-{secrets.token_hex(6)}")
        return cls(id=made, stays=named is not None, data=DataFolder(settings.data_dir))

    @property
    def folder(self) -> Path:
        """Of the locks."""
        return self.data.path / "mcp"


@contextlib.asynccontextmanager
async def own_session(own: OwnSession, bench: Workbench) -> AsyncIterator[None]:
    """Around a process; the session itself is made by the first call that needs it."""
    if own.stays:
        await check_may_be_named(bench, own.id)
        yield
        return
    own.data.make()
    own.folder.mkdir(mode=0o700, exist_ok=True)
    path = own.folder / f"{own.id}{_SUFFIX}"
    lock = take_lock(path)
    sweeping = asyncio.create_task(_sweep(own, bench), name="sessions of processes that ended")
    try:
        yield
    finally:
        sweeping.cancel()
        await asyncio.wait([sweeping])
        if await _ended(own, bench):
            path.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


async def _ended(own: OwnSession, bench: Workbench) -> bool:
    """At the end of a process; whether nothing is left of its session."""
    try:
        async with asyncio.timeout(_TIDY_S):
            session = (await bench.describe_session(DescribeSession(session=own.id))).session
            if _has_files(own.data, session.mount):
                notice(
                    f"session {own.id} has files in /mnt/files and is kept, unless nobody uses it for {KEPT_DAYS} "
                    f"days; `workbench sessions rm {own.id}` deletes it now, and --session NAME keeps one for good"
                )
                return False
            await bench.delete_session(DeleteSession(session=own.id))
    except NotFound:
        return True
    except (WorkbenchError, TimeoutError) as problem:
        notice(f"session {own.id} could not be deleted ({problem}); `workbench sessions rm {own.id}` tries again")
        return False
    return True


def _has_files(data: DataFolder, mount: MountId) -> bool:
    try:
        return any((data.files / mount).iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        # Whoever cannot look must not delete.
        return True


async def _sweep(own: OwnSession, bench: Workbench) -> None:
    """Delete what was left by processes that ended, if nobody has used it for long."""
    before = unused_before(datetime.datetime.now(datetime.UTC))
    for path in sorted(own.folder.glob(f"*{_SUFFIX}")):
        lock = take_lock(path)
        if lock is None:
            continue
        try:
            if await _is_over(path, bench, before):
                path.unlink(missing_ok=True)
        finally:
            os.close(lock)


async def _is_over(path: Path, bench: Workbench, before: str) -> bool:
    try:
        name = session_id(path.name.removesuffix(_SUFFIX))
        return await delete_if_unused(bench, name, before) is not None
    except (NotFound, InvalidRequest):
        return True
    except WorkbenchError:
        # The next process tries again.
        return False
