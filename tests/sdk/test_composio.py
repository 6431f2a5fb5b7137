"""`Composio` against the real server: sessions, tools, code in the sandbox, files."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from workbench import Composio, ComposioSession, CustomTool, Workbench
from workbench.client._transfers import WHOLE_BYTES
from workbench.client.composio.values import ExecuteResponse
from workbench.client.local import LocalServer
from workbench.errors import (
    Conflict,
    Denied,
    InvalidRequest,
    NotFound,
    SandboxOff,
    Unauthenticated,
    WorkbenchError,
)

WORKBENCH, BASH = "COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"


@pytest.fixture(scope="module")
def composio(server: LocalServer) -> Iterator[Composio]:
    """A client of the one server."""
    with Composio(server.key, server.url) as client:
        yield client


@pytest.fixture
def made(composio: Composio, wb: Workbench) -> Iterator[ComposioSession]:
    """Deleted afterwards, unless the test did."""
    session = composio.create("user_123")
    yield session
    if any(found.id == session.session_id for found in wb.sessions("user_123")):
        session.delete()


def run(session: ComposioSession, code: str) -> ExecuteResponse:
    return session.execute(WORKBENCH, {"code_to_execute": code})


def test_a_session_is_made_found_and_deleted(composio: Composio) -> None:
    session = composio.create("user_123", sandbox={"sandbox_size": "medium"}, toolkits=["github"])
    assert session.session_id.startswith("trs_")
    assert (session.user_id, session.config_version) == ("user_123", 1)
    assert (session.sandbox.enable, session.workbench.sandbox_size) == (True, "medium")
    assert session.config.toolkits is not None
    assert session.config.toolkits.enabled == ["github"]
    assert composio.use(session.session_id).config == session.config
    gone = composio.sessions.delete(session.session_id)
    assert (gone.session_id, gone.deleted) == (session.session_id, True)
    for call in (session.delete, session.tools, lambda: composio.use(session.session_id)):
        with pytest.raises(NotFound, match=session.session_id):
            call()


def test_code_runs_in_one_memory_and_its_id_finds_it_again(made: ComposioSession, wb: Workbench) -> None:
    assert run(made, "x = 20 + 1").successful
    answer = run(made, "print('doubled'); x * 2")
    assert (answer.result_type, answer.error) == ("completed", None)
    assert answer.data["stdout"] == "doubled\n"
    assert "42" in answer.data["results"]
    cell = wb.use(made.session_id).cell(answer.log_id)
    assert cell.wait().results == "42"


def test_code_that_raises_is_an_answer(made: ComposioSession) -> None:
    answer = run(made, "print('before'); 1 / 0")
    assert (answer.successful, answer.error) == (False, "the code raised ZeroDivisionError: division by zero")
    assert answer.data["stdout"] == "before\n"
    assert "ZeroDivisionError" in answer.data["error"]


def test_a_command_has_its_counts_of_lines(made: ComposioSession) -> None:
    answer = made.execute(BASH, {"command": "echo one; echo two; echo no >&2"})
    assert answer.successful
    assert (answer.data["stdout"], answer.data["stdoutLines"]) == ("one\ntwo\n", 2)
    assert (answer.data["stderr"], answer.data["stderrLines"]) == ("no\n", 1)


def test_a_tool_that_there_is_not_and_arguments_that_are_wrong_are_told(made: ComposioSession) -> None:
    unknown = made.execute("NO_SUCH_TOOL", {})
    assert (unknown.successful, unknown.result_type) == (False, "failed")
    assert "NO_SUCH_TOOL" in (unknown.error or "")
    with pytest.raises(InvalidRequest, match="`code_to_execute` is missing"):
        made.execute(WORKBENCH)
    with pytest.raises(InvalidRequest, match="`command` is missing; there is no argument `comand`"):
        made.execute(BASH, {"comand": "ls"})


def test_a_tool_may_be_silent_for_longer_than_the_patience_of_the_client(server: LocalServer) -> None:
    with Composio(server.key, server.url, timeout=2.0) as composio:
        session = composio.create("user_123")
        try:
            answer = run(session, "import time; time.sleep(6); 'woken'")
        finally:
            session.delete()
    assert "woken" in answer.data["results"]


def test_tools_are_functions_and_their_schemas_say_what_they_take(made: ComposioSession) -> None:
    tools = {tool["function"]["name"]: tool for tool in made.tools()}
    assert {WORKBENCH, BASH, "COMPOSIO_SEARCH_TOOLS", "COMPOSIO_MULTI_EXECUTE_TOOL"} <= tools.keys()
    assert set(tools) == set(made.tool_router_tools)
    workbench = tools[WORKBENCH]["function"]
    assert tools[WORKBENCH]["type"] == "function"
    assert workbench["description"]
    assert workbench["parameters"]["required"] == ["code_to_execute"]
    raw = {tool.slug: tool for tool in made.raw_tools()}
    assert {"destructiveHint", "openWorldHint"} <= set(raw[WORKBENCH].tags)


def test_a_search_tells_what_there_is(made: ComposioSession) -> None:
    found = made.search(query="ask a language model a question")
    assert found.success
    assert found.results[0].use_case == "ask a language model a question"
    assert found.time_info["current_time_utc"]


def test_toolkits_that_nobody_connected_are_told_truthfully(made: ComposioSession) -> None:
    for one in made.toolkits(limit=10).items:
        assert one.is_no_auth or (one.connection is not None and not one.connection.is_active)


def test_an_account_is_connected_by_a_link_and_not_with_an_app_that_there_is_not(
    composio: Composio, made: ComposioSession, server: LocalServer
) -> None:
    begun = made.authorize("github", callback_url="https://example.com/back")
    assert begun.redirect_url.startswith(f"{server.url}/connect/")
    with pytest.raises(NotFound, match="nosuchapp"):
        made.authorize("nosuchapp")


def test_a_request_without_an_account_is_not_sent_anywhere(made: ComposioSession) -> None:
    with pytest.raises(InvalidRequest, match="no active connection"):
        made.proxy_execute(toolkit="github", endpoint="/user", method="GET")


def test_a_change_is_a_version_and_keeps_files_and_memory(made: ComposioSession) -> None:
    made.experimental.files.upload(b"kept", remote_path="kept.txt")
    run(made, "x = 5")
    config = made.update(sandbox={"sandbox_size": "large"}, expected_config_version=1)
    assert (config.workbench.sandbox_size, made.sandbox.sandbox_size, made.config_version) == ("large", "large", 2)
    assert "kept" in run(made, "open('/mnt/files/kept.txt').read()").data["results"]
    with pytest.raises(Conflict, match="version 2"):
        made.update(toolkits=["github"], expected_config_version=1)
    assert made.update(toolkits=["github"]).toolkits is not None
    assert made.update(toolkits=None).toolkits is None
    history = made.list_config_history(limit=2)
    assert [(one.version, one.is_current) for one in history.items] == [(4, True), (3, False)]
    older = made.list_config_history(limit=2, cursor=history.next_cursor)
    assert [one.version for one in older.items] == [2, 1]


def test_a_session_without_a_sandbox_has_files_and_no_code(composio: Composio) -> None:
    session = composio.create("user_123", workbench={"enable": False})
    try:
        assert session.sandbox.enable is False
        assert not {WORKBENCH, BASH} & {tool["function"]["name"] for tool in session.tools()}
        assert session.experimental.files.upload(b"x", remote_path="a").text() == "x"
        with pytest.raises(SandboxOff, match=session.session_id):
            run(session, "1")
    finally:
        session.delete()


def test_a_token_is_a_key_for_one_session(server: LocalServer, made: ComposioSession, wb: Workbench) -> None:
    token = wb.use(made.session_id).token(lifetime_s=600).token
    other = wb.create("user_123")
    with Composio(token, server.url) as guest:
        own = guest.use(made.session_id)
        assert "2" in run(own, "1 + 1").data["results"]
        assert own.experimental.files.upload(b"x", remote_path="from-a-token").text() == "x"
        for call in (
            lambda: guest.use(other.id),
            lambda: guest.create("user_123"),
            own.delete,
            lambda: own.update(toolkits=["github"]),
        ):
            with pytest.raises(Denied):
                call()
    other.delete()


def test_a_wrong_key_is_told(server: LocalServer) -> None:
    with Composio("wbk_nobody_knows", server.url) as composio, pytest.raises(Unauthenticated):
        composio.create("user_123")


def test_the_mcp_address_takes_the_headers_that_come_with_it(made: ComposioSession) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    accept = {"accept": "application/json, text/event-stream"}
    refused = httpx2.post(made.mcp.url, json=hello, headers=accept, trust_env=False)
    assert refused.status_code == 401
    taken = httpx2.post(made.mcp.url, json=hello, headers={**accept, **made.mcp.headers}, trust_env=False)
    assert taken.status_code == 200, taken.text


def test_a_tool_of_this_program_is_named_by_the_server_and_runs_here(composio: Composio) -> None:
    tool = CustomTool(
        slug="WHO",
        description="Which process this is",
        input_schema={"type": "object", "properties": {}},
        execute=lambda _: {"pid": os.getpid()},
    )
    session = composio.create("user_123", custom_tools=[tool])
    try:
        assert [one.slug for one in session.custom_tools()] == ["LOCAL_WHO"]
        assert session.execute("LOCAL_WHO").data == {"pid": os.getpid()}
        again = composio.use(session.session_id, custom_tools=[tool])
        assert again.execute("LOCAL_WHO").data == {"pid": os.getpid()}
    finally:
        session.delete()


def fill(descriptor: int) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"piped")


def test_files_go_in_from_paths_bytes_and_open_files(made: ComposioSession, tmp_path: Path) -> None:
    files = made.experimental.files
    (tmp_path / "sales.csv").write_bytes(b"a,b\n1,2\n")
    for source in (tmp_path / "sales.csv", str(tmp_path / "sales.csv")):
        sent = files.upload(source)
        assert (sent.sandbox_mount_prefix, sent.mount_relative_path) == ("/mnt/files", "sales.csv")
    assert files.upload(b"x", mimetype="text/csv").filename.startswith("upload-")
    assert files.upload(io.BytesIO(b"open"), remote_path="data/open.bin").text() == "open"
    reading, writing = os.pipe()
    threading.Thread(target=fill, args=(writing,)).start()
    with os.fdopen(reading, "rb") as pipe:
        assert files.upload(pipe, remote_path="data/pipe.bin").buffer() == b"piped"
    with pytest.raises(InvalidRequest, match="bytes have no name"):
        files.upload(b"x")
    with pytest.raises(FileNotFoundError):
        files.upload(tmp_path / "nothing")
    assert "1,2" in run(made, "open('/mnt/files/sales.csv').read()").data["results"]


def test_a_large_file_goes_in_pieces_and_comes_back_whole(made: ComposioSession, tmp_path: Path) -> None:
    large = os.urandom(1024) * (10 * 1024)
    assert len(large) > WHOLE_BYTES
    (tmp_path / "large.bin").write_bytes(large)
    sent = made.experimental.files.upload(tmp_path / "large.bin")
    saved = sent.save(tmp_path / "back.bin")
    assert saved == str(tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == large


def test_files_are_listed_by_pages_and_deleted_by_folder(made: ComposioSession) -> None:
    files = made.experimental.files
    for name in ("data/a", "data/b", "data/c", "other"):
        files.upload(b"x", remote_path=name)
    first = files.list(path="/data", limit=2)
    assert [one.mount_relative_path for one in first.items] == ["data/a", "data/b"]
    assert first.items[0].size == 1
    second = files.list(path="/data", cursor=first.next_cursor, limit=2)
    assert ([one.mount_relative_path for one in second.items], second.next_cursor) == (["data/c"], None)
    assert files.delete("/data").mount_relative_path == "data"
    assert [one.mount_relative_path for one in files.list().items] == ["other"]
    for call in (files.delete, files.download):
        with pytest.raises(NotFound, match="data/a"):
            call("data/a")
    with pytest.raises(NotFound, match="elsewhere"):
        files.list(mount_id="elsewhere")


def test_a_url_that_leads_into_a_private_network_is_not_fetched(made: ComposioSession, server: LocalServer) -> None:
    with pytest.raises(WorkbenchError):
        made.experimental.files.upload(f"{server.url}/healthz")
    assert made.experimental.files.list().items == []


def test_a_link_needs_no_key_and_is_not_printed(made: ComposioSession) -> None:
    sent = made.experimental.files.upload(b"for all", remote_path="a b.txt")
    assert httpx2.get(sent.download_url, trust_env=False).content == b"for all"
    assert sent.expires_at > "2026"
    assert "?" not in repr(sent)
    assert "a b.txt" in repr(sent)
