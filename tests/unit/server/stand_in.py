"""A service that says what a test wants it to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from workbench.contracts.host import OutputPage
from workbench.core import requests
from workbench.core.caretaker import Round, Settled
from workbench.errors import NotFound
from workbench.model.access import Caller
from workbench.model.execution import CellResult, Outcome, Piece, PieceKind, Receipt
from workbench.model.ids import CellId, KeyId, ProjectId, SandboxId, SessionId
from workbench.model.records import CellKind, CellRecord, CellStatus
from workbench.server.app import make_app
from workbench.server.logs import Log
from workbench.server.service import ServerOptions

KEY = "wbk_test_secret"


def record(status: CellStatus = CellStatus.ENDED, code: str = "1") -> CellRecord:
    """Of a cell."""
    result = CellResult(cell=CellId("c-1"), outcome=Outcome.OK, receipt=Receipt(epoch=1))
    return CellRecord(
        id=CellId("c-1"),
        session=SessionId("mine"),
        kind=CellKind.CELL,
        code=code,
        limit_s=5.0,
        sandbox=SandboxId("sb-1"),
        created_at="2026-01-01T00:00:00.000000Z",
        status=status,
        result=result if status is CellStatus.ENDED else None,
    )


def page(*texts: str, at: int, ended: bool = False, dropped: int = 0) -> OutputPage:
    """Of what was printed."""
    pieces = tuple(Piece(kind=PieceKind.STDOUT, text=text) for text in texts)
    return OutputPage(pieces=pieces, next_offset=at, ended=ended, dropped_bytes=dropped)


class StandInConfigurations:
    """Of no session."""

    async def get(self, session: SessionId) -> Any:
        raise NotFound(f"no session {session!r}")


class StandInWorkbench:
    """Each method calls what the test put there."""

    def __init__(self) -> None:
        self.perform: Callable[[requests.RunCell], Any] = self._nothing
        self.submit: Callable[[requests.RunCell], Any] = self._nothing
        self.get_cell: Callable[[requests.GetCell], Any] = self._nothing
        self.read_output: Callable[[requests.ReadOutput], Any] = self._nothing
        self.list_cells: Callable[[requests.ListCells], Any] = self._nothing
        self.notebook_parts: Callable[[requests.ExportNotebook], Any] = self._nothing
        self.restart_kernel: Callable[[requests.RestartKernel], Any] = self._nothing
        self.describe_session: Callable[[requests.DescribeSession], Any] = self._nothing
        self.user_of: Callable[[SessionId], Any] = self._nothing
        self.configurations: Any = StandInConfigurations()

    async def _nothing(self, request: object) -> Any:
        raise AssertionError(f"nobody expected {request}")


class StandInAccess:
    """Whoever has a key is the caller."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.good = True

    async def still_good(self, caller: Caller) -> bool:
        assert caller == self.caller
        return self.good

    async def authenticate(self, presented: str) -> Caller:
        assert presented == KEY
        return self.caller


class StandInCaretaker:
    """Counts."""

    def __init__(self) -> None:
        self.looks = 0

    async def settle_pending(self) -> Settled:
        return Settled(finished=0, pending=frozenset())

    async def look(self) -> Round:
        self.looks += 1
        return Round()


class StandInService:
    """All of it."""

    def __init__(self, caller: Caller | None = None) -> None:
        self.access: Any = StandInAccess(caller or Caller(project=ProjectId("p"), key=KeyId("test")))
        self.caretaker: Any = StandInCaretaker()
        self.router: Any = None
        self.connections: Any = None
        self.links: Any = None
        self.toolkits: Any = None
        self.bench = StandInWorkbench()
        self.checks = {"records": "ok", "host": "ok"}

    def workbench(self, project: ProjectId) -> Any:
        return self.bench

    async def answer_calls(self, *, address: str, tell: Any) -> None:
        """Nobody calls."""
        del address, tell
        await asyncio.Event().wait()

    async def check(self) -> dict[str, str]:
        return self.checks


class Asked:
    """An app on a stand-in, and a client of it."""

    def __init__(self, service: StandInService, client: httpx2.AsyncClient, app: Any, lines: list[str]) -> None:
        self.service = service
        self.client = client
        self.app = app
        self.lines = lines

    @property
    def bench(self) -> StandInWorkbench:
        return self.service.bench

    def events(self) -> list[dict[str, Any]]:
        """What was logged."""
        return [json.loads(line) for line in self.lines]


@asynccontextmanager
async def asked(service: StandInService | None = None, **options: Any) -> AsyncIterator[Asked]:
    """With its start-up and its shut-down."""
    lines: list[str] = []
    service = service or StandInService()
    app = make_app(service, ServerOptions(log=Log("debug", lines.append), **options))
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    headers = {"authorization": f"Bearer {KEY}"}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client,
    ):
        yield Asked(service, client, app, lines)
