"""What is around the tools here: the log, the counts and the audit of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from workbench.errors import NotFound, WorkbenchError
from workbench.model.access import Caller
from workbench.model.ids import SessionId
from workbench.model.records import CellKind, CellRecord
from workbench.server.door import Door, Note
from workbench.server.metrics import outcome_of


class Who(Protocol):
    """Who calls a tool."""

    @property
    def note(self) -> Note:
        """What the log will say of the request."""
        ...

    @property
    def caller(self) -> Caller:
        """With which key."""
        ...

    @property
    def default_session(self) -> SessionId:
        """Which is made when the first call finds that there is none."""
        ...


class Around:
    """Of one request."""

    def __init__(self, door: Door, who: Who) -> None:
        self._door = door
        self._who = who

    @property
    def stopping(self) -> asyncio.Event:
        """As the protocol of surroundings says."""
        return self._door.leaving

    def keep(self, work: Coroutine[Any, Any, Any], what: str) -> asyncio.Task[Any]:
        """As the protocol says; cells and commands are counted."""
        if what in set(CellKind):
            work = self._counted(work, CellKind(what))
        return self._door.kept.start(work, what)

    async def _counted(self, work: Coroutine[Any, Any, CellRecord], kind: CellKind) -> CellRecord:
        try:
            with self._door.metrics.running.track_inprogress():
                record = await work
        except WorkbenchError as problem:
            # The session of a connection is made when the first call finds that there is none.
            if not (isinstance(problem, NotFound) and problem.context.get("session") == self._who.default_session):
                self._who.note.outcome = problem.code
                self._door.metrics.refused(kind, problem.code)
            raise
        self._who.note.session = record.session
        self._who.note.outcome = outcome_of(record)
        self._door.metrics.cell(record)
        return record

    def ran(self, record: CellRecord) -> None:
        """It was counted when it ended, whether or not somebody still waited."""

    async def note(self, action: str, session: SessionId, detail: str = "") -> None:
        """As the protocol says."""
        self._who.note.session = session
        caller, service = self._who.caller, self._door.service
        user = await service.workbench(caller.project).user_of(session)
        await service.access.note(caller, action, session=session, user=user, detail=detail)

    def defect(self, what: str, problem: BaseException) -> str:
        """As the protocol says; by the request's id."""
        self._door.log.defect(what, problem, self._who.note.request_id)
        return self._who.note.request_id
