"""Refusals in the words of the address that was asked: of REST, of MCP, or of the sessions API."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.types import Scope

from workbench.errors import WorkbenchError
from workbench.server import mcp_refusals
from workbench.server.answers import JSON, headers_of
from workbench.wire.composio_problems import api_problem, row_of

API = "/api/"
"""Below which everything is the sessions API's"""
_CONFLICT = 409


def told(scope: Scope, error: WorkbenchError, request_id: str, headers: dict[str, str] | None = None) -> Response:
    """Of whatever was asked."""
    if scope["path"].startswith(API):
        return api_refusal(error, request_id, headers)
    return mcp_refusals.told(scope, error, request_id, headers)


def api_refusal(
    error: WorkbenchError, request_id: str, headers: dict[str, str] | None = None, errors: Sequence[str] = ()
) -> Response:
    """Of the sessions API."""
    status = row_of(error).status
    told_beside = headers_of(error, status)
    if status == _CONFLICT:
        # Its clients would try again by themselves, and find what they found.
        told_beside["x-should-retry"] = "true" if error.retryable else "false"
    body = api_problem(error, request_id, errors).model_dump_json(exclude_none=True)
    return Response(body, status, {**told_beside, **(headers or {})}, media_type=JSON)
