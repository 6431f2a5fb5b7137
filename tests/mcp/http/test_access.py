"""Who comes in at MCP's addresses, and what everybody else is told."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from tests.host.support import eventually
from tests.mcp.http.talking import (
    ACCEPT,
    NEWER,
    TOOL,
    Raw,
    client_at,
    own_settings,
    structured_in,
    told_in,
)
from tests.server.running import Running, make_key, problem_of, running

from workbench.model.access import Scope

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    },
}


@pytest.fixture
def session(http: httpx2.Client) -> Iterator[str]:
    """One of the test's own."""
    name = f"t-{secrets.token_hex(4)}"
    http.post("/v1/sessions", json={"id": name}).raise_for_status()
    yield name
    assert http.delete(f"/v1/sessions/{name}").status_code in {204, 404}


def _message_of(answer: httpx2.Response) -> dict[str, Any]:
    """The problem inside a message of the protocol, which is what clients show."""
    told = answer.json()
    assert (set(told), told["jsonrpc"], told["id"]) == ({"jsonrpc", "id", "error"}, "2.0", None)
    assert set(told["error"]) == {"code", "message", "data"}
    problem: dict[str, Any] = told["error"]["data"]
    assert set(problem) == {"code", "message", "context", "retryable", "request_id"}
    assert told["error"]["message"] == problem["message"]
    assert answer.headers["x-request-id"] == problem["request_id"]
    assert answer.headers["content-type"] == "application/json"
    return problem


def _refused(answer: httpx2.Response, status: int, code: str, *words: str) -> None:
    assert answer.status_code == status, answer.text
    problem = _message_of(answer) if answer.request.method == "POST" else problem_of(answer)
    assert problem["code"] == code
    for word in words:
        assert word in problem["message"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?tools=all", "/tool_router/any/mcp", "/tool_router/any/else"])
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wbk_x_y"}, {"x-api-key": "sk-123"}])
def test_without_a_good_key_nobody_gets_in_and_the_way_is_told(
    server: Running, path: str, headers: dict[str, str]
) -> None:
    with server.client("") as stranger:
        for method in ("POST", "GET", "DELETE"):
            answer = stranger.request(method, path, headers={**ACCEPT, **headers})
            if method == "POST" and path.endswith("/else"):
                assert problem_of(answer)["code"] == "unauthenticated"
            else:
                _refused(answer, 401, "unauthenticated", "key")
            assert answer.headers["www-authenticate"].startswith("Bearer")
    if not headers:
        assert "workbench keys create" in answer.text


@pytest.mark.parametrize(
    ("path", "key", "words"),
    [
        ("/mcp", "wbk_x_y", "key"),
        ("/tool_router/nobody/mcp", "", "no session 'nobody'"),
        ("/mcp?tools=everything", "", "no such family of tools: 'everything'"),
        ("/mcp?session=No Name", "", "No Name"),
    ],
)
async def test_a_client_shows_why_it_is_refused(server: Running, mode: str, path: str, key: str, words: str) -> None:
    with pytest.raises(BaseException) as raised:  # noqa: PT011  (it depends on the era, and may be a group)
        async with client_at(server.url + path, key or server.key, mode) as client:
            await client.list_tools()
    assert words in _words_of(raised.value)


def _words_of(problem: BaseException) -> str:
    several = problem.exceptions if isinstance(problem, BaseExceptionGroup) else ()
    return " ".join([str(problem), *map(_words_of, several)])


async def test_a_client_shows_that_its_message_is_too_large(server: Running, mode: str) -> None:
    async with client_at(f"{server.url}/mcp", server.key, mode) as client:
        with pytest.raises(MCPError, match="WORKBENCH_MAX_BODY_MIB"):
            await client.call_tool(TOOL, {"code_to_execute": "#" * (1024 * 1024)})


def test_a_key_is_taken_from_either_header(server: Running) -> None:
    with server.client("") as client:
        for headers in ({"x-api-key": server.key}, {"authorization": f"bearer {server.key}"}):
            answer = client.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **headers})
            assert told_in(answer)["result"]["serverInfo"]["name"] == "open-workbench"


def test_a_key_for_other_things_is_refused(server: Running) -> None:
    with server.client(make_key(server.settings, Scope.PROXY).presented) as client:
        _refused(client.post("/mcp", json=INITIALIZE, headers=ACCEPT), 403, "denied", "`sessions`")


def test_an_unknown_session_has_no_address(server: Running, http: httpx2.Client) -> None:
    for name in ("nobody", "No%20Name", "x" * 60):
        answer = http.post(f"/tool_router/{name}/mcp", json=INITIALIZE, headers=ACCEPT)
        _refused(answer, 404, "not_found", "no session", "POST /v1/sessions")


def test_a_session_of_another_project_has_no_address(server: Running, session: str) -> None:
    with server.client(make_key(server.settings, Scope.SESSIONS, project="other").presented) as other:
        answer = other.post(f"/tool_router/{session}/mcp", json=INITIALIZE, headers=ACCEPT)
        _refused(answer, 404, "not_found", session)


def test_a_token_is_for_its_session_wherever_it_comes_in(server: Running, http: httpx2.Client, session: str) -> None:
    token = http.post(f"/v1/sessions/{session}/tokens", json={}).json()["token"]
    http.post("/v1/sessions", json={"id": f"{session}-2"}).raise_for_status()
    with server.client(token) as guest:
        answer = guest.post(f"/tool_router/{session}-2/mcp", json=INITIALIZE, headers=ACCEPT)
        _refused(answer, 403, "denied", session)
        _refused(guest.post(f"/mcp?session={session}-2", json=INITIALIZE, headers=ACCEPT), 422, "invalid_request")
        assert structured_in(Raw(guest).connect().call("mine = 1"))["data"]["session"]["id"] == session
        named = {"name": TOOL, "arguments": {"code_to_execute": "mine + 1", "session_id": f"{session}-2"}}
        told = structured_in(Raw(guest, f"/tool_router/{session}/mcp").connect().ask("tools/call", named))
        # The other name is only a word here.
        assert told["data"]["results"] == "2"
    http.delete(f"/v1/sessions/{session}-2")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("tools=everything", ("'everything'", "workbench, sandbox, kernel")),
        ("tools=", ("name a family",)),
        ("session=No Name", ("No Name",)),
        ("user=", ("1 to 200",)),
        ("tool=all", ("'tool'", "tools, session, user")),
        ("tools=all&tools=kernel", ("twice",)),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named_before_the_protocol_begins(
    http: httpx2.Client, query: str, words: tuple[str, ...]
) -> None:
    _refused(http.post(f"/mcp?{query}", json=INITIALIZE, headers=ACCEPT), 422, "invalid_request", *words)


async def test_the_address_chooses_the_families_of_tools(server: Running, mode: str) -> None:
    async def names(query: str) -> set[str]:
        async with client_at(f"{server.url}/mcp{query}", server.key, mode) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert TOOL in await names("")
    assert TOOL not in await names("?tools=kernel")
    assert await names("?tools=workbench,kernel") >= {TOOL}
    assert await names("?tools=all") >= await names("?tools=workbench,sandbox")


@pytest.mark.parametrize(
    ("headers", "word"),
    [
        ({"host": "evil.example"}, "evil.example"),
        ({"host": "evil.example:8787"}, "evil.example"),
        ({"host": "localhost.evil.example"}, "localhost.evil.example"),
        ({"origin": "http://evil.example"}, "evil.example"),
        ({"origin": "null"}, "null"),
        ({"origin": "http://localhost.evil.example:80"}, "evil.example"),
        ({"origin": "http://[::1"}, "[::1"),
    ],
)
def test_a_page_of_somebody_else_is_refused_in_every_way_it_can_ask(
    http: httpx2.Client, headers: dict[str, str], word: str
) -> None:
    for method in ("POST", "GET", "DELETE"):
        body = INITIALIZE if method == "POST" else None
        answer = http.request(method, "/mcp", headers={**ACCEPT, **headers}, json=body)
        _refused(answer, 403, "denied", word, "WORKBENCH_PUBLIC_URL")


@pytest.mark.parametrize(
    "headers",
    [{"host": "localhost:9"}, {"host": "[::1]:8787"}, {"origin": "http://localhost:3000"},
     {"host": "workbench.example.com", "origin": "https://workbench.example.com"}],
)  # fmt: skip
def test_this_machines_own_names_and_the_public_one_are_good(public: Running, headers: dict[str, str]) -> None:
    with httpx2.Client(trust_env=False, timeout=60.0) as client:
        url = f"http://127.0.0.1:{_port_of(public)}/mcp"
        told = {**ACCEPT, "x-api-key": public.key, **headers}
        assert client.post(url, json=INITIALIZE, headers=told).status_code == 200
        assert client.post(url, json=INITIALIZE, headers={**told, "host": "evil.example"}).status_code == 403


@pytest.fixture(scope="module")
def public() -> Iterator[Running]:
    """A server with a name of its own."""
    with own_settings(public_url="https://workbench.example.com/here") as settings, running(settings) as server:
        yield server


def _port_of(server: Running) -> int:
    started = [one for one in server.events() if one["event"] == "server.start"]
    return int(started[-1]["port"])


def test_bodies_are_bounded_and_of_one_kind(http: httpx2.Client) -> None:
    large = http.post("/mcp", content=b"[" + b" " * (1024 * 1024) + b"]", headers={"content-type": "application/json"})
    _refused(large, 413, "too_large", "WORKBENCH_MAX_BODY_MIB")
    _refused(http.post("/mcp", content=b"x", headers={"content-type": "text/plain"}), 415, "unsupported_media")
    raw = Raw(http).connect()
    for content in (b"no json", b"[]", b'{"jsonrpc": "2.0"}', b'"' + b"[" * 5000):
        headers = {**raw.headers(), "content-type": "application/json"}
        answer = http.post("/mcp", content=content, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]
    assert structured_in(raw.call("1"))["successful"] is True


def test_another_method_is_told_which_there_are(http: httpx2.Client) -> None:
    answer = http.put("/mcp", json={})
    _refused(answer, 405, "method_not_allowed", "DELETE, GET, HEAD, POST")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, POST"


def test_who_knows_the_id_of_a_connection_but_not_its_key_is_not_in_it(server: Running, http: httpx2.Client) -> None:
    raw = Raw(http).connect()
    mine = structured_in(raw.call("secret = 'told to nobody'"))["data"]["session"]["id"]
    with server.client(make_key(server.settings, Scope.SESSIONS).presented) as other:
        listening = other.get("/mcp", headers=raw.headers())
        assert listening.status_code == 405
        theirs = structured_in(Raw(other, connection=raw.connection).call("'secret' in globals()"))
        assert theirs["data"]["session"]["id"] != mine
        assert theirs["data"]["results"] == "False"
        assert other.delete("/mcp", headers=raw.headers()).status_code == 200
    assert structured_in(raw.call("secret"))["data"]["results"] == "'told to nobody'"


def test_a_key_that_is_revoked_ends_what_it_listens_to_and_waits_for(server: Running, http: httpx2.Client) -> None:
    made = make_key(server.settings, Scope.SESSIONS)
    name = f"r-{secrets.token_hex(4)}"
    heard: list[str] = []
    with server.client(made.presented) as client:
        raw = Raw(client, f"/mcp?session={name}").connect()
        threads = [
            threading.Thread(target=lambda: heard.append(client.get("/mcp", headers=raw.headers()).text)),
            threading.Thread(target=lambda: heard.append(raw.call("import time; time.sleep(14); 'secret'").text)),
        ]
        for thread in threads:
            thread.start()
        eventually(lambda: http.get(f"/v1/sessions/{name}").json().get("queue"), "it runs")
        http.delete(f"/v1/keys/{made.key.id}").raise_for_status()
        began = time.monotonic()
        for thread in threads:
            thread.join(30)
        assert time.monotonic() - began < 12
    assert len(heard) == 2
    assert not any("secret" in text for text in heard)
    cell = http.get(f"/v1/sessions/{name}").json()["queue"][0]["cell"]
    ended = http.get(f"/v1/sessions/{name}/cells/{cell}", params={"wait_s": "30"}).json()
    assert ended["result"]["results"]["text"] == "'secret'"


def test_a_key_that_is_revoked_has_no_answer_in_the_newer_era_either_and_its_cell_goes_on(
    server: Running, http: httpx2.Client
) -> None:
    made = make_key(server.settings, Scope.SESSIONS)
    name = f"n-{secrets.token_hex(4)}"
    answers: list[httpx2.Response] = []
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
    }
    arguments = {"code_to_execute": "import time; time.sleep(14); 'secret'"}
    params = {"name": TOOL, "arguments": arguments, "_meta": meta}
    headers = {**ACCEPT, "mcp-protocol-version": NEWER, "mcp-method": "tools/call", "mcp-name": TOOL}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with server.client(made.presented) as old:
        call = threading.Thread(
            target=lambda: answers.append(old.post(f"/mcp?session={name}", json=body, headers=headers))
        )
        call.start()
        eventually(lambda: http.get(f"/v1/sessions/{name}").json().get("queue"), "it runs")
        http.delete(f"/v1/keys/{made.key.id}").raise_for_status()
        call.join(12)
        assert answers
        _refused(answers[0], 401, "unauthenticated", "revoked")
    cell = http.get(f"/v1/sessions/{name}").json()["queue"][0]["cell"]
    ended = http.get(f"/v1/sessions/{name}/cells/{cell}", params={"wait_s": "30"}).json()
    assert ended["result"]["results"]["text"] == "'secret'"


@pytest.mark.parametrize("mode", ["legacy", NEWER])
async def test_a_session_without_a_sandbox_has_no_tools_that_run_code_at_its_address(
    server: Running, http: httpx2.Client, mode: str
) -> None:
    name = f"t-{secrets.token_hex(4)}"
    http.post("/v1/sessions", json={"id": name, "sandbox": {"enable": False}}).raise_for_status()
    try:
        async with client_at(f"{server.url}/tool_router/{name}/mcp", server.key, mode) as client:
            shown = {one.name for one in (await client.list_tools()).tools}
            assert "COMPOSIO_SEARCH_TOOLS" in shown
            assert not shown & {TOOL, "COMPOSIO_REMOTE_BASH_TOOL"}
            with pytest.raises(MCPError, match="configured without a sandbox"):
                await client.call_tool(TOOL, {"code_to_execute": "1"})
        # By the address that is for all sessions the tool itself says it.
        async with client_at(f"{server.url}/mcp", server.key, mode) as client:
            answer = await client.call_tool(TOOL, {"code_to_execute": "1", "session_id": name})
            assert answer.is_error
            assert "configured without a sandbox" in str(answer.structured_content["error"])
    finally:
        http.delete(f"/v1/sessions/{name}").raise_for_status()
