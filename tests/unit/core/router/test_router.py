"""Tools run for sessions: bounded, counted, each end in its place, and nothing that a key may not."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.unit.core.router.world import World

from workbench.core.connection_requests import FinishByFields
from workbench.core.router import calling
from workbench.errors import Denied, InvalidRequest, QuotaExceeded, SandboxOff
from workbench.model.configuration import Choice, ManageConnections, SandboxSwitches, SessionConfig, ToolChoice
from workbench.model.toolkit import AuthKind, ToolCall, ToolResult


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
    monkeypatch.setattr(calling, "MOST_S", 0.01)
    world.gate = asyncio.Event()
    told = await world.execute(await world.session(), "APP_DO")
    assert "given up" in told.error
    assert world.at_once == 0


async def _timing_out(_: ToolCall) -> ToolResult:
    raise TimeoutError("of its own")


async def test_a_timeout_inside_a_source_is_not_told_as_ours(world: World) -> None:
    world.source._does = _timing_out
    with pytest.raises(TimeoutError, match="of its own"):
        await world.execute(await world.session(), "APP_DO")


async def test_calls_count_with_those_of_the_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session, router = await world.session(), world.router(a_minute=1)
    monkeypatch.setattr(world.clock, "now_iso", lambda: world.clock.after(0))
    for _ in range(64):
        await world.execute(session, "APP_DO", router)
    with pytest.raises(QuotaExceeded):
        await world.execute(session, "APP_DO", router)
    assert len(world.source.calls) == 64
    many = {"tools": [{"tool_slug": "APP_DO"}], "sync_response_to_workbench": False}
    told = await world.execute(session, "COMPOSIO_MULTI_EXECUTE_TOOL", router, arguments=many)
    assert "calls a minute" in told.data["results"][0]["error"]


async def test_all_that_one_call_may_have_are_run_side_by_side_and_told_in_order(world: World) -> None:
    world.gate = asyncio.Event()
    tools = [{"tool_slug": "APP_DO", "arguments": {"n": n}} for n in range(50)]
    arguments = {"tools": tools, "sync_response_to_workbench": False}
    running = asyncio.create_task(
        world.execute(await world.session(), "COMPOSIO_MULTI_EXECUTE_TOOL", arguments=arguments)
    )
    for _ in range(200):
        await asyncio.sleep(0)
    assert world.at_once == 50
    world.gate.set()
    told = await running
    assert [one["response"]["data"]["did"]["n"] for one in told.data["results"]] == list(range(50))


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
    assert "not called by HTTP" in told.error


async def test_a_token_runs_no_tools_where_they_were_taken_away_from_the_sessions_code(world: World) -> None:
    config = SessionConfig(sandbox=SandboxSwitches(tool_execution=False))
    session = await world.session(config)
    for slug in ("APP_DO", "COMPOSIO_SEARCH_TOOLS", "COMPOSIO_MULTI_EXECUTE_TOOL"):
        with pytest.raises(Denied, match="switched off for session one"):
            await world.execute(session, slug, for_code=True)
    assert world.source.calls == []
    assert (await world.execute(session, "APP_DO")).error == ""


async def test_arguments_are_checked_before_anything_is_called(world: World) -> None:
    session = await world.session()
    await world.connect(session)
    told = await world.execute(session, "MAIL_SEND", arguments={"copies": 2})
    assert "`to` is missing" in told.error
    assert "Whom to." in told.error
    told = await world.execute(session, "MAIL_SEND", arguments={"to": 5})
    assert "`to` has to be a text, not a whole number (5)" in told.error
    with pytest.raises(InvalidRequest, match="`copies` has to be a whole number"):
        await world.router().run_inside(
            ToolCall(slug="MAIL_SEND", arguments={"to": "x", "copies": "two"}, session=session)
        )
    assert world.source.calls == []
    # What nobody filled in is left out.
    assert (await world.execute(session, "MAIL_SEND", arguments={"to": "x", "copies": None})).error == ""
    assert world.source.calls[0].arguments == {"to": "x"}


async def test_a_call_sent_again_with_the_same_mark_has_the_same_key_for_the_service(world: World) -> None:
    session = await world.session()
    for mark in ("a", "a", "b", "", ""):
        await world.execute(session, "APP_DO", mark=mark)
    keys = [call.idempotency_key for call in world.source.calls]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert all(len(key) == 32 for key in keys)
    other = await world.session(name="two")
    await world.execute(other, "APP_DO", mark="a")
    assert world.source.calls[-1].idempotency_key != keys[0]
    await world.many(session, ("APP_DO", {}), ("APP_DO", {}), mark="a")
    assert world.source.calls[-1].idempotency_key != world.source.calls[-2].idempotency_key


async def test_without_an_account_the_next_step_is_told_and_nothing_is_called(world: World) -> None:
    session, router = await world.session(), world.router()
    told = await world.execute(session, "MAIL_SEND", arguments={"to": "x"})
    assert "no active connection of user 'ann' with mail" in told.error
    assert "COMPOSIO_MANAGE_CONNECTIONS" in told.error
    with pytest.raises(Denied, match="no active connection"):
        await router.run_inside(ToolCall(slug="MAIL_READ", arguments={}, session=session))
    assert world.source.calls == []


async def test_a_call_brings_the_credential_of_the_account_that_was_named(world: World) -> None:
    session = await world.session()
    first, second = await world.connect(session, "k-1", "home"), await world.connect(session, "k-2", "work")
    for account in ("", "home", first.id, second.id):
        assert (await world.execute(session, "MAIL_READ", account=account)).error == ""
    used = [call.credential for call in world.source.calls]
    assert [one.account for one in used if one] == [second.id, first.id, first.id, second.id]
    assert [one.values["api_key"].reveal() for one in used if one] == ["k-2", "k-1", "k-1", "k-2"]
    assert "k-1" not in repr(world.source.calls)
    told = await world.execute(session, "MAIL_READ", account="none")
    assert "no account 'none' of mail" in told.error


async def test_a_credential_that_the_service_refuses_is_told_in_clear_words(world: World) -> None:
    async def refuse(call: ToolCall) -> ToolResult:
        return ToolResult(data={}, error="401 Unauthorized", http_status=401)

    session = await world.session()
    await world.connect(session)
    world.source._does = refuse
    told = await world.execute(session, "MAIL_READ")
    assert told.error.startswith("401 Unauthorized. ")
    assert "mail" in told.error


async def test_agents_are_given_links_and_wait_for_what_becomes_of_them(world: World) -> None:
    session = await world.session(SessionConfig(manage_connections=ManageConnections(wait_for_connections=True)))
    told = await world.execute(
        session, "COMPOSIO_MANAGE_CONNECTIONS", arguments={"toolkits": ["mail", "app", "none"]}, address="http://x.test"
    )
    mail = told.data["results"]["mail"]
    assert mail["status"] == "initiated"
    assert mail["redirect_url"].startswith("http://x.test/connect/")
    assert told.data["results"]["app"]["status"] == "active"
    assert "'none' is not configured" in told.data["results"]["none"]["error_message"]
    assert told.data["summary"] == {
        "total_toolkits": 3,
        "active_connections": 1,
        "initiated_connections": 1,
        "failed_connections": 1,
    }

    async def wait(**more: str) -> dict[str, str]:
        arguments = {"toolkits": ["mail", "none"], **more}
        told = await world.execute(session, "COMPOSIO_WAIT_FOR_CONNECTIONS", arguments=arguments)
        return {slug: one["status"] for slug, one in told.data["results"].items()}

    assert await wait() == {"mail": "INITIATED", "none": "NOT_FOUND"}
    assert 45 <= world.clock.paused_s <= 55
    waiting = asyncio.create_task(wait(mode="any"))
    await asyncio.sleep(0)
    token = mail["redirect_url"].rpartition("/")[2]
    await world.links.finish(FinishByFields(token=token, kind=AuthKind.API_KEY, values={"api_key": "k-1"}))
    assert await waiting == {"mail": "ACTIVE", "none": "NOT_FOUND"}
    again = await world.execute(session, "COMPOSIO_MANAGE_CONNECTIONS", arguments={"toolkits": ["mail"]})
    assert again.data["results"]["mail"]["connected_account_id"] == mail["connected_account_id"]


async def test_a_search_tells_who_is_connected_and_what_to_do_next(world: World) -> None:
    session = await world.session(SessionConfig(tags=Choice(require_approval=("destructiveHint",))))
    ask = {"queries": [{"use_case": "send a letter to somebody"}]}
    told = (await world.execute(session, "COMPOSIO_SEARCH_TOOLS", arguments=ask)).data
    (status,) = told["toolkit_connection_statuses"]
    assert (status["toolkit"], status["description"], status["has_active_connection"]) == ("mail", "Letters.", False)
    steps = " ".join(told["next_steps_guidance"])
    assert "first call COMPOSIO_MANAGE_CONNECTIONS with toolkits=['mail']" in steps
    assert "A person is asked before these run: MAIL_SEND" in steps
    for key in ("k-1", "k-2"):
        await world.connect(session, key)
    told = (await world.execute(session, "COMPOSIO_SEARCH_TOOLS", arguments=ask)).data
    (status,) = told["toolkit_connection_statuses"]
    assert len(status["accounts"]) == 2
    assert status["has_active_connection"]


async def test_what_answers_look_like_is_remembered_without_what_they_say(world: World) -> None:
    session = await world.session()
    await world.connect(session)
    for number in range(14):
        await world.execute(session, "MAIL_SEND", arguments={"to": f"canary-{number}@example.test"})
    told = await world.execute(session, "COMPOSIO_GET_TOOL_SCHEMAS", arguments={"tool_slugs": ["mail_send"]})
    seen = told.data["tool_schemas"]["MAIL_SEND"]["seen_output"]
    assert seen == {"note": "`data` as seen in 14 calls", "shape": {"did": {"to": "string"}}}
    assert "canary" not in json.dumps(seen)
    # What failed is nothing to go by.
    await world.execute(session, "APP_DO", arguments={"error": "it broke"})
    told = await world.execute(session, "COMPOSIO_GET_TOOL_SCHEMAS", arguments={"tool_slugs": ["APP_DO"]})
    assert "seen_output" not in told.data["tool_schemas"]["APP_DO"]


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
