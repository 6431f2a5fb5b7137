"""Records of cells in this process's memory."""

from __future__ import annotations

from dataclasses import replace

from workbench.contracts.storage import CellPageRequest
from workbench.errors import NotFound
from workbench.model.execution import CellResult, CommandResult
from workbench.model.ids import CellId, ProjectId, SandboxId, SessionId
from workbench.model.records import CellRecord, CellStatus, Problem, Progress
from workbench.storage.memory_rules import MemoryRuleStore
from workbench.storage.shelves import Shelves
from workbench.storage.wording import no_such_cell, no_such_session


class MemoryCellStore:
    """A CellStore without a disk."""

    def __init__(self, shelves: Shelves, project: ProjectId) -> None:
        self._shelves = shelves
        self._project = project

    async def add(self, record: CellRecord) -> CellRecord | None:
        """As the contract has it."""
        if not self._has(record.session):
            raise NotFound(no_such_session(record.session), {"session": record.session})
        known = self._find(record.session, record.id)
        if known is None and record.idempotency_key:
            known = await self.with_idempotency_key(record.session, record.idempotency_key)
        if known is None:
            self._shelves.cells[record.session, record.id] = record
        return known

    def _has(self, session: SessionId) -> bool:
        record = self._shelves.sessions.get(session)
        return record is not None and record.spec.project == self._project

    def _find(self, session: SessionId, cell: CellId) -> CellRecord | None:
        return self._shelves.cells.get((session, cell)) if self._has(session) else None

    async def get(self, session: SessionId, cell: CellId) -> CellRecord:
        """As the contract has it."""
        found = self._find(session, cell)
        if found is None:
            raise NotFound(no_such_cell(session, cell), {"session": session, "cell": cell})
        return found

    async def with_idempotency_key(self, session: SessionId, key: str) -> CellRecord | None:
        """As the contract has it."""
        return next((one for one in self._of(session) if one.idempotency_key == key), None) if key else None

    def _of(self, session: SessionId) -> list[CellRecord]:
        if not self._has(session):
            return []
        mine = [cell for cell in self._shelves.cells.values() if cell.session == session]
        return sorted(mine, key=lambda cell: (cell.created_at, cell.id))

    async def move(self, session: SessionId, cell: CellId, sandbox: SandboxId) -> None:
        """As the contract has it."""
        found = self._find(session, cell)
        if found is not None and found.status is CellStatus.PENDING:
            self._shelves.cells[session, cell] = replace(found, sandbox=sandbox)

    async def finish(
        self,
        session: SessionId,
        cell: CellId,
        at: str,
        end: CellResult | CommandResult | Problem,
        *,
        sandbox: SandboxId | None = None,
        free_key: bool = False,
    ) -> CellRecord | None:
        """As the contract has it."""
        found = self._find(session, cell)
        if found is None or found.status is not CellStatus.PENDING or sandbox not in (None, found.sandbox):
            return found
        if isinstance(end, Problem):
            done = replace(found, status=CellStatus.FAILED, ended_at=at, problem=end)
        else:
            done = replace(found, status=CellStatus.ENDED, ended_at=at, result=end)
            MemoryRuleStore(self._shelves, self._project).count(end)
        if free_key:
            done = replace(done, idempotency_key="")
        self._shelves.cells[session, cell] = done
        return done

    async def pending_in(self, sandbox: SandboxId) -> tuple[CellRecord, ...]:
        """As the contract has it."""
        cells = [cell for _, cell in sorted(self._shelves.cells.items()) if self._has(cell.session)]
        return tuple(cell for cell in cells if cell.sandbox == sandbox and cell.status is CellStatus.PENDING)

    async def list(self, request: CellPageRequest) -> tuple[CellRecord, ...]:
        """As the contract has it."""
        cells = self._of(request.session)
        if request.newest_first:
            cells.reverse()
        if (after := request.after) is not None:
            places = [(cell.created_at, cell.id) for cell in cells]
            beyond = [place < after if request.newest_first else place > after for place in places]
            cells = [cell for cell, is_beyond in zip(cells, beyond, strict=True) if is_beyond]
        return tuple(cells[: request.limit])

    async def latest_step(self, session: SessionId) -> CellRecord | None:
        """As the contract has it."""
        return next((cell for cell in reversed(self._of(session)) if cell.progress != Progress()), None)

    async def last_end(self, sessions: tuple[SessionId, ...]) -> str:
        """As the contract has it."""
        return max((cell.ended_at for session in sessions for cell in self._of(session)), default="")
