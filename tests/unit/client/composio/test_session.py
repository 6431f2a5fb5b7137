"""The client of the sessions API against a server on the loopback that answers as a test says."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.client.loopback import DROPPED, KEY, Loopback, Reply, serving

from workbench import Composio, CustomTool
from workbench.errors import (
    Conflict,
    InvalidRequest,
    NotFound,
    ServerUnavailable,
    Unauthenticated,
    UpstreamRefused,
)

DONE = {"data": {"results": "2"}, "error": None, "log_id": "cel-1", "result_type": "completed"}


def session_body(mcp_url: str = "http://127.0.0.1:1/tool_router/trs_1/mcp", **changes: Any) -> dict[str, Any]:
    config = {
        "user_id": "user_123",
        "manage_connections": {
            "enabled": True,
            "enable_wait_for_connections": False,
            "enable_connection_removal": True,
        },
        "workbench": {
            "enable": True,
            "proxy_execution_enabled": True,
            "tool_execution_enabled": True,
            "sandbox_size": "standard",
            "something_new": 1,
        },
        "preload": {"tools": []},
        "search": {"enable": True},
        "execute": {"enable_multi_execute": True},
        "instant": False,
    }
    body = {
        "session_id": "trs_1",
        "mcp": {"type": "http", "url": mcp_url},
        "tool_router_tools": ["COMPOSIO_REMOTE_WORKBENCH"],
        "config": config,
        "config_version": 1,
        "experimental": {"assistive_prompt": "hello"},
        "something_new": 1,
    }
    return body | changes


def refused(status: int, slug: str, message: str = "no") -> Reply:
    told = {"message": message, "code": 4300, "slug": slug, "status": status, "request_id": "req-1"}
    return Reply(status, {"error": told})


SESSION = Reply(201, session_body())


@contextlib.contextmanager
def client(loopback: Loopback) -> Iterator[Composio]:
    with Composio(KEY, loopback.url, retry_for_s=10.0) as composio:
        yield composio


def test_the_first_argument_of_create_is_the_user_by_position_and_by_name() -> None:
    with serving(SESSION) as loopback, client(loopback) as composio:
        assert composio.create("user_123").user_id == "user_123"
        assert composio.create(user_id="user_123").session_id == "trs_1"
        assert composio.sessions.create("user_123").config_version == 1
    bodies = [asked.body for asked in loopback.asked]
    assert bodies == [{"user_id": "user_123", "manage_connections": {"enable": True}}] * 3
    assert {(asked.method, asked.target) for asked in loopback.asked} == {("POST", "/api/v3.1/tool_router/session")}


def test_keywords_are_those_that_programs_use() -> None:
    with Composio(KEY, "http://127.0.0.1:1") as composio:
        names = set(inspect.signature(composio.create).parameters)
    assert names >= {
        "user_id", "toolkits", "tools", "tags", "manage_connections", "auth_configs", "connected_accounts", "sandbox",
        "workbench", "multi_account", "proxy_execute", "preload", "session_preset", "experimental", "mcp",
    }  # fmt: skip


def test_a_session_tells_what_it_is() -> None:
    with serving(SESSION) as loopback, client(loopback) as composio:
        session = composio.create("user_123")
        assert (session.sandbox.enable, session.workbench.sandbox_size) == (True, "standard")
        assert (session.mcp.type, session.mcp.url) == ("http", "http://127.0.0.1:1/tool_router/trs_1/mcp")
        assert session.experimental.assistive_prompt == "hello"
        assert session.tool_router_tools == ["COMPOSIO_REMOTE_WORKBENCH"]


def test_the_key_goes_with_the_mcp_address_of_the_same_server_and_with_no_other() -> None:
    with serving(SESSION) as loopback, client(loopback) as composio:
        own = Reply(body=session_body(f"{loopback.url}/tool_router/trs_1/mcp"))
        loopback.script[:] = [own]
        assert composio.use("trs_1").mcp.headers == {"x-api-key": KEY}
        for elsewhere in ("http://127.0.0.2:1/mcp", f"https://127.0.0.1:{loopback.port}/mcp", "http://127.0.0.1/mcp"):
            loopback.script[:] = [Reply(body=session_body(elsewhere))]
            assert composio.use("trs_1").mcp.headers == {}


def test_the_key_can_be_read_and_is_not_in_what_is_printed() -> None:
    with serving(SESSION) as loopback, client(loopback) as composio:
        loopback.script[:] = [Reply(201, session_body(f"{loopback.url}/tool_router/trs_1/mcp"))]
        session = composio.create("user_123")
        assert (composio.api_key, composio.base_url) == (KEY, loopback.url)
        for value in (composio, vars(composio), session, session.mcp, vars(session), composio.sessions):
            assert KEY not in repr(value)


def test_a_tool_is_never_asked_for_twice() -> None:
    for lost in (DROPPED, Reply(pieces=(" ",), breaks_off=True), Reply(502, text="bad gateway")):
        with serving(SESSION, lost, Reply(body=DONE)) as loopback, client(loopback) as composio:
            session = composio.create("user_123")
            with pytest.raises(ServerUnavailable):
                session.execute("COMPOSIO_REMOTE_WORKBENCH", {"code_to_execute": "1 + 1"})
        assert len(loopback.asked) == 2


def test_white_space_keeps_a_long_tool_alive() -> None:
    long = Reply(pieces=(" ", "\n", " ", json.dumps(DONE)))
    with serving(SESSION, long) as loopback, client(loopback) as composio:
        assert composio.create("user_123").execute("COMPOSIO_REMOTE_WORKBENCH").data == {"results": "2"}


def test_a_refusal_is_an_error_of_the_tree() -> None:
    with serving(refused(404, "ToolRouterV2_SessionNotFound")) as loopback, client(loopback) as composio:
        with pytest.raises(NotFound) as raised:
            composio.use("trs_nope")
        assert raised.value.context["request_id"] == "req-1"


def test_a_change_keeps_what_the_server_answered_and_a_conflict_changes_nothing() -> None:
    changed = Reply(body=session_body(config_version=2))
    conflict = refused(409, "ToolRouterV2_ConfigVersionConflict")
    with serving(SESSION, changed, conflict) as loopback, client(loopback) as composio:
        session = composio.create("user_123")
        assert session.update(sandbox={"sandbox_size": "medium"}).user_id == "user_123"
        assert session.config_version == 2
        with pytest.raises(Conflict):
            session.update(toolkits=["github"], expected_config_version=1)
        assert session.config_version == 2
    assert [asked.body for asked in loopback.asked[1:]] == [
        {"workbench": {"sandbox_size": "medium"}},
        {"toolkits": {"enable": ["github"]}, "expected_config_version": 1},
    ]


def tool_body(slug: str, schema: dict[str, Any]) -> dict[str, Any]:
    toolkit = {"slug": "composio", "name": "Composio", "logo": ""}
    older = {"available_versions": [], "displayName": slug, "is_deprecated": False, "toolkit": toolkit, "version": "1"}
    return {
        "slug": slug,
        "name": slug,
        "description": f"what {slug} does",
        "human_description": "",
        "input_parameters": schema,
        "output_parameters": {},
        "tags": [],
        "scopes": [],
        "no_auth": True,
        "version": "1",
        "available_versions": ["1"],
        "toolkit": toolkit,
        "deprecated": older,
        "something_new": 1,
    }


def page_body(*items: dict[str, Any], next_cursor: str | None = None) -> dict[str, Any]:
    return {
        "items": list(items),
        "next_cursor": next_cursor,
        "total_pages": 1,
        "current_page": 1,
        "total_items": len(items),
    }


def test_tools_are_functions_for_a_model_and_come_from_every_page() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    first = Reply(body=page_body(tool_body("A", schema), next_cursor="c"))
    second = Reply(body=page_body(tool_body("B", {"type": "object", "properties": {}})))
    with serving(SESSION, first, second) as loopback, client(loopback) as composio:
        tools = composio.create("user_123").tools()
    assert [tool["function"]["name"] for tool in tools] == ["A", "B"]
    assert tools[0] == {
        "type": "function",
        "function": {"name": "A", "description": "what A does", "parameters": schema},
    }
    assert [asked.target.partition("?")[2] for asked in loopback.asked[1:]] == ["limit=500", "limit=500&cursor=c"]


def linked() -> Reply:
    return Reply(201, {"link_token": "lt_1", "redirect_url": "https://x/link", "connected_account_id": "ca_9"})


def account(status: str, **more: Any) -> Reply:
    return Reply(body={"id": "ca_9", "status": status, "user_id": "user_123", **more})


def test_a_connection_is_waited_for() -> None:
    with serving(SESSION, linked(), account("INITIATED"), account("ACTIVE")) as loopback, client(loopback) as composio:
        request = composio.create("user_123").authorize("github", callback_url="https://cb", alias="work")
        assert (request.id, request.status, request.redirect_url) == ("ca_9", "INITIATED", "https://x/link")
        assert request.wait_for_connection(timeout=60).id == "ca_9"
        assert request.status == "ACTIVE"
    assert loopback.asked[1].body == {"toolkit": "github", "callback_url": "https://cb", "alias": "work"}


def test_a_connection_that_does_not_come_is_given_up_with_what_to_do() -> None:
    with serving(SESSION, linked(), account("INITIATED")) as loopback, client(loopback) as composio:
        request = composio.create("user_123").authorize("github")
        with pytest.raises(TimeoutError, match=r"ca_9 is INITIATED after 0 s.*https://x/link"):
            request.wait_for_connection(timeout=0)


def test_a_connection_that_failed_is_not_waited_for() -> None:
    failed = account("FAILED", status_reason="denied by the user")
    with serving(SESSION, linked(), failed) as loopback, client(loopback) as composio:
        request = composio.create("user_123").authorize("github")
        with pytest.raises(UpstreamRefused, match="FAILED: denied by the user"):
            request.wait_for_connection()


def test_toolkits_tell_whether_they_are_connected() -> None:
    active = {"id": "ca_1", "status": "ACTIVE", "auth_config": {"id": "ac_1", "auth_scheme": "OAUTH2"}}
    page = {
        "items": [
            {"slug": "github", "name": "GitHub", "meta": {"logo": "https://l"}, "connected_account": active},
            {"slug": "slack", "name": "Slack", "is_no_auth": False, "connected_account": None},
            {"slug": "hackernews", "name": "Hacker News", "is_no_auth": True},
        ],
        "next_cursor": None,
        "total_pages": 1,
    }
    with serving(SESSION, Reply(body=page)) as loopback, client(loopback) as composio:
        github, slack, news = composio.create("user_123").toolkits().items
    assert github.connection is not None
    assert github.connection.is_active
    assert github.connection.auth_config is not None
    assert (github.connection.auth_config.mode, github.logo) == ("OAUTH2", "https://l")
    assert slack.connection is not None
    assert not slack.connection.is_active
    assert news.connection is None


GREP = CustomTool(
    slug="GREP",
    description="Search files",
    input_schema={"type": "object", "properties": {"pattern": {"type": "string"}}},
    execute=lambda arguments: {"found": arguments["pattern"]},
)
DEFINED = {"slug": "GREP", "name": "GREP", "description": "Search files", "input_schema": GREP.input_schema}


def named(slug: str) -> dict[str, Any]:
    tool = {**DEFINED, "slug": slug, "original_slug": "GREP"}
    return session_body(experimental={"assistive_prompt": "", "custom_tools": [tool]})


def test_a_tool_of_this_program_is_described_to_the_server_and_runs_here() -> None:
    with serving(Reply(201, named("LOCAL_GREP")), Reply(body=DONE)) as loopback, client(loopback) as composio:
        session = composio.create("user_123", experimental={"custom_tools": [GREP]})
        assert [tool.slug for tool in session.custom_tools()] == ["LOCAL_GREP"]
        for slug in ("LOCAL_GREP", "GREP", "local_grep"):
            assert session.execute(slug, {"pattern": "x"}).data == {"found": "x"}
        failed = session.execute("LOCAL_GREP", {})
        assert (failed.successful, failed.error) == (False, "GREP: KeyError: 'pattern'")
        assert session.execute("OTHER").successful
    assert loopback.asked[0].body["experimental"] == {"custom_tools": [DEFINED]}
    assert [asked.body for asked in loopback.asked[1:]] == [
        {"tool_slug": "OTHER", "experimental": {"custom_tools": [DEFINED]}}
    ]


def asked_for(*slugs: str) -> dict[str, Any]:
    tools = [{"tool_slug": slug, "arguments": {"pattern": "x"}} for slug in slugs]
    return {"tools": tools, "sync_response_to_workbench": False}


def test_tools_of_this_program_among_others_are_run_here_and_come_back_in_their_places() -> None:
    theirs = [{"tool_slug": "OTHER", "index": 0, "response": {"successful": True, "data": {}}, "error": None}]
    answer = {**DONE, "data": {"results": theirs, "total_count": 1, "success_count": 1, "error_count": 0}}
    with serving(Reply(201, named("LOCAL_GREP")), Reply(body=answer)) as loopback, client(loopback) as composio:
        session = composio.create("user_123", custom_tools=[GREP])
        done = session.execute("COMPOSIO_MULTI_EXECUTE_TOOL", asked_for("LOCAL_GREP", "OTHER", "LOCAL_GREP"))
    assert done.successful
    assert [(one["index"], one["tool_slug"]) for one in done.data["results"]] == [
        (0, "LOCAL_GREP"),
        (1, "OTHER"),
        (2, "LOCAL_GREP"),
    ]
    assert done.data["results"][0]["response"] == {"successful": True, "data": {"found": "x"}}
    assert (done.data["total_count"], done.data["success_count"], done.data["error_count"]) == (3, 3, 0)
    assert [one["tool_slug"] for one in loopback.asked[1].body["arguments"]["tools"]] == ["OTHER"]


def test_nothing_runs_here_of_a_call_that_the_server_refuses() -> None:
    ran: list[object] = []
    tool = dataclasses.replace(GREP, execute=ran.append)
    refusal = refused(400, "ToolRouterV2_BadRequest")
    with serving(Reply(201, named("LOCAL_GREP")), refusal) as loopback, client(loopback) as composio:
        session = composio.create("user_123", custom_tools=[tool])
        with pytest.raises(InvalidRequest):
            session.execute("COMPOSIO_MULTI_EXECUTE_TOOL", asked_for("LOCAL_GREP", "OTHER"))
    assert ran == []


def test_a_call_that_the_server_did_not_run_is_not_done_by_halves_either() -> None:
    ran: list[object] = []
    tool = dataclasses.replace(GREP, execute=ran.append)
    late = {"data": {}, "error": "not run: the store is away", "log_id": "", "result_type": "failed"}
    with serving(Reply(201, named("LOCAL_GREP")), Reply(body=late)) as loopback, client(loopback) as composio:
        session = composio.create("user_123", custom_tools=[tool])
        done = session.execute("COMPOSIO_MULTI_EXECUTE_TOOL", asked_for("LOCAL_GREP", "OTHER"))
    assert (done.successful, done.error, ran) == (False, "not run: the store is away", [])


def test_tools_of_this_program_are_still_known_after_a_change() -> None:
    told = {"assistive_prompt": "it is another one now"}
    changed = Reply(body=session_body(config_version=2, experimental=told))
    with serving(Reply(201, named("LOCAL_GREP")), changed) as loopback, client(loopback) as composio:
        session = composio.create("user_123", custom_tools=[GREP])
        session.update(experimental={"assistive_prompt": {"user_timezone": "Europe/London"}})
        assert [tool.slug for tool in session.custom_tools()] == ["LOCAL_GREP"]
        assert session.experimental.assistive_prompt == "it is another one now"
    sent = loopback.asked[1].body
    assert sent == {"experimental": {"assistive_prompt_config": {"user_timezone": "Europe/London"}}}


def test_two_calls_of_the_same_words_are_told_apart() -> None:
    with serving(SESSION, Reply(body=DONE)) as loopback, client(loopback) as composio:
        session = composio.create("user_123")
        for _ in range(2):
            session.execute("X")
    assert len({asked.headers["x-call-id"] for asked in loopback.asked[1:]}) == 2


def test_a_call_of_which_all_are_of_this_program_is_not_sent_and_may_fail_as_a_whole() -> None:
    tool = dataclasses.replace(GREP, execute=lambda arguments: arguments["nothing"])
    with serving(Reply(201, named("LOCAL_GREP"))) as loopback, client(loopback) as composio:
        session = composio.create("user_123", custom_tools=[tool])
        done = session.execute("COMPOSIO_MULTI_EXECUTE_TOOL", asked_for("LOCAL_GREP"))
    assert (done.successful, done.error) == (False, "all 1 tools failed; each says why in `results`")
    assert done.data["results"][0]["error"] == "GREP: KeyError: 'nothing'"
    assert len(loopback.asked) == 1


def test_a_session_that_exists_is_told_of_such_tools_again() -> None:
    with serving(Reply(body=named("LOCAL_X_GREP"))) as loopback, client(loopback) as composio:
        session = composio.use("trs_1", custom_tools=[GREP])
        assert session.execute("LOCAL_X_GREP", {"pattern": "y"}).data == {"found": "y"}
    assert loopback.asked[0].target == "/api/v3.1/tool_router/session/trs_1/attach"


def test_a_preset_is_spelled_out_and_what_was_said_rules() -> None:
    with serving(SESSION) as loopback, client(loopback) as composio:
        composio.create("u", toolkits=["github"], session_preset="direct_tools", preload=["GITHUB_X"])
        with pytest.raises(InvalidRequest, match="session_preset must be 'direct_tools'"):
            composio.create("u", session_preset="direct")
    assert loopback.asked[0].body == {
        "user_id": "u",
        "toolkits": {"enable": ["github"]},
        "manage_connections": {"enable": False},
        "workbench": {"enable": False},
        "preload": {"tools": ["GITHUB_X"]},
        "search": {"enable": False},
        "execute": {"enable_multi_execute": False},
    }


def test_values_come_from_the_environment_of_the_field_and_then_from_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPEN_WORKBENCH_URL", "http://127.0.0.1:2")
    monkeypatch.setenv("OPEN_WORKBENCH_API_KEY", "wbk_ours")
    monkeypatch.delenv("COMPOSIO_BASE_URL", raising=False)
    monkeypatch.delenv("COMPOSIO_API_KEY", raising=False)
    with Composio() as composio:
        assert (composio.base_url, composio.api_key) == ("http://127.0.0.1:2", "wbk_ours")
    monkeypatch.setenv("COMPOSIO_BASE_URL", "http://127.0.0.1:3/")
    monkeypatch.setenv("COMPOSIO_API_KEY", "wbk_theirs")
    with Composio() as composio:
        assert (composio.base_url, composio.api_key) == ("http://127.0.0.1:3", "wbk_theirs")
        monkeypatch.setenv("COMPOSIO_API_KEY", "wbk_later")
        assert composio.api_key == "wbk_theirs"
    with Composio("wbk_given", "http://127.0.0.1:4") as composio:
        assert (composio.base_url, composio.api_key) == ("http://127.0.0.1:4", "wbk_given")


def test_a_missing_key_is_an_error_that_names_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMPOSIO_API_KEY", raising=False)
    monkeypatch.delenv("OPEN_WORKBENCH_API_KEY", raising=False)
    with pytest.raises(Unauthenticated, match=r"COMPOSIO_API_KEY or OPEN_WORKBENCH_API_KEY.*COMPOSIO_BASE_URL"):
        Composio()
