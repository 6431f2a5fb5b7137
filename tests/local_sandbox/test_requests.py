"""What the helper sends, byte for byte where it matters, and what it makes of each answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local_sandbox.boxes import Box, box_in
from tests.local_sandbox.recorder import Asked, Recorder, Told, recorder

TOKEN = "wbt_aaaaaaaaaaaa_a-secret-that-is-told-to-nobody"
GOOD = {"data": {"items": [{"id": 1}]}, "error": None, "log_id": "log_1", "result_type": "completed"}
QUICK = '{"max_retries": 2, "delay_ms": 1}'


@pytest.fixture
def outside() -> Iterator[Recorder]:
    with recorder(lambda _: Told(body=GOOD)) as server:
        yield server


@pytest.fixture
def box(outside: Recorder, tmp_path: Path) -> Box:
    env = {"BACKEND_URL": f"{outside.url}/", "COMPOSIO_TOOLROUTER_SESSION_ID": "trs_0001", "COMPOSIO_API_KEY": TOKEN}
    return box_in(tmp_path, env)


def in_turn(*told: Told) -> Any:
    """Each in its turn, the last one from then on."""
    waiting = list(told)
    return lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def test_a_tool_is_asked_for_as_the_sessions_api_has_it(outside: Recorder, box: Box) -> None:
    arguments = {"owner": "composiohq", "repo": "composio", "pull_number": 1}
    ran = box.run(f"answer = run_composio_tool(' github_get_a_pull_request ', {arguments})")
    assert ran.answer == [GOOD, ""]
    assert ran.printed.startswith("GITHUB_GET_A_PULL_REQUEST answered:\n{\n")
    (asked,) = outside.asked
    assert (asked.method, asked.path) == ("POST", "/api/v3/tool_router/session/trs_0001/execute")
    assert asked.json() == {"tool_slug": "GITHUB_GET_A_PULL_REQUEST", "arguments": arguments}
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-api-key"] == TOKEN
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", asked.headers["x-request-id"])
    assert asked.headers["user-agent"].startswith("Python-urllib/3.")


def test_an_account_is_sent_only_if_one_is_named(outside: Recorder, box: Box) -> None:
    box.run("answer = run_composio_tool('A', account='work', print_schema_for_tool=False)")
    assert outside.asked[0].json() == {"tool_slug": "A", "arguments": {}, "account": "work"}


def test_a_token_of_the_session_goes_by_its_own_header_and_alone(outside: Recorder, box: Box) -> None:
    box.answer("run_composio_tool('A')", COMPOSIO_WORKBENCH_ACCESS_KEY=TOKEN)
    assert outside.asked[0].headers["x-session-access-key"] == TOKEN
    assert "x-api-key" not in outside.asked[0].headers


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (Told(body={"data": {}, "error": "no such mail", "log_id": "l"}), "no such mail"),
        (Told(body={"data": {}, "error": {"message": "deep"}}), "{'message': 'deep'}"),
        (Told(body={"result_type": "blocked", "message": "not allowed"}), "not allowed"),
        (Told(body={"result_type": "input_required", "input_requests": {}}), "asks its user"),
        (Told(status=500, body={"x": 1}), "Composio tool execution failed with HTTP 500"),
        (
            Told(status=404, body={"error": {"message": "no such session", "suggested_fix": "make one"}}),
            "Composio tool execution failed with HTTP 404: no such session; make one",
        ),
    ],
)
def test_an_error_comes_with_the_answer_that_tells_it(outside: Recorder, box: Box, told: Told, expected: str) -> None:
    outside.answering = in_turn(told)
    result, error = box.answer(f"run_composio_tool('A', {{}}, {QUICK})")
    assert result == told.body
    assert expected in error
    assert len(outside.asked) == 1


@pytest.mark.parametrize(("told", "words"), [(Told(body="<html>"), "Failed to parse"), (Told(body="[1]"), "Failed to")])
def test_an_answer_that_is_no_object_is_given_as_it_came(outside: Recorder, box: Box, told: Told, words: str) -> None:
    outside.answering = in_turn(told)
    result, error = box.answer("run_composio_tool('A')")
    assert result == {"raw": told.body}
    assert words in error


def test_an_error_page_is_given_as_it_came(outside: Recorder, box: Box) -> None:
    outside.answering = in_turn(Told(status=502, body="<html>gone</html>"))
    assert box.answer("run_composio_tool('A')") == [
        {"raw": "<html>gone</html>"},
        "Composio tool execution failed with HTTP 502",
    ]


@pytest.mark.parametrize(
    "refusal",
    [
        Told(status=429, body={"error": {"message": "slower", "code": 1}}),
        Told(body={"data": {}, "error": "Rate limit reached"}),
        Told(body={"data": {}, "error": "429 Too Many Requests"}),
        Told(body={"data": {}, "error": "Quota exceeded for today"}),
        Told(body={"data": {}, "error": "RESOURCE EXHAUSTED"}),
    ],
)
def test_too_often_is_asked_for_again_and_nothing_else_is(outside: Recorder, box: Box, refusal: Told) -> None:
    outside.answering = in_turn(refusal, refusal, Told(body=GOOD))
    assert box.answer(f"run_composio_tool('A', {{}}, {QUICK})") == [GOOD, ""]
    assert len(outside.asked) == 3
    assert len({one.headers["x-request-id"] for one in outside.asked}) == 3
    outside.answering = in_turn(refusal)
    outside.asked.clear()
    _, error = box.answer(f"run_composio_tool('A', {{}}, {QUICK})")
    assert error
    assert len(outside.asked) == 3


def test_a_call_that_got_no_answer_is_made_once(outside: Recorder, box: Box) -> None:
    outside.answering = in_turn(Told(body=GOOD, cut=True))
    result, error = box.answer(f"run_composio_tool('A', {{}}, {QUICK})")
    assert result is None
    assert "it may have been carried out" in error
    assert len(outside.asked) == 1


def test_a_server_that_is_not_there_is_named_by_its_address_only(box: Box) -> None:
    result, error = box.answer("run_composio_tool('A')", BACKEND_URL="http://user:hidden@127.0.0.1:1/deep")
    assert result is None
    assert error.startswith("no answer from http://127.0.0.1:1: ")
    assert "hidden" not in error


def test_the_credential_is_not_sent_on_to_where_an_answer_leads(outside: Recorder, box: Box) -> None:
    with recorder(lambda _: Told(body=GOOD)) as elsewhere:
        for status in (301, 302, 303, 307, 308):
            outside.answering = in_turn(Told(status=status, headers={"location": f"{elsewhere.url}/x"}))
            _, error = box.answer("run_composio_tool('A')")
            assert f"HTTP {status}" in error
            assert "set BACKEND_URL to where it leads" in error
        assert elsewhere.asked == []


def test_running_a_tool_without_a_credential_raises_and_a_proxy_call_tells(box: Box) -> None:
    for missing, name in (
        ({"COMPOSIO_API_KEY": ""}, "COMPOSIO_API_KEY"),
        ({"COMPOSIO_TOOLROUTER_SESSION_ID": ""}, "COMPOSIO_TOOLROUTER_SESSION_ID"),
        ({"BACKEND_URL": ""}, "BACKEND_URL"),
    ):
        code = "try:\n    answer = run_composio_tool('A')\nexcept RuntimeError as problem:\n    answer = str(problem)"
        assert box.run(code, **missing).answer.startswith(f"{name} is not set")
        for call in ("proxy_execute('GET', '/x', 'github')", "invoke_llm('x')", "web_search('x')",
                     "upload_local_file('composio_helper.py')", "smart_file_extract('composio_helper.py')",
                     "get_mount_file_url('a')"):  # fmt: skip
            result, error = box.answer(call, **missing)
            assert not result
            assert f"{name} is not set" in error


def test_a_credential_that_cannot_be_sent_is_not_told(box: Box) -> None:
    for broken in ("wbt_a\nb", "wbt_ä", "wbt_\x7f"):
        _, error = box.answer("proxy_execute('GET', '/x', 'github')", COMPOSIO_API_KEY=broken)
        assert error == "COMPOSIO_API_KEY has characters that no credential has"


def test_an_address_of_another_kind_is_refused(box: Box) -> None:
    _, error = box.answer("web_search('x')", BACKEND_URL="file:///etc")
    assert error == "BACKEND_URL has to begin with http:// or https://"


def test_a_question_goes_to_the_tool_for_chats(outside: Recorder, box: Box) -> None:
    outside.answering = in_turn(Told(body={"data": {"choices": [{"message": {"content": "seven"}}]}, "error": None}))
    ran = box.run("answer = invoke_llm('how many?', 'high')")
    assert (ran.answer, ran.printed) == (["seven", ""], "")
    sent = outside.asked[0].json()
    assert sent["tool_slug"] == "COMPOSIO_SEARCH_GROQ_CHAT"
    assert sent["arguments"]["model"] == "openai/gpt-oss-120b"
    assert sent["arguments"]["temperature"] == 0.5
    assert sent["arguments"]["reasoning_effort"] == "high"
    assert [one["role"] for one in sent["arguments"]["messages"]] == ["system", "user"]
    assert sent["arguments"]["messages"][1]["content"] == "how many?"


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("```\nx\n```\n", "x"),
        ("no fence", "no fence"),
        ("see ```x``` there", "see ```x``` there"),
        ("```a\n1\n```\nand\n```b\n2\n```", "```a\n1\n```\nand\n```b\n2\n```"),
    ],
)
def test_a_fence_around_the_whole_answer_is_taken_off(outside: Recorder, box: Box, said: str, given: str) -> None:
    outside.answering = in_turn(Told(body={"data": {"choices": [{"message": {"content": said}}]}}))
    assert box.answer("invoke_llm('x')") == [given, ""]


def test_a_search_goes_to_its_tool(outside: Recorder, box: Box) -> None:
    outside.answering = in_turn(Told(body={"data": {"answer": "found"}, "error": None}))
    assert box.answer("web_search('q')") == ["found", ""]
    assert outside.asked[0].json() == {"tool_slug": "COMPOSIO_SEARCH_EXA_ANSWER", "arguments": {"content": "q"}}


@pytest.mark.parametrize("body", [{"data": {}}, {"data": {"choices": []}}, {"data": None}, {}])
def test_an_answer_without_a_text_is_an_error(outside: Recorder, box: Box, body: dict[str, Any]) -> None:
    outside.answering = in_turn(Told(body=body))
    for call in ("invoke_llm('x')", "web_search('x')"):
        result, error = box.answer(call)
        assert result == ""
        assert error


def test_a_proxy_call_is_sent_as_the_sessions_api_has_it(outside: Recorder, box: Box) -> None:
    outside.answering = in_turn(Told(body={"result_type": "completed", "status": 200, "data": {"login": "octocat"}}))
    assert box.answer("proxy_execute('get', '/user', 'GitHub', {'per_page': 1})") == [{"login": "octocat"}, ""]
    (asked,) = outside.asked
    assert (asked.method, asked.path) == ("POST", "/api/v3/tool_router/session/trs_0001/proxy_execute")
    assert asked.json() == {
        "toolkit_slug": "github",
        "endpoint": "/user",
        "method": "GET",
        "parameters": [{"name": "per_page", "value": "1", "type": "query"}],
    }
    box.answer("proxy_execute('POST', 'https://api.github.com/x', 'github', "
               "{'on': True, 'many': [1, 2], 'none': None}, {'a': 1}, {'Accept': 'text/plain'})")  # fmt: skip
    assert outside.asked[1].json() == {
        "toolkit_slug": "github",
        "endpoint": "https://api.github.com/x",
        "method": "POST",
        "parameters": [
            {"name": "on", "value": "true", "type": "query"},
            {"name": "many", "value": "1", "type": "query"},
            {"name": "many", "value": "2", "type": "query"},
            {"name": "Accept", "value": "text/plain", "type": "header"},
        ],
        "body": {"a": 1},
    }


@pytest.mark.parametrize(
    ("told", "result", "error"),
    [
        (Told(body={"status": 404, "data": {"m": "x"}}), "whole", "API returned status 404: {'m': 'x'}"),
        (Told(body={"status": "503", "data": None}), "whole", "API returned status 503: None"),
        (Told(status=400, body={"error": {"message": "no connection"}}), None, "failed with HTTP 400: no connection"),
        (Told(body="no json"), None, "Failed to parse"),
        (Told(body={"result_type": "blocked", "message": "not allowed"}), "whole", "not allowed"),
    ],
)
def test_a_proxy_call_that_failed_says_who_refused(
    outside: Recorder, box: Box, told: Told, result: str | None, error: str
) -> None:
    outside.answering = in_turn(told)
    given, said = box.answer("proxy_execute('GET', '/x', 'github')")
    assert given == (told.body if result else None)
    assert error in said


def mounted(files: dict[str, bytes], asked: Asked) -> Told:
    """A mount, as the sessions API has it."""
    below = asked.path.removeprefix("/api/v3/tool_router/session/trs_0001/mounts/files/")
    host = f"http://{asked.headers['host']}"
    if asked.method == "PUT":
        path = asked.path.removeprefix("/put/").partition("?")[0]
        if path in files:
            return Told(status=412, body={"error": {"message": "there is a file already"}})
        files[path] = asked.body
        return Told(status=201, body={"path": path, "size": len(asked.body), "version": "v1"})
    if below.startswith("items"):
        prefix = re.search(r"mount_relative_prefix=([^&]*)", below)
        assert prefix is not None
        names = sorted(name for name in files if name.startswith(prefix[1].replace("%2F", "/")))
        return Told(body={"items": [{"mount_relative_path": name} for name in names[:1]]})
    path = asked.json()["mount_relative_path"]
    if below == "upload_url":
        return Told(status=201, body={"upload_url": f"{host}/put/{path}?sig=abc"})
    if path not in files:
        return Told(status=404, body={"error": {"message": f"no such file: {path}"}})
    if below == "download_url":
        return Told(body={"download_url": f"{host}/get/{path}?sig=def", "expires_at": "2026-01-02T03:04:05Z"})
    assert below == "delete"
    del files[path]
    return Told(body={"mount_relative_path": path})


def test_a_file_is_sent_to_its_link_without_a_credential(outside: Recorder, box: Box) -> None:
    files: dict[str, bytes] = {"uploads/report.csv": b"old", "uploads/report.csv.old": b""}
    outside.answering = lambda asked: mounted(files, asked)
    (box.folder / "report.csv").write_bytes(b"a,b\n" * 100_000)
    result, error = box.answer("upload_local_file('report.csv')", WORKBENCH_MOUNT_ID="m-1")
    assert error == ""
    assert result == {
        "s3_url": f"{outside.url}/get/uploads/report-2.csv?sig=def",
        "uploaded_file": "/mnt/files/uploads/report-2.csv",
        "type": "text/csv",
        "id": "m-1-v1",
        "s3key": "m-1/uploads/report-2.csv",
        "message": "/mnt/files/uploads/report-2.csv can be had from the link, until 2026-01-02T03:04:05Z",
    }
    assert files["uploads/report-2.csv"] == b"a,b\n" * 100_000
    assert files["uploads/report.csv"] == b"old"
    (put,) = [one for one in outside.asked if one.method == "PUT"]
    assert put.headers["content-type"] == "text/csv"
    assert put.headers["content-length"] == "400000"
    assert put.headers["if-none-match"] == "*"
    assert TOKEN not in str(put)
    (link,) = [one for one in outside.asked if one.path.endswith("/upload_url")]
    assert link.json() == {"mount_relative_path": "uploads/report-2.csv", "mimetype": "text/csv"}


def test_an_upload_whose_link_cannot_be_had_goes_away_again(outside: Recorder, box: Box) -> None:
    files: dict[str, bytes] = {}

    def answering(asked: Asked) -> Told:
        broken = asked.path.endswith("/download_url")
        return Told(status=500, body={"error": {"message": "broken"}}) if broken else mounted(files, asked)

    outside.answering = answering
    result, error = box.answer("upload_local_file('composio_helper.py')")
    assert (result, error) == ({}, "the link failed with HTTP 500: broken")
    assert files == {}


def test_what_is_read_is_lent_under_a_name_of_its_own_and_taken_back(outside: Recorder, box: Box) -> None:
    files: dict[str, bytes] = {}
    names: list[str] = []

    def answering(asked: Asked) -> Told:
        if not asked.path.endswith("/extract_text"):
            return mounted(files, asked)
        assert asked.path == "/v1/sessions/trs_0001/mounts/files/extract_text"
        names.append(asked.json()["path"])
        assert names[-1] in files
        if len(names) == 1:
            return Told(body={"path": names[-1], "text": "words " * 200})
        return Told(status=422, body={"error": {"code": "invalid_request", "message": f"{names[-1]}: is broken"}})

    outside.answering = answering
    (box.folder / "Vertrag ä.pdf").write_bytes(b"%PDF")
    ran = box.run("answer = smart_file_extract('Vertrag ä.pdf')", PYTHONUTF8="1")
    assert ran.answer == ["words " * 200, ""]
    assert ran.printed.endswith("[1,200 characters in all]")
    assert files == {}
    ran = box.run("answer = smart_file_extract('Vertrag ä.pdf', show_preview=False)", PYTHONUTF8="1")
    assert (ran.answer, ran.printed) == (["", "Vertrag ä.pdf: is broken"], "")
    assert files == {}
    assert re.fullmatch(r"\.lent-[0-9a-f]{16}\.pdf", names[0])
    assert names[0] != names[1]


def test_what_is_lent_is_taken_back_when_nobody_answers(outside: Recorder, box: Box) -> None:
    files: dict[str, bytes] = {}

    def answering(asked: Asked) -> Told:
        if asked.path.endswith("/extract_text"):
            assert files
            return Told(body={"text": "x"}, cut=True)
        return mounted(files, asked)

    outside.answering = answering
    result, error = box.answer("smart_file_extract('composio_helper.py')")
    assert result == ""
    assert error.startswith("composio_helper.py: the answer was cut off")
    assert files == {}


def test_a_file_of_the_mount_is_read_where_it_is(outside: Recorder, box: Box) -> None:
    outside.answering = in_turn(Told(body={"path": "a/b.txt", "text": "words"}))
    assert box.answer("smart_file_extract('/mnt/files/a/b.txt')") == ["words", ""]
    assert [one.json() for one in outside.asked] == [{"path": "a/b.txt"}]


def test_links_and_keys_of_files_in_the_mount(outside: Recorder, box: Box) -> None:
    outside.answering = lambda asked: mounted({"a/b.txt": b""}, asked)
    for name in ("/mnt/files/a/b.txt", "a/b.txt", "a/../a/b.txt"):
        assert box.answer(f"get_mount_file_url({name!r})") == [f"{outside.url}/get/a/b.txt?sig=def", ""]
        assert box.answer(f"get_mount_file_s3_key({name!r})", WORKBENCH_MOUNT_ID="m-1") == ["m-1/a/b.txt", ""]
    assert "no such file" in box.answer("get_mount_file_url('missing')")[1]
    assert "no such file" in box.answer("get_mount_file_s3_key('missing')", WORKBENCH_MOUNT_ID="m-1")[1]
    assert "WORKBENCH_MOUNT_ID is not set" in box.answer("get_mount_file_s3_key('a/b.txt')")[1]
    assert "is not below /mnt/files" in box.answer("get_mount_file_url('../etc/passwd')")[1]


def test_the_credential_is_in_no_answer_and_no_output(outside: Recorder, box: Box) -> None:
    outside.answering = in_turn(Told(status=500, body="broken"))
    calls = ("run_composio_tool('A')", "invoke_llm('x')", "web_search('x')", "proxy_execute('GET', '/x', 'y')",
             "upload_local_file('composio_helper.py')", "smart_file_extract('composio_helper.py')")  # fmt: skip
    ran = box.run(f"answer = [{', '.join(calls)}]")
    said = json.dumps(ran.answer) + ran.printed + ran.complaint
    assert "secret-that-is-told" not in said


def test_a_session_id_stays_one_part_of_the_address(outside: Recorder, box: Box) -> None:
    box.answer("run_composio_tool('A')", COMPOSIO_TOOLROUTER_SESSION_ID="../../v1/keys?x=/")
    assert outside.asked[0].path == "/api/v3/tool_router/session/..%2F..%2Fv1%2Fkeys%3Fx%3D%2F/execute"
