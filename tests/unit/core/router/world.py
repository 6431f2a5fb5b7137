"""A router on real files, records and accounts, with apps that do what a test wants."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from tests.unit.core.router.sources import Source, tool
from tests.unit.core.standins import FakeClock, FakeHost, NoFetching, WorldRecords, no_installs

from workbench.contracts.connections import TokenAnswer, TokenRequest
from workbench.core import requests
from workbench.core.call_limits import CallLimiter, CallLimits
from workbench.core.connection_links import ConnectionLinks
from workbench.core.connection_requests import FinishByFields
from workbench.core.connections import Connections
from workbench.core.links import LinkSigner
from workbench.core.router.accounts import UserAccounts
from workbench.core.router.catalogue import Catalogue
from workbench.core.router.router import Execute, Outcome, Router
from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder
from workbench.errors import UpstreamRefused
from workbench.model.configuration import SessionConfig
from workbench.model.connection import ConnectedAccount
from workbench.model.ids import SessionId
from workbench.model.session import Session
from workbench.model.toolkit import AuthKind, AuthScheme, Json, ToolCall, Toolkit, ToolResult
from workbench.storage.disk import DiskMountStore
from workbench.storage.vault import vault_of

APP = Toolkit(slug="app", name="App", no_auth=True)
MAIL = Toolkit(
    slug="mail",
    name="Mail",
    description="Letters.",
    hosts=("mail.test",),
    base_url="https://mail.test/v1",
    auth=(AuthScheme(kind=AuthKind.API_KEY, name="x-key"),),
)
META = Toolkit(slug="composio", name="Composio", no_auth=True)
DO = tool("APP_DO", "app")
SEND = replace(
    tool("MAIL_SEND", "mail"),
    description="Send a letter to somebody.",
    input_schema={
        "type": "object",
        "properties": {"to": {"type": "string", "description": "Whom to."}, "copies": {"type": "integer"}},
        "required": ["to"],
    },
    tags=("destructiveHint", "openWorldHint"),
)
READ = replace(tool("MAIL_READ", "mail"), description="Read letters.", tags=("readOnlyHint",))


class NoEndpoints:
    """Nobody asks for tokens here."""

    async def ask(self, request: TokenRequest) -> TokenAnswer:
        raise AssertionError(request.url)

    async def aclose(self) -> None:
        pass


class World:
    def __init__(self, data: DataFolder) -> None:
        self.clock = FakeClock()
        self.records = WorldRecords()
        self.files = data.files
        self.gate: asyncio.Event | None = None
        self.at_once = 0
        self.most_at_once = 0
        self.source = Source((APP, MAIL), (DO, SEND, READ), self._do)
        self.sandbox = Source((META,), (tool("COMPOSIO_REMOTE_WORKBENCH", "composio"),))
        self.bench = Workbench(
            host=FakeHost(),
            records=self.records,
            mounts=DiskMountStore(data),
            fetching=NoFetching(),
            signer=LinkSigner(lambda: b"a secret"),
            clock=self.clock,
            installs=no_installs(self.clock),
        )
        self.catalogue = Catalogue([self.source])
        parts: Any = {
            "store": self.records.connections,
            "vault": vault_of(data.path / "connections.key", ""),
            "endpoints": NoEndpoints(),
            "clock": self.clock,
            "find_toolkit": lambda _, slug: self.catalogue.toolkit(slug),
        }
        self.connections = Connections(**parts)
        self.links = ConnectionLinks(**parts, connections=self.connections)

    async def _do(self, call: ToolCall) -> ToolResult:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            await (self.gate.wait() if self.gate else asyncio.sleep(0))
            if "raise" in call.arguments:
                raise UpstreamRefused("no, said the app")
            return ToolResult(data={"did": call.arguments}, error=call.arguments.get("error", ""))
        finally:
            self.at_once -= 1

    def router(self, **limits: int) -> Router:
        return Router(
            catalogue=self.catalogue,
            limiter=CallLimiter(CallLimits(**limits), self.clock),
            audit=self.records.audit,
            memory=self.records.tools,
            clock=self.clock,
            mounts_of=lambda _: self.bench.mounts,
            approvals_key=lambda: b"a secret of this test",
            accounts=UserAccounts(self.connections, self.links),
        )

    async def session(self, config: SessionConfig | None = None, name: str = "one") -> Session:
        (self.files / name).mkdir()
        ask = requests.CreateSession(session=SessionId(name), user="ann", config=config or SessionConfig())
        return (await self.bench.create_session(ask)).session

    async def outcome(self, session: Session, slug: str, router: Router | None = None, **more: Any) -> Outcome:
        return await (router or self.router()).execute(Execute(session=session, slug=slug, **more), self.sandbox)

    async def execute(self, session: Session, slug: str, router: Router | None = None, **more: Any) -> ToolResult:
        told = await self.outcome(session, slug, router, **more)
        assert isinstance(told, ToolResult)
        return told

    async def connect(self, session: Session, key: str = "k-1", alias: str = "") -> ConnectedAccount:
        """An account of the session's user with MAIL."""
        begun = await self.router().connect(session, "mail", alias=alias)
        return await self.links.finish(
            FinishByFields(token=begun.token, kind=AuthKind.API_KEY, values={"api_key": key})
        )

    async def many(self, session: Session, *calls: tuple[str, Json], **more: Any) -> Outcome:
        """Several at once."""
        tools = [{"tool_slug": slug, "arguments": arguments} for slug, arguments in calls]
        arguments = {"tools": tools, "sync_response_to_workbench": False}
        return await self.outcome(session, "COMPOSIO_MULTI_EXECUTE_TOOL", arguments=arguments, **more)
