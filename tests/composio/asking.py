"""What tests of the sessions API share: how errors look, and sessions."""

from __future__ import annotations

from typing import Any

import httpx2

SESSION = "/tool_router/session"
SIX = [
    "COMPOSIO_SEARCH_TOOLS", "COMPOSIO_GET_TOOL_SCHEMAS", "COMPOSIO_MULTI_EXECUTE_TOOL", "COMPOSIO_MANAGE_CONNECTIONS",
    "COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL",
]  # fmt: skip


def refused(answer: httpx2.Response, status: int, slug: str, code: int, *words: str) -> dict[str, Any]:
    """The error of an answer that is none else, in the shape that SDKs read; with these words in it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert set(told) == {"error"}, told
    error: dict[str, Any] = told["error"]
    assert set(error) - {"suggested_fix", "errors"} == {"message", "code", "slug", "status", "request_id"}
    assert (error["status"], error["slug"], error["code"]) == (status, slug, code)
    assert error["request_id"] == answer.headers["x-request-id"]
    for word in words:
        assert word in error["message"]
    return error


def bad_request(answer: httpx2.Response, *words: str) -> dict[str, Any]:
    """A value that cannot be used."""
    return refused(answer, 400, "ToolRouterV2_BadRequest", 4300, *words)


def run_cell(client: httpx2.Client, session: str, code: str) -> str:
    """Text of the last value."""
    answer = client.post(f"/v1/sessions/{session}/cells", json={"code": code})
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["result"]["results"]["text"]
    return text
