"""Sessions of MCP clients that named none are deleted when their clients are gone: at once, or by a look every hour."""

from __future__ import annotations

import contextlib
import datetime

from workbench.core import requests
from workbench.errors import NotFound, WorkbenchError
from workbench.mcp import leftovers
from workbench.model.access import Caller
from workbench.model.ids import DEFAULT_PROJECT, ProjectId
from workbench.model.session import Session
from workbench.server.door import Door
from workbench.server.mcp_arrival import Arrival

_THE_SERVER = Caller()


async def connection_ended(door: Door, arrival: Arrival) -> None:
    """By its client; the session that it was given goes with it, unless there are files in it."""
    # BARRIER: what a caller named, or a token is for, would be deleted with whoever used it; held by
    # tests/mcp/http/test_leftovers.py.
    if arrival.own_session is not None or arrival.names_default:
        return
    bench = door.service.workbench(arrival.caller.project)
    gone = await leftovers.client_left(bench, arrival.default_session)
    if gone is not None:
        await _note(door, arrival.caller, gone, "its client has left")


async def sweep(door: Door) -> int:
    """Everything that nobody has used for long; how many could not be deleted."""
    before = leftovers.unused_before(datetime.datetime.now(datetime.UTC))
    deleted = failed = 0
    for project in await _projects(door):
        bench = door.service.workbench(project)
        for session in await leftovers.unused(bench, before):
            try:
                gone = await leftovers.delete_if_unused(bench, session, before)
            except NotFound:
                continue
            except WorkbenchError:
                # The next round tries again.
                failed += 1
                continue
            if gone is not None:
                deleted += 1
                caller = Caller(project=project)
                await _note(door, caller, gone, f"nobody has used it for {leftovers.KEPT_DAYS} days")
    if deleted:
        door.log.event("info", "mcp.sweep", deleted=deleted)
    return failed


async def _projects(door: Door) -> list[ProjectId]:
    """Those with keys, without which nobody comes; and the one of who needs none."""
    known = await door.service.access.list_keys(requests.ListKeys(by=_THE_SERVER))
    return sorted({DEFAULT_PROJECT, *(key.project for key in known.keys)})


async def _note(door: Door, caller: Caller, session: Session, why: str) -> None:
    with contextlib.suppress(WorkbenchError):
        spec = session.spec
        await door.service.access.note(caller, "session.delete", session=spec.id, user=spec.user, detail=why)
