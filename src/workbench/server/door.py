"""What all requests of one app share, and what is noted about each of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from workbench.core.workbench import Workbench
from workbench.model.access import Caller
from workbench.model.ids import SessionId
from workbench.server.in_flight import Request
from workbench.server.joining import Joining
from workbench.server.kept import Kept
from workbench.server.metrics import Metrics
from workbench.server.service import ServerOptions, Service


class Door:
    """One per app."""

    def __init__(self, service: Service, options: ServerOptions) -> None:
        self.service = service
        self.options = options
        self.log = options.log
        self.metrics = Metrics()
        self.kept = Kept(options.log)
        self.stopping = asyncio.Event()
        """the server is about to leave: streams end, and nothing is waited for much longer"""
        self.leaving = asyncio.Event()
        """there is no more time for what still runs; it goes on without the server"""
        self.joining = Joining(self.kept)


@dataclass(slots=True)
class Note:
    """What the log will say of a request; filled in on its way."""

    request_id: str
    caller: Caller | None = None
    session: str = ""
    outcome: str = ""
    counted: Request | None = None
    """among those in flight; None where nobody has to be known"""
    body_left: bool = False
    """more of its body may come, which nobody will read"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request that may go on: who asks for what."""

    door: Door
    note: Note
    caller: Caller
    workbench: Workbench
    """of the caller's project"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionVisit(Visit):
    """One about a session, which may or may not exist."""

    session: SessionId
