"""Tools run for sessions: bounded, counted, each end in its place, and nothing that a key may not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.core.router.sources import Source, tool
from tests.unit.core.standins import FakeClock, FakeHost, NoFetching, WorldRecords

from workbench.core import requests
from workbench.core.call_limits import CallLimiter, CallLimits
from workbench.core.links import LinkSigner
from workbench.core.router import router as routing
from workbench.core.router.catalogue import Catalogue
from workbench.core.router.router import Execute, Router
from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder
from workbench.errors import Denied, InvalidRequest, QuotaExceeded, SandboxOff, UpstreamRefused
from workbench.model.configuration import Choice, SandboxSwitches, SessionConfig, ToolChoice
from workbench.model.ids import SessionId
from workbench.model.session import Session
from workbench.model.toolkit import ToolCall, Toolkit, ToolResult
from workbench.storage.disk import DiskMountStore

APP = Toolkit(slug="app", name="App", no_auth=True)
META = Toolkit(slug="composio", name="Composio", no_auth=True)
DO = tool("APP_DO", "app")


class World:
    def __init__(self, data: DataFolder) -> None:
        self.clock = FakeClock()
        self.records = WorldRecords()
        self.files = data.files
        self.gate: asyncio.Event | None = None
        self.at_once = 0
        self.most_at_once = 0
        self.source = Source((APP,), (DO,), self._do)
        self.sandbox = Source((META,), (tool("COMPOSIO_REMOTE_WORKBENCH", "composio"),))
        self.bench = Workbench(
            host=FakeHost(),
            records=self.records,
            mounts=DiskMountStore(data),
            fetching=NoFetching(),
            signer=LinkSigner(lambda: b"a secret"),
            clock=self.clock,
        )

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
            catalogue=Catalogue([self.source]),
            limiter=CallLimiter(CallLimits(**limits), self.clock),
            audit=self.records.audit,
            clock=self.clock,
            mounts_of=lambda _: self.bench.mounts,
        )

    async def session(self, config: SessionConfig | None = None, name: str = "one") -> Session:
        (self.files / name).mkdir()
        ask = requests.CreateSession(session=SessionId(name), user="ann", config=config or SessionConfig())
        return (await self.bench.create_session(ask)).session

    async def execute(self, session: Session, slug: str, router: Router | None = None, **more: Any) -> ToolResult:
        return await (router or self.router()).execute(Execute(session=session, slug=slug, **more), self.sandbox)


async def _timing_out(_: ToolCall) -> ToolResult:
    raise TimeoutError("of its own")


@pytest.fixture
def world(tmp_path: Path) -> World:
    data = DataFolder(tmp_path / "data")
    data.make()
    return World(data)


async def test_a_tool_is_run_for_the_session_by_its_source(world: World) -> None:
    session = await world.session()
    told = await world.execute(session, " app_do ", arguments={"a": 1}, account="ca_1")
    assert (told.data, told.error, told.log_id[:4]) == ({"did": {"a": 1}}, "", "log_")
    (call,) = world.source.calls
    assert (call.slug, call.session, call.account) == ("APP_DO", session, "ca_1")


async def test_what_a_source_raises_and_what_it_says_are_both_results(world: World) -> None:
    session = await world.session()
    assert (await world.execute(session, "APP_DO", arguments={"raise": 1})).error == "no, said the app"
    assert (await world.execute(session, "APP_DO", arguments={"error": "it broke"})).data["did"]


async def test_one_that_takes_for_ever_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "_MOST_S", 0.01)
    world.gate = asyncio.Event()
    told = await world.execute(await world.session(), "APP_DO")
    assert "given up" in told.error
    assert world.at_once == 0


async def test_a_timeout_inside_a_source_is_not_told_as_ours(world: World) -> None:
    world.source = Source((APP,), (DO,), _timing_out)
    with pytest.raises(TimeoutError, match="of its own"):
        await world.execute(await world.session(), "APP_DO")


async def test_calls_count_with_those_of_the_session(world: World) -> None:
    session, router = await world.session(), world.router(a_minute=1)
    for _ in range(64):
        await world.execute(session, "APP_DO", router)
    with pytest.raises(QuotaExceeded):
        await world.execute(session, "APP_DO", router)
    assert len(world.source.calls) == 64
    many = {"tools": [{"tool_slug": "APP_DO"}], "sync_response_to_workbench": False}
    told = await world.execute(session, "COMPOSIO_MULTI_EXECUTE_TOOL", router, arguments=many)
    assert "calls a minute" in told.data["results"][0]["error"]


async def test_many_are_run_side_by_side_within_a_bound(world: World) -> None:
    world.gate = asyncio.Event()
    tools = [{"tool_slug": "APP_DO", "arguments": {"n": n}} for n in range(50)]
    arguments = {"tools": tools, "sync_response_to_workbench": False}
    running = asyncio.create_task(
        world.execute(await world.session(), "COMPOSIO_MULTI_EXECUTE_TOOL", arguments=arguments)
    )
    for _ in range(20):
        await asyncio.sleep(0)
    assert world.at_once == 10
    world.gate.set()
    told = await running
    assert [one["response"]["data"]["did"]["n"] for one in told.data["results"]] == list(range(50))
    assert world.most_at_once == 10


async def test_a_file_that_cannot_be_written_costs_no_answer(world: World) -> None:
    session = await world.session()
    (world.files / "one" / "tool_responses").write_text("in the way")
    arguments = {"tools": [{"tool_slug": "APP_DO", "arguments": {"a": 1}}], "sync_response_to_workbench": True}
    told = await world.execute(session, "COMPOSIO_MULTI_EXECUTE_TOOL", arguments=arguments)
    assert told.error == ""
    assert told.data["results"][0]["response"]["data"] == {"did": {"a": 1}}
    assert "could not be written" in told.data["remote_file_info"]["error"]


async def test_many_small_answers_that_are_too_much_together_go_to_a_file(world: World) -> None:
    session = await world.session(SessionConfig(sandbox=SandboxSwitches(auto_offload_threshold=500)))
    tools = [{"tool_slug": "APP_DO", "arguments": {"text": "x" * 100}}] * 10
    arguments = {"tools": tools, "sync_response_to_workbench": False}
    told = await world.execute(session, "COMPOSIO_MULTI_EXECUTE_TOOL", arguments=arguments)
    path = world.files / "one" / told.data["remote_file_info"]["mount_relative_path"]
    assert len(json.loads(path.read_text())["results"]) == 10
    assert all(one["response"]["data"] == {} for one in told.data["results"])
    assert len(json.dumps(told.data)) < 20_000


async def test_without_a_sandbox_nothing_is_put_where_nobody_reads_it(world: World) -> None:
    switches = SandboxSwitches(enable=False, auto_offload_threshold=10)
    session = await world.session(SessionConfig(sandbox=switches))
    told = await world.execute(session, "APP_DO", arguments={"text": "x" * 100}, offload=True)
    assert told.data["did"]["text"] == "x" * 100
    with pytest.raises(SandboxOff):
        await world.execute(session, "COMPOSIO_REMOTE_WORKBENCH", arguments={"code_to_execute": "1"})


async def test_a_file_that_was_asked_for_is_written_without_a_sandbox_and_nobody_is_sent_to_one(world: World) -> None:
    session = await world.session(SessionConfig(sandbox=SandboxSwitches(enable=False)))
    arguments = {"tools": [{"tool_slug": "APP_DO", "arguments": None}], "sync_response_to_workbench": True}
    told = await world.execute(session, "COMPOSIO_MULTI_EXECUTE_TOOL", arguments=arguments)
    assert told.data["results"][0]["response"]["data"] == {"did": {}}
    assert (world.files / "one" / told.data["remote_file_info"]["mount_relative_path"]).exists()
    assert "next_steps" not in told.data
    assert "sandbox" not in told.data["remote_file_info"]["instructions"]


async def test_tools_of_the_sandbox_are_run_by_who_was_brought_for_it(world: World) -> None:
    told = await world.execute(await world.session(), "COMPOSIO_REMOTE_WORKBENCH", arguments={"a": 1})
    assert told.data == {"echo": {"a": 1}}
    assert len(world.sandbox.calls) == 1


async def test_from_inside_meta_tools_and_tools_of_clients_are_refused(world: World) -> None:
    session, router = await world.session(), world.router()
    assert (await router.run_inside(ToolCall(slug="app_do", arguments={}, session=session))).data == {"did": {}}
    for slug in ("COMPOSIO_REMOTE_BASH_TOOL", "composio_search_tools"):
        with pytest.raises(Denied, match="inside"):
            await router.run_inside(ToolCall(slug=slug, arguments={}, session=session))
    with pytest.raises(InvalidRequest, match="client"):
        await router.run_inside(ToolCall(slug="LOCAL_GREP", arguments={}, session=session))


async def test_a_key_that_is_not_for_raw_calls_makes_none_by_the_tool(world: World) -> None:
    session = await world.session(SessionConfig(proxy_execute=True))
    arguments = {"toolkit": "app", "endpoint": "/", "method": "GET"}
    with pytest.raises(Denied, match="proxy"):
        await world.execute(session, "COMPOSIO_PROXY_EXECUTE", arguments=arguments)
    told = await world.execute(session, "COMPOSIO_PROXY_EXECUTE", arguments=arguments, may_proxy=True)
    assert "cannot be reached" in told.error


async def test_a_token_runs_no_tools_where_they_were_taken_away_from_the_sessions_code(world: World) -> None:
    config = SessionConfig(sandbox=SandboxSwitches(tool_execution=False))
    session = await world.session(config)
    for slug in ("APP_DO", "COMPOSIO_SEARCH_TOOLS", "COMPOSIO_MULTI_EXECUTE_TOOL"):
        with pytest.raises(Denied, match="switched off for session one"):
            await world.execute(session, slug, for_code=True)
    assert world.source.calls == []
    assert (await world.execute(session, "APP_DO")).error == ""


async def test_feedback_is_counted_as_a_call_so_that_nobody_fills_the_audit(world: World) -> None:
    session, router = await world.session(SessionConfig(submit_feedback=True)), world.router(a_minute=1)
    said = {"feedback": "not right"}
    for _ in range(64):
        await world.execute(session, "COMPOSIO_SUBMIT_FEEDBACK", router, arguments=said)
    # A second goes by with each, and one more may be said in a minute.
    await world.execute(session, "COMPOSIO_SUBMIT_FEEDBACK", router, arguments=said)
    with pytest.raises(QuotaExceeded):
        await world.execute(session, "COMPOSIO_SUBMIT_FEEDBACK", router, arguments=said)


async def test_a_tool_of_the_sandbox_that_is_ruled_out_by_its_name_is_not_run(world: World) -> None:
    choice = ToolChoice(tools=Choice(disable=("COMPOSIO_REMOTE_WORKBENCH",)))
    session = await world.session(SessionConfig(tools={"composio": choice}))
    with pytest.raises(InvalidRequest, match="ruled out by its name"):
        await world.execute(session, "COMPOSIO_REMOTE_WORKBENCH", arguments={"code_to_execute": "1"})
    assert world.sandbox.calls == []
