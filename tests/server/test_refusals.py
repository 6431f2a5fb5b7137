"""Whatever is wrong with a request, the answer has one shape and names the next step."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.server.running import Running, make_key, problem_of

from workbench.model.access import Scope


def refused(answer: httpx2.Response, status: int, code: str, *words: str) -> dict[str, Any]:
    problem = problem_of(answer)
    assert (answer.status_code, problem["code"]) == (status, code), problem
    for word in words:
        assert word in problem["message"]
    return problem


def run(client: httpx2.Client, session: str, **body: object) -> httpx2.Response:
    return client.post(f"/v1/sessions/{session}/cells", json={"code": "1", **body})


def test_without_a_key_the_answer_says_how_to_send_and_to_make_one(server: Running) -> None:
    with server.client("") as client:
        answer = client.get("/v1/sessions")
        refused(answer, 401, "unauthenticated", "Authorization: Bearer", "x-api-key", "`workbench keys create`")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        # Nothing is read of a body that comes without a key.
        refused(client.post("/v1/sessions", content=b"x" * 3_000_000), 401, "unauthenticated")


@pytest.mark.parametrize("key", ["wrong", "wbk_aaaaaaaaaaaa_wrong", "wbt_aaaaaaaaaaaa_wrong", "ä"])
def test_a_wrong_key_is_refused(server: Running, key: str) -> None:
    with server.client("") as client:
        for headers in ({b"authorization": f"Bearer {key}".encode()}, {b"x-api-key": key.encode()}):
            answer = client.get("/v1/sessions", headers=headers)
            refused(answer, 401, "unauthenticated", "`workbench keys create` makes one")


def test_the_right_name_with_the_wrong_secret_is_refused(server: Running) -> None:
    with server.client(server.key[:-4] + "AAAA") as client:
        refused(client.get("/v1/sessions"), 401, "unauthenticated", "`workbench keys create`")


def test_both_headers_are_taken(server: Running) -> None:
    with server.client("") as client:
        assert client.get("/v1/sessions", headers={"x-api-key": server.key}).status_code == 200
        assert client.get("/v1/sessions", headers={"authorization": f"bearer {server.key}"}).status_code == 200


def test_a_key_without_the_scope_is_told_which_one_is_needed(server: Running) -> None:
    with server.client(make_key(server.settings, Scope.PROXY).presented) as client:
        refused(client.get("/v1/sessions"), 403, "denied", "`sessions`", "`workbench keys create --scope sessions`")
    with server.client(make_key(server.settings, Scope.SESSIONS).presented) as client:
        assert client.get("/v1/sessions").status_code == 200
        for path in ("/v1/keys", "/v1/audit"):
            refused(client.get(path), 403, "denied", "`admin`", "`workbench keys create --scope admin`")
        refused(client.delete("/v1/users/somebody"), 403, "denied", "`admin`")


def test_a_revoked_and_an_expired_key_are_told_apart(server: Running, client: httpx2.Client) -> None:
    revoked, short = make_key(server.settings, Scope.SESSIONS), make_key(server.settings, Scope.SESSIONS, lifetime_s=1)
    assert client.delete(f"/v1/keys/{revoked.key.id}").json()["revoked_at"]
    with server.client(revoked.presented) as other:
        refused(other.get("/v1/sessions"), 401, "unauthenticated", "was revoked; use another")
    with server.client(short.presented) as other:
        deadline = time.monotonic() + 20
        while (answer := other.get("/v1/sessions")).status_code == 200:
            assert time.monotonic() < deadline
        refused(answer, 401, "unauthenticated", "has expired; make a new one")


def test_a_session_of_another_project_does_not_exist(server: Running, session: str) -> None:
    with server.client(make_key(server.settings, Scope.ADMIN, project="other").presented) as other:
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/restart"),
            ("GET", "/history"),
            ("POST", "/tokens"),
        ):
            answer = other.request(method, f"/v1/sessions/{session}{path}")
            refused(answer, 404, "not_found", "no session", "`workbench sessions ls`")
        refused(run(other, session), 404, "not_found", "no session")
        assert other.get("/v1/sessions").json()["items"] == []


def test_an_unknown_and_a_deleted_session_are_not_found(client: httpx2.Client, session: str) -> None:
    refused(run(client, "nobody"), 404, "not_found", "no session 'nobody'", "`workbench sessions ls`")
    cell = run(client, session).json()["id"]
    assert client.delete(f"/v1/sessions/{session}").status_code == 204
    refused(run(client, session), 404, "not_found", "no session")
    refused(client.get(f"/v1/sessions/{session}/cells/{cell}"), 404, "not_found")
    refused(client.delete(f"/v1/sessions/{session}"), 404, "not_found")


@pytest.fixture
def token(client: httpx2.Client, session: str) -> str:
    made = client.post(f"/v1/sessions/{session}/tokens", json={"lifetime_s": 600})
    assert made.status_code == 201
    return str(made.json()["token"])


@pytest.fixture
def other_session(client: httpx2.Client) -> Iterator[str]:
    name = f"t-{secrets.token_hex(4)}"
    client.post("/v1/sessions", json={"id": name}).raise_for_status()
    yield name
    client.delete(f"/v1/sessions/{name}")


def test_a_token_reaches_its_own_session_and_no_other(
    server: Running, session: str, token: str, other_session: str
) -> None:
    with server.client(token) as holder:
        assert run(holder, session).json()["result"]["outcome"] == "ok"
        assert holder.get(f"/v1/sessions/{session}").status_code == 200
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/interrupt"), ("GET", "/variables")):
            answer = holder.request(method, f"/v1/sessions/{other_session}{path}")
            refused(answer, 403, "denied", f"for session '{session}' only", f"/v1/sessions/{other_session}/tokens")
        refused(run(holder, other_session), 403, "denied", "only")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/sessions"), ("POST", "/v1/sessions"), ("GET", "/v1/keys"), ("POST", "/v1/keys"), ("GET", "/v1/audit"),
     ("POST", "/v1/sessions/SESSION/tokens"), ("POST", "/v1/sessions/SESSION/branch"),
     ("POST", "/v1/sessions/SESSION/contexts"), ("DELETE", "/v1/sessions/SESSION/contexts/c"),
     ("POST", "/v1/sessions/SESSION/contexts/c/restart"),
     ("PATCH", "/v1/sessions/SESSION"), ("DELETE", "/v1/sessions/SESSION"), ("DELETE", "/v1/users/tester")],
)  # fmt: skip
def test_a_token_can_do_nothing_beyond_its_session(
    server: Running, session: str, token: str, method: str, path: str
) -> None:
    body = {"sandbox": {"sandbox_size": "large"}} if method == "PATCH" else {}
    with server.client(token) as holder:
        answer = holder.request(method, path.replace("SESSION", session), json=body)
        refused(answer, 403, "denied", "token", "use a key of the project")


def test_a_token_that_was_revoked_reads_no_further(
    server: Running, client: httpx2.Client, session: str, token: str
) -> None:
    code = "import time\nfor n in range(600):\n    print(n, flush=True)\n    time.sleep(0.1)"
    place = client.post(f"/v1/sessions/{session}/cells", json={"code": code, "mode": "detach"}).headers["location"]
    with server.client(token) as holder, holder.stream("GET", f"{place}/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        assert client.delete(f"/v1/keys/{token.split('_')[1]}").status_code == 200
        began = time.monotonic()
        last = [line for line in lines if line][-1]
        assert last.startswith(": unauthenticated")
        assert time.monotonic() - began < 25
    client.post(f"{place}/stop")


def test_a_token_that_revoked_itself_is_no_more_good(server: Running, session: str, token: str) -> None:
    with server.client(token) as holder:
        name = token.split("_")[1]
        assert holder.delete(f"/v1/keys/{name}").json()["session_id"] == session
        refused(holder.get(f"/v1/sessions/{session}"), 401, "unauthenticated", "revoked")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_of_another_type_is_told_which_one_to_send(client: httpx2.Client, session: str, kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    answer = client.post(f"/v1/sessions/{session}/cells", content=b'{"code": "1"}', headers=headers)
    refused(answer, 415, "unsupported_media", "`content-type: application/json`")


@pytest.mark.parametrize(
    ("body", "place"),
    [(b'{"code": "1"', "line 1 column 12"), (b'{"code":\n"1",}', "line 2 column 5"), (b"code=1", "line 1 column 1"),
     (b'{"code": "\xff"}', "column"), (b"[" * 5000, "column")],
)  # fmt: skip
def test_bad_json_is_told_where_it_is_bad(client: httpx2.Client, session: str, body: bytes, place: str) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post(f"/v1/sessions/{session}/cells", content=body, headers=headers)
    refused(answer, 400, "invalid_request", "not JSON", place, "content-type: application/json")


def test_an_unknown_field_is_named_with_the_one_that_was_meant(client: httpx2.Client, session: str) -> None:
    problem = refused(run(client, session, limit=5), 422, "invalid_request", "'limit'", "did you mean 'limit_s'?")
    assert problem["context"] == {"field": "limit"}
    answer = client.post("/v1/sessions", json={"sandbox": {"sandbox_siz": "large"}})
    refused(answer, 422, "invalid_request", "'sandbox.sandbox_siz'", "did you mean 'sandbox_size'?", "/docs")
    refused(run(client, session, zzz=1), 422, "invalid_request", "there are: ", "code", "limit_s")


@pytest.mark.parametrize(
    ("body", "word"),
    [({}, "'code' is missing"), ({"code": 5}, "code: "), ({"code": "1", "limit_s": "5"}, "limit_s: "),
     ({"code": "1", "mode": "later"}, "'await', 'stream' or 'detach'"), ({"code": "1", "limit_s": -1}, "limit_s: "),
     ([], "the body: "), ("code", "the body: "), (None, "the body: ")],
)  # fmt: skip
def test_a_value_that_cannot_be_used_is_named(client: httpx2.Client, session: str, body: object, word: str) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post(f"/v1/sessions/{session}/cells", content=json.dumps(body), headers=headers)
    refused(answer, 422, "invalid_request", word, "/docs")


def test_a_missing_body_and_a_limit_above_the_hosts_are_refused(client: httpx2.Client, session: str) -> None:
    refused(client.post(f"/v1/sessions/{session}/cells"), 422, "invalid_request", "the body is missing")
    refused(run(client, session, limit_s=10_000_000), 422, "invalid_request", "a time limit must be", "3600")


def test_an_unknown_query_parameter_is_named_with_the_one_that_was_meant(client: httpx2.Client, session: str) -> None:
    answer = client.get(f"/v1/sessions/{session}/history", params={"limits": "5"})
    refused(answer, 422, "invalid_request", "'limits'", "did you mean 'limit'?")
    refused(client.get("/v1/sessions", params={"limit": "0"}), 422, "invalid_request", "'limit'", "/docs")
    refused(client.get("/v1/sessions", params={"cursor": "No!"}), 422, "invalid_request", "'cursor'")
    answer = client.get(f"/v1/sessions/{session}/history", params={"cursor": "none-of-ours"})
    refused(answer, 422, "invalid_request", "'cursor'")


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_an_idempotency_key_that_cannot_be_one_is_refused(client: httpx2.Client, session: str, key: str) -> None:
    answer = client.post(
        f"/v1/sessions/{session}/cells", json={"code": "1"}, headers={b"idempotency-key": key.encode()}
    )
    refused(answer, 422, "invalid_request", "Idempotency-Key")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused_while_it_comes_in(client: httpx2.Client, session: str, chunked: bool) -> None:
    body = b'{"code": "' + b"x" * 2_500_000 + b'"}'
    pieces = (body[start : start + 65_536] for start in range(0, len(body), 65_536))
    headers = {"content-type": "application/json"}
    path = f"/v1/sessions/{session}/cells"
    answer = client.post(path, content=pieces if chunked else body, headers=headers)
    refused(answer, 413, "too_large", "1,048,576 bytes", "/mnt/files", "WORKBENCH_MAX_BODY_MIB")
    assert run(client, session).status_code == 200


def test_a_body_that_only_claims_to_be_large_is_answered_soon(server: Running) -> None:
    address = urlsplit(server.url)
    assert address.hostname
    with socket.create_connection((address.hostname, address.port or 0), timeout=30) as connection:
        head = f"POST /v1/sessions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key}\r\n"
        connection.sendall(f"{head}content-type: application/json\r\ncontent-length: 900000000\r\n\r\n".encode())
        assert connection.recv(64).startswith(b"HTTP/1.1 413 ")


def test_unknown_addresses_and_methods_are_told_what_there_is(client: httpx2.Client, session: str) -> None:
    refused(client.get("/v1/session"), 404, "not_found", "/v1/session;", "did you mean /v1/sessions?", "/docs")
    refused(client.get("/"), 404, "not_found", "/docs")
    refused(client.get("/v1/sessions/"), 404, "not_found", "/docs")
    answer = client.put("/v1/sessions")
    refused(answer, 405, "method_not_allowed", "GET, POST", "/docs")
    assert answer.headers["allow"] == "GET, POST"
    answer = client.post(f"/v1/sessions/{session}")
    assert answer.headers["allow"] == "DELETE, GET, PATCH"


def test_a_cell_is_not_found_as_a_command_and_is_told_where_it_is(client: httpx2.Client, session: str) -> None:
    cell = run(client, session).json()["id"]
    answer = client.get(f"/v1/sessions/{session}/commands/{cell}")
    refused(answer, 404, "not_found", f"ask at /v1/sessions/{session}/cells/{cell}")
    refused(client.get(f"/v1/sessions/{session}/cells/c-nothing"), 404, "not_found", "c-nothing")


def test_a_request_id_is_taken_over_if_it_can_stand_in_a_log(server: Running) -> None:
    with server.client("") as client:
        assert client.get("/healthz", headers={"x-request-id": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
        assert client.get("/healthz", headers={"x-request-id": 'a"b {}'}).headers["x-request-id"].startswith("req-")
        assert client.get("/healthz", headers={"x-request-id": "x" * 65}).headers["x-request-id"].startswith("req-")
