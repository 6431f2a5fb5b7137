"""Tools run in a session: in its sandbox, by its model and search, many at once; each end in the shape of SDKs."""

from __future__ import annotations

import ast
import http.client
import json
import re
import time
import urllib.parse
from typing import Any

import httpx2
import pytest
from tests.composio.asking import bad_request, refused
from tests.composio.tools.calling import ANSWER, BASH, CHAT, WORKBENCH, Calling, configured
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, make_key, running
from tests.services.running import Running as Faulty

from workbench.model.access import Scope

MULTI = "COMPOSIO_MULTI_EXECUTE_TOOL"


def test_code_runs_in_the_session_and_its_state_stays(calling: Calling, prefix: str) -> None:
    calling.prefix = prefix
    told = calling.run(WORKBENCH, {"code_to_execute": "x = 20\nprint('said')\nx + 1", "thought": "try"})
    assert (told["data"]["results"], told["data"]["stdout"], told["data"]["stderr"]) == ("21", "said\n", "")
    assert (told["data"]["error"], len(told["data"]["sandbox_id_suffix"])) == ("", 4)
    assert re.fullmatch(r"c-[0-9a-f]{12}", told["log_id"])
    assert calling.python("x * 2") == "40"
    answer = calling.client.get(f"/v1/sessions/{calling.session}/cells/{told['log_id']}")
    assert answer.json()["code"].startswith("x = 20")


def test_bash_runs_beside_it_with_counts_of_lines(calling: Calling) -> None:
    data = calling.data(BASH, {"command": "pwd; echo two >&2"})
    assert (data["stdout"], data["stdoutLines"], data["stderr"], data["stderrLines"]) == ("/home/user\n", 1, "two\n", 1)
    told = calling.run(BASH, {"command": "echo before; exit 3"})
    assert (told["error"], told["data"]["stdout"]) == ("the command exited with 3", "before\n")


def test_a_cell_that_raised_has_failed_with_all_that_it_said(calling: Calling) -> None:
    told = calling.run(WORKBENCH, {"code_to_execute": "print('so far')\n1/0"})
    assert told["result_type"] == "failed"
    assert told["error"] == "the code raised ZeroDivisionError: division by zero"
    assert told["data"]["stdout"] == "so far\n"
    assert "ZeroDivisionError" in told["data"]["error"]


def test_the_word_of_a_workflow_is_told_back_and_leads_into_no_other_session(
    calling: Calling, client: httpx2.Client, made: list[str]
) -> None:
    other = configured(client, made)
    other.python("secret = 1")
    told = calling.run(WORKBENCH, {"code_to_execute": "'secret' in globals()", "session_id": other.session})
    assert (told["data"]["results"], told["data"]["session"]["id"]) == ("False", other.session)
    assert calling.data(WORKBENCH, {"code_to_execute": "1", "session_id": "gate"})["session"]["id"] == "gate"


def test_what_is_known_to_be_wrong_has_a_status_and_names_it(
    calling: Calling, client: httpx2.Client, made: list[str]
) -> None:
    bad_request(calling.post("execute", {"tool_slug": WORKBENCH}), "code_to_execute", "missing")
    bad_request(
        calling.post("execute", {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": 3}}), "code_to_execute"
    )
    bad_request(calling.post("execute", {"arguments": {}}), "tool_slug")
    bad_request(calling.post("execute", {"tool_slug": BASH, "arguments": []}), "arguments")
    gone = Calling(client, "trs_none")
    refused(gone.post("execute", {"tool_slug": "X"}), 404, "ToolRouterV2_SessionNotFound", 4304, "trs_none")
    off = configured(client, made, workbench={"enable": False})
    told = off.post("execute", {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": "1"}})
    assert told.status_code == 400, told.text
    assert "sandbox" in told.json()["error"]["message"]


def test_a_tool_that_there_is_not_has_failed_with_its_name_and_the_nearest(calling: Calling) -> None:
    told = calling.run("GITHUB_GET_A_PULL_REQUEST", {"owner": "x"})
    assert told["result_type"] == "failed"
    assert "GITHUB_GET_A_PULL_REQUEST" in told["error"]
    assert "no toolkit is configured" in told["error"]
    assert told["log_id"].startswith("log_")
    assert f"did you mean {ANSWER}" in calling.run("COMPOSIO_SEARCH_EXA_ANSWR")["error"]


def test_a_tool_of_the_clients_is_not_run_here(calling: Calling) -> None:
    tool = {"slug": "GREP", "name": "Grep", "description": "d", "input_schema": {"type": "object", "properties": {}}}
    told = calling.run("LOCAL_GREP", {}, experimental={"custom_tools": [tool]})
    assert "the SDK that defined it" in told["error"]


def test_the_model_answers_as_chat_completions_do(calling: Calling, models: Faulty, prefix: str) -> None:
    calling.prefix = prefix
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "say:one two"}]
    told = calling.run(CHAT, {"model": "openai/gpt-oss-120b", "messages": messages, "temperature": 0.5})
    choice = told["data"]["choices"][0]
    assert (choice["message"], choice["finish_reason"]) == ({"role": "assistant", "content": "one two"}, "stop")
    assert told["data"]["model"] == "small"
    (asked,) = models.seen()
    assert asked.json()["messages"] == messages
    assert asked.json()["model"] == "small"


def test_a_conversation_is_passed_on_as_one(calling: Calling, models: Faulty) -> None:
    messages = [
        {"role": "user", "content": "my name is Ann"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "what is it?"},
    ]
    calling.data(CHAT, {"messages": messages, "reasoning_effort": "low"})
    (asked,) = models.seen()
    assert asked.json()["messages"] == [
        {"role": "user", "content": "User: my name is Ann\n\nAssistant: hello\n\nUser: what is it?\n\nAssistant:"}
    ]
    assert asked.json()["reasoning_effort"] == "low"


@pytest.mark.parametrize("name", ["content", "query"])
def test_the_web_is_searched_with_sources(calling: Calling, searches: Faulty, name: str) -> None:
    data = calling.data(ANSWER, {name: "rust & co"})
    assert data["answer"].startswith("1. Page 0 & more of rust & co\nhttps://example.org/")
    assert data["citations"][0]["url"] == "https://example.org/page?number=0&of=many"
    assert len(searches.seen()) == 1


@pytest.mark.parametrize(
    ("slug", "arguments", "word"),
    [
        (CHAT, {}, "messages"),
        (CHAT, {"messages": [{"role": "robot", "content": "x"}]}, "role"),
        (CHAT, {"messages": [{"role": "system", "content": "x"}]}, "user"),
        (CHAT, {"messages": [{"role": "user", "content": "x"}], "reasoning_effort": "some"}, "reasoning_effort"),
        (ANSWER, {}, "content"),
        (ANSWER, {"content": 3}, "content"),
    ],
)
def test_arguments_that_cannot_be_used_have_failed_by_name_and_reach_nobody(
    calling: Calling, models: Faulty, searches: Faulty, slug: str, arguments: dict[str, Any], word: str
) -> None:
    told = calling.run(slug, arguments)
    assert told["result_type"] == "failed"
    assert word in told["error"]
    assert models.seen() + searches.seen() == []


def test_calls_are_written_down_without_what_was_in_them(calling: Calling) -> None:
    calling.data(ANSWER, {"content": "my secret plan"})
    calling.run("GITHUB_X", {"a": "my secret plan"})
    told = calling.client.get("/v1/audit", params={"session": calling.session}).json()["items"]
    rows = [(one["action"], one["outcome"], one["detail"]) for one in told if one["action"] == "tool.execute"]
    assert rows == [("tool.execute", "failed", "GITHUB_X"), ("tool.execute", "ok", ANSWER)]
    assert "secret" not in json.dumps(told)


def test_meta_tools_have_an_address_of_their_own_and_others_are_refused_there(calling: Calling) -> None:
    answer = calling.post("execute_meta", {"slug": WORKBENCH, "arguments": {"code_to_execute": "6 * 7"}})
    assert answer.json()["data"]["results"] == "42"
    bad_request(calling.post("execute_meta", {"slug": CHAT, "arguments": {}}), CHAT, "execute")


def test_a_meta_tool_that_the_session_does_not_offer_is_refused_with_the_switch(
    client: httpx2.Client, made: list[str]
) -> None:
    off = configured(client, made, search={"enable": False}, execute={"enable_multi_execute": False})
    query = {"tool_slug": "COMPOSIO_SEARCH_TOOLS", "arguments": {"queries": [{"use_case": "x"}]}}
    bad_request(off.post("execute", query), "search.enable")
    bad_request(off.post("execute", {"tool_slug": MULTI, "arguments": {}}), "enable_multi_execute")
    bad_request(off.post("execute", {"tool_slug": "COMPOSIO_SUBMIT_FEEDBACK"}), "submit_feedback")


def test_feedback_is_kept_in_the_audit(client: httpx2.Client, made: list[str]) -> None:
    told = configured(client, made, experimental={"submit_feedback": {"enable": True}})
    told.data("COMPOSIO_SUBMIT_FEEDBACK", {"feedback": "wrong page", "tool_slug": ANSWER})
    items = client.get("/v1/audit", params={"session": told.session}).json()["items"]
    assert [one["detail"] for one in items if one["action"] == "tool.feedback"] == [f"{ANSWER}: wrong page"]


def test_many_run_at_once_each_with_its_own_end_in_order(calling: Calling, models: Faulty) -> None:
    tools: list[dict[str, Any]] = [
        {"tool_slug": CHAT, "arguments": {"messages": [{"role": "user", "content": f"say:q{n}"}]}} for n in range(12)
    ]
    tools[3] = {"tool_slug": "GITHUB_X", "arguments": {}}
    tools[5] = {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": "1"}}
    tools[7] = {"tool_slug": ANSWER}
    data = calling.data(MULTI, {"tools": tools, "sync_response_to_workbench": False, "session_id": "gate"})
    assert [one["index"] for one in data["results"]] == list(range(12))
    assert [one["tool_slug"] for one in data["results"]] == [one["tool_slug"] for one in tools]
    assert (data["total_count"], data["success_count"], data["error_count"]) == (12, 9, 3)
    errors = {number: one["error"] for number, one in enumerate(data["results"]) if one["error"]}
    assert set(errors) == {3, 5, 7}
    assert "meta tool" in errors[5]
    assert data["results"][8]["response"]["data"]["choices"][0]["message"]["content"] == "q8"
    assert data["results"][8]["response"]["successful"] is True
    assert data["session"]["id"] == "gate"
    assert "remote_file_info" not in data
    assert len(models.seen()) == 9


def test_when_all_of_many_failed_the_call_has(calling: Calling) -> None:
    told = calling.run(MULTI, {"tools": [{"tool_slug": "X"}], "sync_response_to_workbench": False})
    assert (told["result_type"], told["data"]["error_count"]) == ("failed", 1)


@pytest.mark.parametrize("tools", [[], [{"tool_slug": "X"}] * 51, [{}], "X"])
def test_a_batch_that_cannot_be_is_refused_before_anything_runs(calling: Calling, tools: Any) -> None:
    arguments = {"tools": tools, "sync_response_to_workbench": False}
    bad_request(calling.post("execute", {"tool_slug": MULTI, "arguments": arguments}), "tools")


def test_answers_go_to_a_file_that_the_sandbox_reads(calling: Calling) -> None:
    tools = [{"tool_slug": CHAT, "arguments": {"messages": [{"role": "user", "content": "say:whole"}]}}]
    data = calling.data(MULTI, {"tools": tools, "sync_response_to_workbench": True})
    path = data["remote_file_info"]["file_path"]
    assert path.startswith("/mnt/files/tool_responses/")
    # It is small, so it is here as well.
    assert data["results"][0]["response"]["data"]["choices"]
    said = calling.python(
        f"import json; json.load(open({path!r}))['results'][0]['response']['data']['choices'][0]['message']['content']"
    )
    assert said == "'whole'"


def test_large_answers_are_replaced_by_a_preview_that_is_no_data(client: httpx2.Client, made: list[str]) -> None:
    small = configured(client, made, workbench={"enable": True, "auto_offload_threshold": 300})
    long = {"messages": [{"role": "user", "content": f"say:{'word ' * 200}"}]}
    tools = [{"tool_slug": CHAT, "arguments": long}]
    data = small.data(MULTI, {"tools": tools, "sync_response_to_workbench": False})
    response = data["results"][0]["response"]
    assert response["data"] == {}
    assert response["data_preview"]["note"].startswith("This is no data")
    assert "choices: list of 1" in response["data_preview"]["shape"]
    path = data["remote_file_info"]["file_path"]
    assert path in response["data_preview"]["note"]
    one = small.data(CHAT, long, enable_auto_workbench_offload=True)
    assert set(one) == {"data_preview", "remote_file_info"}
    where = one["remote_file_info"]["file_path"]
    whole = f"import json; len(json.load(open({where!r}))['choices'][0]['message']['content'])"
    assert int(small.python(whole)) > 900
    assert small.data(CHAT, long)["choices"]


def test_code_inside_reaches_the_same_tools_but_no_meta_tools(calling: Calling, searches: Faulty) -> None:
    told = calling.python(f"run_composio_tool({ANSWER!r}, {{'content': 'rust'}}, print_schema_for_tool=False)")
    result, error = ast.literal_eval(told)
    assert (error, result["result_type"], result["data"]["citations"][0]["title"][:4]) == ("", "completed", "Page")
    assert len(searches.seen()) == 1
    refused_meta = ast.literal_eval(calling.python(f"run_composio_tool({MULTI!r}, {{}})"))
    assert refused_meta[0] is None
    assert "not called from inside" in refused_meta[1]
    unknown = ast.literal_eval(calling.python("run_composio_tool('GITHUB_X')"))
    assert CHAT in unknown[1]


def test_tools_are_for_sdks_also_where_code_inside_has_none(client: httpx2.Client, made: list[str]) -> None:
    off = configured(client, made, workbench={"enable": True, "enable_tool_execution": False})
    assert off.data(ANSWER, {"content": "rust"})["answer"]
    assert off.python("'run_composio_tool' in globals()") == "False"


def test_a_long_cell_shows_headers_at_once_and_then_signs_of_life(calling: Calling, server: Running) -> None:
    calling.python("import time")
    where = urllib.parse.urlsplit(server.url)
    line = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    body = {"tool_slug": WORKBENCH, "arguments": {"code_to_execute": "time.sleep(7); print('end')"}}
    began = time.monotonic()
    try:
        line.request(
            "POST",
            f"{calling.address}/execute",
            json.dumps(body),
            {"x-api-key": server.key, "content-type": "application/json"},
        )
        answer = line.getresponse()
        assert (answer.status, answer.getheader("content-type")) == (200, "application/json")
        assert time.monotonic() - began < 3.0
        first = answer.read1(1)
        assert (first, time.monotonic() - began < 3.0) == (b" ", True)
        rest = answer.read()
    finally:
        line.close()
    assert rest.startswith(b" ")
    assert json.loads(rest)["data"]["stdout"] == "end\n"


def test_a_token_of_the_session_in_its_own_header_runs_tools_in_it_and_in_no_other(
    calling: Calling, client: httpx2.Client, server: Running, made: list[str]
) -> None:
    other = configured(client, made)
    token = client.post(f"/v1/sessions/{calling.session}/tokens", json={}).json()["token"]
    with server.client("") as bearer:
        bearer.headers["x-session-access-key"] = token
        assert Calling(bearer, calling.session).python("1 + 1") == "2"
        told = Calling(bearer, other.session).post("execute", {"tool_slug": ANSWER, "arguments": {"content": "x"}})
        assert told.status_code == 403
        for_user = bearer.post(f"/api/v3.1/tools/execute/{ANSWER}", json={"user_id": "x", "arguments": {}})
        assert for_user.status_code == 403


def test_without_a_session_a_user_has_one_whose_state_stays(
    client: httpx2.Client, made: list[str], prefix: str
) -> None:
    def run(user: str, code: str) -> dict[str, Any]:
        answer = client.post(
            f"{prefix}/tools/execute/{WORKBENCH}",
            json={"user_id": user, "version": "latest", "arguments": {"code_to_execute": code}},
        )
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        assert set(told) == {"data", "error", "successful", "log_id"}
        made.append(client.get("/v1/sessions", params={"user_id": user}).json()["items"][0]["id"])
        return told

    run("ann@example.org", "y = 5")
    told = run("ann@example.org", "y + 1")
    assert (told["data"]["results"], told["successful"], told["error"]) == ("6", True, None)
    assert re.fullmatch(r"user-[0-9a-f]{24}", made[-1])
    other = run("bob@example.org", "y")
    assert (other["successful"], "NameError" in other["error"]) == (False, True)
    bad_request(client.post(f"{prefix}/tools/execute/{WORKBENCH}", json={"arguments": {}}), "user_id")


def test_a_key_without_sessions_runs_nothing(calling: Calling, server: Running) -> None:
    key = make_key(server.settings, Scope.PROXY)
    with server.client(key.presented) as client:
        told = Calling(client, calling.session).post("execute", {"tool_slug": ANSWER, "arguments": {"content": "x"}})
    assert told.status_code == 403


def test_calls_that_are_refused_for_their_number_do_not_fill_the_audit() -> None:
    with own_settings(calls_per_minute=1) as settings, running(settings) as server, server.client() as client:
        calling = configured(client, [])
        ask = {"tool_slug": "COMPOSIO_SEARCH_EXA_ANSWER", "arguments": {"content": "x"}}
        statuses = [calling.post("execute", ask).status_code for _ in range(100)]
        entries = client.get("/v1/audit", params={"limit": 500}).json()["items"]
    outcomes = [one["outcome"] for one in entries if one["action"] == "tool.execute"]
    assert statuses.count(429) > 30
    assert (outcomes.count("quota_exceeded"), len(outcomes)) == (1, statuses.count(200) + 1)
