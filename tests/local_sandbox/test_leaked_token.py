"""A token that has leaked from a box, tried against everything that the server offers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.helpers.serving import helped
from tests.host.support import eventually
from tests.local_sandbox.boxes import Box, box_in
from tests.restart.server import Server
from tests.server.running import make_key
from tests.services.running import Running

from workbench import LocalWorkbenchSession, Session, Workbench
from workbench.model.access import Scope
from workbench.model.ids import project_id

REFUSED = {401, 403, 404}
# What anybody may ask, with a key or without; and the description of a tool, which is the same for everybody.
OPEN = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"}
DESCRIPTIONS = {"/api/v3.1/tools/{tool_slug}", "/api/v3/tools/{tool_slug}"}
# A call that waits is looked at every few seconds.
SHUT_OUT_S = 20.0
# What a session's token may not do to its own session: what costs, ends it, or reaches beyond it.
OWNERS = {
    "branch",
    "change_session",
    "create_context",
    "create_local_sandbox",
    "create_token",
    "delete_session",
    "remove_context",
    "restart_context",
    "api_change_session",
    "api_delete_session",
}
METHODS = ("get", "post", "put", "patch", "delete")
MCP_HEADERS = {"accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "thief", "version": "1"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    operation: str
    body: Any

    def at(self, **names: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "x1"), self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Somebody else's things."""

    session: str
    cell: str
    key: str
    token: str


def sample(schema: dict[str, Any], components: dict[str, Any]) -> Any:
    """Some value of it: bodies must be good, so that it is not they that are refused."""
    if "$ref" in schema:
        return sample(components[schema["$ref"].rpartition("/")[2]], components)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema and "properties" not in schema:
            return sample(schema[several][0], components)
    if schema.get("examples"):
        return schema["examples"][0]
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema.get("type"):
        case "object":
            needed = [*schema.get("required", ()), *(schema.get("oneOf") or [{}])[0].get("required", ())]
            return {name: sample(schema["properties"][name], components) for name in needed}
        case "array":
            return [sample(schema["items"], components)] if schema.get("minItems") else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
    return "x" * max(schema.get("minLength", 1), 1)


def body_of(operation: dict[str, Any], components: dict[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {})
    return sample(content["application/json"]["schema"], components) if "application/json" in content else None


@pytest.fixture(scope="module")
def routes(server: Server) -> list[Route]:
    with server.client() as client:
        described = client.get("/openapi.json").json()
    components = described["components"]["schemas"]
    found = []
    for path, item in described["paths"].items():
        for method in METHODS:
            if method in item:
                body, operation = body_of(item[method], components), item[method].get("operationId", "")
                # The same routes have a second address, which is not written down.
                addresses = {path, path.replace("/api/v3.1/", "/api/v3/")}
                found += [Route(method=method.upper(), path=at, operation=operation, body=body) for at in addresses]
    assert len(found) > 70
    return found


@pytest.fixture
def thief(server: Server, local: LocalWorkbenchSession) -> Iterator[httpx2.Client]:
    headers = {"x-session-access-key": local.env["COMPOSIO_API_KEY"]}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60.0, trust_env=False) as client:
        yield client


def neighbour(bench: Workbench) -> Iterator[Neighbour]:
    session = bench.create("somebody")
    session.files.upload(b"theirs", remote_path="theirs.txt")
    cell = session.run("secret = 42")
    key = bench.keys.create("theirs")
    yield Neighbour(session=session.id, cell=cell.cell_id, key=key.id, token=session.token().id)
    # All that was theirs is as it was.
    assert bench.use(session.id).run("secret").results == "42"
    assert session.files.download("theirs.txt").text() == "theirs"
    assert not [one for one in bench.keys.list() if one.id == key.id and one.revoked_at]
    session.delete()
    bench.keys.revoke(key.id)


@pytest.fixture
def same_project(bench: Workbench) -> Iterator[Neighbour]:
    yield from neighbour(bench)


@pytest.fixture
def other_project(server: Server) -> Iterator[Neighbour]:
    key = make_key(server.settings, Scope.ADMIN, Scope.SESSIONS, project=project_id("others"))
    with Workbench(server.url, key.presented) as bench:
        yield from neighbour(bench)


def ask(client: httpx2.Client, route: Route, **names: str) -> httpx2.Response:
    body = {"json": route.body} if route.body is not None else {}
    return client.request(route.method, route.at(**names), **body)


@pytest.mark.parametrize("whose", ["same_project", "other_project"])
def test_it_reaches_no_other_session(
    thief: httpx2.Client, routes: list[Route], whose: str, request: pytest.FixtureRequest
) -> None:
    theirs: Neighbour = request.getfixturevalue(whose)
    names = {"session_id": theirs.session, "cell_id": theirs.cell, "command_id": theirs.cell, "mount_id": "files"}
    into = [route for route in routes if "{session_id}" in route.path]
    assert len(into) > 50
    told = {f"{route.method} {route.path}": ask(thief, route, **names) for route in into}
    assert {name: answer.status_code for name, answer in told.items() if answer.status_code not in REFUSED} == {}
    assert not [name for name, answer in told.items() if "theirs" in answer.text]


def test_it_reaches_nothing_that_is_not_a_sessions(
    thief: httpx2.Client, routes: list[Route], same_project: Neighbour
) -> None:
    names = {"key_id": same_project.key, "user_id": "somebody", "tool_slug": "COMPOSIO_REMOTE_WORKBENCH"}
    around = [route for route in routes if "{session_id}" not in route.path]
    around = [route for route in around if route.path not in OPEN | DESCRIPTIONS]
    assert len(around) > 10
    told = {f"{route.method} {route.path}": ask(thief, route, **names).status_code for route in around}
    assert {name: status for name, status in told.items() if status not in REFUSED} == {}
    assert thief.delete(f"/v1/keys/{same_project.token}").status_code in REFUSED
    assert thief.get("/v1/sessions").status_code == 403
    assert thief.get("/v1/audit").status_code == 403


def test_of_its_own_session_it_can_do_what_runs_in_it_and_no_more(
    thief: httpx2.Client, routes: list[Route], session: Session
) -> None:
    names = {"session_id": session.id, "mount_id": "files", "tool_slug": "COMPOSIO_SEARCH_EXA_ANSWER"}
    own = [route for route in routes if "{session_id}" in route.path]
    refused = {route.operation for route in own if ask(thief, route, **names).status_code == 403}
    assert refused == OWNERS
    assert session.describe().sandbox.enable is False


def test_it_has_no_other_sessions_mcp_address(thief: httpx2.Client, same_project: Neighbour) -> None:
    for path in (f"/tool_router/{same_project.session}/mcp", f"/mcp?session={same_project.session}"):
        # To name one where a token has its own is a question that cannot be asked.
        assert thief.post(path, json=INITIALIZE, headers=MCP_HEADERS).status_code in {422, *REFUSED}, path


def test_a_link_that_it_makes_leads_to_its_own_files_only(
    thief: httpx2.Client, session: Session, same_project: Neighbour
) -> None:
    link = thief.post(f"/v1/sessions/{session.id}/mounts/files/upload_url", json={"path": "a"}).json()["url"]
    assert thief.put(link, content=b"a").status_code == 201
    for forged in (link.replace(session.id, same_project.session), link + "x"):
        if forged != link:
            assert thief.put(forged, content=b"a").status_code in {400, *REFUSED}
    for path in ("../../x", "/etc/passwd/../../x", "a/../../b"):
        answer = thief.post(f"/v1/sessions/{session.id}/mounts/files/upload_url", json={"path": path})
        assert answer.status_code in {400, 403, 404, 422}, path


@pytest.mark.parametrize("by", ["admin", "sessions", "itself"])
def test_revoking_it_ends_it_at_once(
    server: Server, bench: Workbench, local: LocalWorkbenchSession, box: Box, thief: httpx2.Client, by: str
) -> None:
    assert box.answer("web_search('moon')")[1] == ""
    if by == "itself":
        assert thief.delete(f"/v1/keys/{local.token_id}").status_code == 200
    elif by == "sessions":
        key = make_key(server.settings, Scope.SESSIONS)
        with Workbench(server.url, key.presented) as other:
            other.keys.revoke(local.token_id)
    else:
        bench.keys.revoke(local.token_id)
    _, error = box.answer("web_search('moon')")
    assert "HTTP 401" in error
    assert "was revoked" in error
    assert thief.get(f"/v1/sessions/{local.env['COMPOSIO_TOOLROUTER_SESSION_ID']}").status_code == 401


def test_it_goes_with_its_session(box: Box, session: Session, bench: Workbench, thief: httpx2.Client) -> None:
    session.delete()
    assert thief.get(f"/v1/sessions/{session.id}").status_code == 401
    again = bench.create("tester", id=session.id, sandbox={"enable": False})
    try:
        # One of the same name is another one.
        assert thief.get(f"/v1/sessions/{session.id}").status_code == 401
        assert "HTTP 401" in box.answer("web_search('moon')")[1]
    finally:
        again.delete()


def test_a_call_that_is_under_way_when_it_is_revoked_ends_soon_and_tells_nothing(
    models: Running, searches: Running, tmp_path: Path
) -> None:
    with helped(models, searches, llm_timeout_s=100) as patient, patient.bench() as bench:
        local = bench.create("tester", sandbox={"enable": False}).local_sandbox()
        box = box_in(tmp_path, local.env)
        with ThreadPoolExecutor(1) as pool:
            under_way = pool.submit(box.answer, "invoke_llm('fault:hang')")
            eventually(lambda: bool(models.seen()), "the model was asked")
            bench.keys.revoke(local.token_id)
            result, error = under_way.result(SHUT_OUT_S)
    assert result == ""
    assert "revoked" in error


def test_a_token_is_not_made_by_a_token_nor_by_a_key_without_sessions(
    server: Server, thief: httpx2.Client, session: Session
) -> None:
    path = f"/v1/sessions/{session.id}/local-sandbox"
    assert thief.post(path, json={}).status_code == 403
    with httpx2.Client(base_url=server.url, timeout=60.0, trust_env=False) as client:
        assert client.post(path, json={}).status_code == 401
        only_proxy = make_key(server.settings, Scope.PROXY).presented
        assert client.post(path, json={}, headers={"x-api-key": only_proxy}).status_code == 403


def test_raw_calls_to_services_need_them_in_the_key_that_asked(server: Server, session: Session) -> None:
    """What a key has not, a token that it asks for has not."""
    told = {}
    for scopes in ((Scope.SESSIONS,), (Scope.SESSIONS, Scope.PROXY)):
        with Workbench(server.url, make_key(server.settings, *scopes).presented) as bench:
            env = bench.use(session.id).local_sandbox().env
        with httpx2.Client(base_url=server.url, headers={"x-api-key": env["COMPOSIO_API_KEY"]}, trust_env=False) as box:
            body = {"toolkit_slug": "github", "endpoint": "/user", "method": "GET"}
            answer = box.post(f"/api/v3/tool_router/session/{session.id}/proxy_execute", json=body)
            told[scopes] = answer.status_code
    assert told[(Scope.SESSIONS,)] == 403
    assert told[(Scope.SESSIONS, Scope.PROXY)] != 403
