"""Everything that is wrong with a request to the sessions API is told in its own shape."""

from __future__ import annotations

import httpx2
from tests.composio.asking import SESSION, bad_request, refused

_HEADERS = {"content-type": "application/json"}


def test_what_is_no_json_or_none_of_an_object_is_a_bad_request(client: httpx2.Client, prefix: str) -> None:
    place = f"{prefix}{SESSION}"
    bad_request(client.post(place, content=b'{"user_id":', headers=_HEADERS), "not JSON")
    bad_request(client.post(place, content=b"\xff", headers=_HEADERS), "not JSON")
    bad_request(client.post(place, json=[]), "object")
    bad_request(client.post(place), "body is missing")


def test_an_unknown_address_and_method_are_told_with_what_there_is(client: httpx2.Client, prefix: str) -> None:
    refused(client.get(f"{prefix}/tool_router/sessions"), 404, "HTTP_NotFound", 10404, "did you mean")
    refused(client.get("/api/v9/x"), 404, "HTTP_NotFound", 10404)
    answer = client.put(f"{prefix}{SESSION}/trs_x", json={})
    refused(answer, 405, "HTTP_MethodNotAllowed", 10405, "DELETE, GET, PATCH")
    assert answer.headers["allow"] == "DELETE, GET, PATCH"


def test_a_name_that_nobody_can_have_is_a_session_that_is_not_there(client: httpx2.Client, prefix: str) -> None:
    for name in ("trs_nope", "Not%20a%20name", "x" * 100):
        refused(client.get(f"{prefix}{SESSION}/{name}"), 404, "ToolRouterV2_SessionNotFound", 4304, "not found")


def test_too_much_and_another_type_are_refused_before_they_are_read(client: httpx2.Client, prefix: str) -> None:
    place = f"{prefix}{SESSION}"
    large = client.post(place, json={"user_id": "u", "x": "y" * 2**20})
    refused(large, 413, "HTTP_PayloadTooLarge", 10413, "bytes at most")
    many = client.post(place, json={"user_id": "u", "x": [[]] * 100_001})
    refused(many, 413, "HTTP_PayloadTooLarge", 10413, "values at most")
    form = client.post(place, data={"user_id": "u"})
    refused(form, 415, "HTTP_UnsupportedMediaType", 10415, "application/json")


def test_a_configuration_that_is_too_large_to_be_kept_is_refused(client: httpx2.Client) -> None:
    tools = {f"kit{number}": {"enable": ["A" * 190] * 10} for number in range(200)}
    bad_request(client.post(f"/api/v3.1{SESSION}", json={"user_id": "u", "tools": tools}), "bytes")


def test_queries_that_we_do_not_know_are_left_aside(client: httpx2.Client, session: str) -> None:
    assert client.get(f"/api/v3.1{SESSION}/{session}", params={"toolkit_versions": "latest"}).status_code == 200
