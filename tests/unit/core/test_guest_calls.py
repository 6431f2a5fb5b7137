"""Calls from inside: for the session that the host names and for no other, within limits, and each written down."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.core.standins import FakeClock, FakeHost, NoFetching, WorldRecords, no_installs

from workbench.contracts.services import Completion, Found, Question
from workbench.core import requests
from workbench.core.call_limits import CallLimiter, CallLimits
from workbench.core.guest_calls import CallDone, GuestCalls
from workbench.core.helpers import Helpers
from workbench.core.links import LinkSigner
from workbench.core.router.basic_tools import BasicTools
from workbench.core.router.catalogue import Catalogue
from workbench.core.router.router import Router
from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder
from workbench.errors import StoreUnavailable, UpstreamLimited
from workbench.model.calls import MAX_CALL_BYTES, Caller, GuestCall
from workbench.model.configuration import Choice, SandboxSwitches, SessionConfig
from workbench.model.ids import CallId, CellId, KernelId, ProjectId, SandboxId, SessionId
from workbench.model.records import AuditEntry
from workbench.model.session import Session
from workbench.storage.disk import DiskMountStore

THEIRS = ProjectId("theirs")
ADDRESS = "http://127.0.0.1:1"


class EchoModel:
    """Answers with what it was asked; `fails` instead, if there is something."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.fails: Exception | None = None
        self.gate: asyncio.Event | None = None

    async def complete(self, question: Question) -> Completion:
        self.asked.append(question)
        if self.gate is not None:
            await self.gate.wait()
        if self.fails is not None:
            raise self.fails
        return Completion(text=f"echo {question.query}", model="m", prompt_tokens=7, completion_tokens=5)

    async def aclose(self) -> None: ...


class OneResult:
    async def search(self, query: str) -> tuple[Found, ...]:
        return (Found(title=f"About {query}", link="https://example.org/1", text="text"),) if query != "x" else ()

    async def aclose(self) -> None: ...


class World:
    def __init__(self, data: DataFolder) -> None:
        self.clock = FakeClock()
        self.records = WorldRecords()
        self.store = DiskMountStore(data)
        self.model = EchoModel()
        self.done: list[CallDone] = []
        self.files = data.files
        self.calls = self.answering()

    def answering(self, limits: CallLimits | None = None, address: str = ADDRESS) -> GuestCalls:
        limiter = CallLimiter(limits or CallLimits(), self.clock)
        router = Router(
            catalogue=Catalogue([BasicTools(model=self.model, search=OneResult(), clock=self.clock)]),
            limiter=limiter,
            audit=self.records.audit,
            memory=self.records.tools,
            clock=self.clock,
            mounts_of=lambda project: self.bench(project).mounts,
            approvals_key=lambda: b"a secret of this test",
        )
        return GuestCalls(
            records=self.records,
            clock=self.clock,
            helpers=Helpers(
                model=self.model,
                search=OneResult(),
                router=router,
                mounts_of=lambda project: self.bench(project).mounts,
                address=address,
                installs=no_installs(self.clock),
            ),
            limiter=limiter,
            tell=self.done.append,
        )

    def bench(self, project: ProjectId) -> Workbench:
        return Workbench(
            host=FakeHost(),
            records=self.records,
            mounts=self.store,
            fetching=NoFetching(),
            signer=LinkSigner(lambda: b"a secret"),
            clock=self.clock,
            installs=no_installs(self.clock),
            project=project,
        )

    async def session(self, name: str = "one", **options: Any) -> Session:
        request = requests.CreateSession(session=SessionId(name), user="ann", **options)
        (self.files / name).mkdir()
        return (await self.bench(THEIRS).create_session(request)).session

    async def ask(
        self,
        session: Session,
        operation: str,
        kernel: KernelId | None = None,
        calls: GuestCalls | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        body = json.dumps({"operation": operation, "arguments": arguments}).encode()
        return await self.send(body, session.sandbox, kernel or session.kernel, calls)

    async def send(
        self, body: bytes, sandbox: SandboxId, kernel: KernelId | None, calls: GuestCalls | None = None
    ) -> dict[str, Any]:
        caller = Caller(sandbox=sandbox, kernel=kernel, cell=CellId("c-1"))
        told = await (calls or self.calls).answer(GuestCall(id=CallId("call"), caller=caller, body=body))
        answer = json.loads(told.body)
        assert told.failed == bool(answer["error"])
        assert set(answer) == {"result", "error", "code"}
        return dict(answer)

    async def audit(self) -> list[AuditEntry]:
        return [one for one in await self.records.audit.list(THEIRS) if one.action.startswith("helper.")]


@pytest.fixture
def world(tmp_path: Path) -> World:
    data = DataFolder(tmp_path / "data")
    data.make()
    return World(data)


async def test_a_call_is_answered_and_written_down_without_what_was_in_it(world: World) -> None:
    session = await world.session()
    told = await world.ask(session, "invoke_llm", query="my secret plan", reasoning_effort="high")
    assert told == {"result": "echo my secret plan", "error": "", "code": ""}
    assert world.model.asked == [Question("my secret plan", "high")]
    (entry,) = await world.audit()
    assert (entry.session, entry.user, entry.action, entry.outcome) == ("one", "ann", "helper.invoke_llm", "ok")
    assert entry.detail.startswith("c-1, ")
    assert entry.detail.endswith("7 and 5 tokens")
    assert "plan" not in repr(entry)
    assert [(done.operation, done.outcome, done.prompt_tokens) for done in world.done] == [("invoke_llm", "ok", 7)]


async def test_a_sandbox_that_no_session_lives_in_gets_nothing(world: World) -> None:
    session = await world.session()
    body = json.dumps({"operation": "invoke_llm", "arguments": {"query": "x", "session": "one"}}).encode()
    for sandbox, kernel in ((SandboxId("sb-forged"), session.kernel), (session.sandbox, KernelId("forged"))):
        assert (await world.send(body, sandbox, kernel))["code"] == "denied"
    assert world.model.asked == []


async def test_a_session_that_is_being_deleted_gets_nothing(world: World) -> None:
    session = await world.session()
    assert await world.records.sessions(THEIRS).replace(session, replace(session, ending=True))
    assert (await world.ask(session, "invoke_llm", query="x"))["code"] == "denied"


async def test_a_process_that_left_its_kernel_asks_for_the_root_of_the_family(world: World) -> None:
    session = await world.session("root")
    branch = replace(
        session, spec=replace(session.spec, id=SessionId("a-branch")), kernel=KernelId("twig"), parent=session.spec.id
    )
    assert await world.records.sessions(THEIRS).add_branch(branch, session)
    body = json.dumps({"operation": "web_search", "arguments": {"query": "y"}}).encode()
    await world.send(body, session.sandbox, None)
    await world.send(body, session.sandbox, KernelId("twig"))
    assert [entry.session for entry in await world.audit()] == ["a-branch", "root"]


@pytest.mark.parametrize("operation", ["run_tool", "invoke_llm", "web_search"])
async def test_without_tool_execution_three_are_refused(world: World, operation: str) -> None:
    session = await world.session(config=SessionConfig(sandbox=SandboxSwitches(tool_execution=False)))
    (world.files / "one" / "a.txt").write_text("a")
    told = await world.ask(session, operation, query="x", tool_slug="X")
    assert (told["code"], "switched off" in told["error"]) == ("denied", True)
    assert (await world.ask(session, "file_key", path="a.txt"))["code"] == ""


@pytest.mark.parametrize(
    "config",
    [
        SessionConfig(toolkits=Choice(disable=("composio_search",))),
        SessionConfig(toolkits=Choice(require_approval=("composio_search",))),
        SessionConfig(tags=Choice(require_approval=("openWorldHint",))),
    ],
)
async def test_helpers_are_no_way_around_what_a_configuration_says_of_their_tools(
    world: World, config: SessionConfig
) -> None:
    session = await world.session(config=config)
    told = [await world.ask(session, one, query="x") for one in ("invoke_llm", "web_search")]
    assert [one["code"] for one in told] == ["denied", "denied"]
    assert world.model.asked == []


async def test_tools_and_the_proxy_say_that_there_is_no_toolkit(world: World) -> None:
    session = await world.session()
    tool = await world.ask(session, "run_tool", tool_slug="GMAIL_SEND_EMAIL", arguments={})
    proxy = await world.ask(session, "proxy", toolkit="gmail", method="GET", endpoint="/")
    assert (tool["code"], proxy["code"]) == ("not_configured", "not_found")
    assert "no toolkit is configured" in tool["error"]
    assert "GMAIL_SEND_EMAIL" in tool["error"]


async def test_what_was_found_is_told_with_titles_links_and_text(world: World) -> None:
    session = await world.session()
    found = await world.ask(session, "web_search", query="rust")
    assert found["result"] == "1. About rust\nhttps://example.org/1\ntext"
    assert (await world.ask(session, "web_search", query="x"))["result"] == "Nothing was found."


async def test_a_link_to_a_file_leads_to_the_server_and_holds_no_key(world: World) -> None:
    session = await world.session()
    (world.files / "one" / "a b.csv").write_text("1,2\n")
    told = (await world.ask(session, "file_link", path="a b.csv"))["result"]
    assert told["url"].startswith(f"{ADDRESS}/files/one/files/a%20b.csv?")
    assert (told["name"], told["size"], told["type"], told["key"]) == ("a b.csv", 4, "text/csv", "one/a b.csv")
    alone = await world.ask(session, "file_link", path="a b.csv", calls=world.answering(address=""))
    assert (alone["code"], "workbench serve" in alone["error"]) == ("not_configured", True)
    assert (await world.ask(session, "file_key", path="none"))["code"] == "not_found"
    assert (await world.ask(session, "file_link", path="../two/a"))["code"] == "invalid_request"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b'{"operation": "none", "arguments": {}}', b'{"operation": 1}'],
)
async def test_what_is_no_call_is_refused_and_reaches_nobody(world: World, body: bytes) -> None:
    session = await world.session()
    assert (await world.send(body, session.sandbox, session.kernel))["code"] == "invalid_request"
    assert world.model.asked == []


@pytest.mark.parametrize("query", [None, 3, "", " ", "x" * 200_001])
async def test_a_query_that_cannot_be_is_refused_before_it_is_sent(world: World, query: object) -> None:
    session = await world.session()
    told = await world.ask(session, "invoke_llm", query=query)
    assert (told["code"], "query" in told["error"]) == ("invalid_request", True)
    assert world.model.asked == []


async def test_what_a_service_raises_is_told_with_its_code(world: World) -> None:
    session = await world.session()
    world.model.fails = UpstreamLimited("later")
    told = await world.ask(session, "invoke_llm", query="x")
    assert told == {"result": None, "error": "later", "code": "upstream_limited"}
    assert [entry.outcome for entry in await world.audit()] == ["upstream_limited"]


async def test_calls_beyond_the_rate_are_refused_until_time_has_passed(world: World) -> None:
    session, other = await world.session(), await world.session("other")
    calls = world.answering(CallLimits(a_minute=30))
    codes = [(await world.ask(session, "web_search", query="y", calls=calls))["code"] for _ in range(200)]
    assert "rate_limited" in codes
    assert (await world.ask(other, "web_search", query="y", calls=calls))["code"] == ""
    world.clock.seconds += 120
    assert (await world.ask(session, "web_search", query="y", calls=calls))["code"] == ""


async def test_refusals_for_being_too_often_are_written_down_once_a_minute(world: World) -> None:
    session = await world.session(config=SessionConfig(sandbox=SandboxSwitches(tool_execution=False)))
    calls = world.answering(CallLimits(a_minute=30, a_cell=10))
    codes = [(await world.ask(session, "invoke_llm", query="y", calls=calls))["code"] for _ in range(200)]
    assert codes.count("denied") == 10
    assert codes.count("quota_exceeded") + codes.count("rate_limited") == 190
    assert {"quota_exceeded", "rate_limited"} <= set(codes)
    assert [entry.outcome for entry in await world.audit()] == ["quota_exceeded", *["denied"] * 10]
    world.clock.seconds += 61
    await world.ask(session, "invoke_llm", query="y", calls=calls)
    assert len(await world.audit()) == 12


async def test_calls_beyond_those_of_a_cell_are_refused_for_good(world: World) -> None:
    session = await world.session()
    calls = world.answering(CallLimits(a_cell=2))
    told = [await world.ask(session, "web_search", query="y", calls=calls) for _ in range(3)]
    assert [one["code"] for one in told] == ["", "", "quota_exceeded"]
    assert "another cell" in told[2]["error"]


async def test_calls_beyond_those_at_once_are_refused_and_the_others_go_on(world: World) -> None:
    session = await world.session()
    world.model.gate = asyncio.Event()
    calls = world.answering(CallLimits(at_once=2))
    waiting = [asyncio.create_task(world.ask(session, "invoke_llm", query="x", calls=calls)) for _ in range(2)]
    while len(world.model.asked) < 2:
        await asyncio.sleep(0)
    assert (await world.ask(session, "invoke_llm", query="x", calls=calls))["code"] == "rate_limited"
    world.model.gate.set()
    assert [(await one)["code"] for one in waiting] == ["", ""]


async def test_a_call_that_is_given_up_is_written_down_as_that(world: World) -> None:
    session = await world.session()
    world.model.gate = asyncio.Event()
    asking = asyncio.create_task(world.ask(session, "invoke_llm", query="x"))
    while not world.model.asked:
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert [entry.outcome for entry in await world.audit()] == ["abandoned"]


async def test_an_answer_that_does_not_fit_is_an_error(world: World) -> None:
    session = await world.session()
    body = json.dumps({"operation": "invoke_llm", "arguments": {"query": "\u20ac" * 10}}).encode()

    class Wordy(EchoModel):
        async def complete(self, question: Question) -> Completion:
            return Completion(text="x" * MAX_CALL_BYTES, model="m", prompt_tokens=0, completion_tokens=0)

    world.model = Wordy()
    told = await world.send(body, session.sandbox, session.kernel, world.answering())
    assert told["code"] == "too_large"


async def test_a_store_that_cannot_write_the_audit_costs_no_answer_and_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await world.session()

    async def fails(_: AuditEntry) -> None:
        raise StoreUnavailable("full")

    monkeypatch.setattr(world.records.audit, "add", fails)
    assert (await world.ask(session, "web_search", query="y"))["code"] == ""
    assert [done.written_down for done in world.done] == [False]
