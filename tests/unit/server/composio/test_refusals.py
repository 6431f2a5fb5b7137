"""What fails behind the sessions API is told in its shape, with whether to try again, which its clients do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from tests.unit.server.stand_in import asked

from workbench.errors import (
    Cancelled,
    Conflict,
    HostUnavailable,
    InvalidSetting,
    NotConfigured,
    QuotaExceeded,
    SandboxOff,
    ServerUnavailable,
    StoreUnavailable,
    UpstreamBadAnswer,
    WorkbenchError,
)


async def answer_to(problem: Exception) -> httpx2.Response:
    async def get(_: object) -> Any:
        raise problem

    async with asked() as app:
        app.bench.configurations = SimpleNamespace(get=get)  # what the test put there
        return await app.client.get("/api/v3/tool_router/session/trs_x")


def _fleeting() -> QuotaExceeded:
    problem = QuotaExceeded("too many at once")
    problem.retryable = True
    return problem


@pytest.mark.parametrize(
    ("problem", "status", "slug", "retry"),
    [
        (Conflict("it is ending"), 409, "HTTP_Conflict", "false"),
        (Conflict("changed", {"config_version": "2"}), 409, "ToolRouterV2_ConfigVersionConflict", "false"),
        (Cancelled("taken out"), 409, "HTTP_Conflict", "false"),
        (QuotaExceeded("full"), 429, "HTTP_TooManyRequests", "false"),
        (_fleeting(), 429, "HTTP_TooManyRequests", "true"),
        (HostUnavailable("away"), 503, "HTTP_ServiceUnavailable", "true"),
        (ServerUnavailable("leaving"), 503, "HTTP_ServiceUnavailable", "true"),
        (StoreUnavailable("away"), 503, "HTTP_ServiceUnavailable", "false"),
        (UpstreamBadAnswer("nonsense"), 502, "HTTP_BadGateway", "false"),
        (InvalidSetting("wrong"), 500, "ToolRouterV2_InternalServerError", "false"),
        (SandboxOff("no sandbox"), 400, "ToolRouterV2_SandboxDisabled", None),
        (NotConfigured("no model"), 400, "ToolRouterV2_NotConfigured", None),
    ],
)
async def test_each_failure_has_its_status_and_says_whether_to_try_again(
    problem: WorkbenchError, status: int, slug: str, retry: str | None
) -> None:
    answer = await answer_to(problem)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"], error["slug"]) == (status, status, slug)
    assert answer.headers.get("x-should-retry") == retry
    assert error["message"] == problem.message


async def test_a_defect_is_told_with_its_request_id_and_nothing_of_what_it_was() -> None:
    answer = await answer_to(RuntimeError("the secret is hunter2"))
    error = answer.json()["error"]
    assert (answer.status_code, error["slug"], error["code"]) == (500, "ToolRouterV2_InternalServerError", 4340)
    assert answer.headers["x-should-retry"] == "false"
    assert error["request_id"] in error["message"]
    assert "hunter2" not in answer.text
