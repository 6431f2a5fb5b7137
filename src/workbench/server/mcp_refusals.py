"""Refusals at MCP's addresses, in the words of the protocol: clients show no others."""

from __future__ import annotations

import json
import re

from starlette.responses import Response
from starlette.types import Scope

from workbench.errors import CallerError, WorkbenchError
from workbench.server.answers import JSON, refusal
from workbench.wire.problems import problem_of

_ADDRESSES = re.compile(r"/mcp/?|/tool_router/[^/]+/mcp/?")
# As JSON-RPC numbers them.
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603


def told(scope: Scope, error: WorkbenchError, request_id: str, headers: dict[str, str] | None = None) -> Response:
    """As elsewhere; to what is posted to MCP, with the same status and headers, a message with all of it inside."""
    usual = refusal(error, request_id, headers=headers)
    if scope["method"] != "POST" or not _ADDRESSES.fullmatch(scope["path"]):
        return usual
    code = _INVALID_REQUEST if isinstance(error, CallerError) else _INTERNAL_ERROR
    problem = problem_of(error, request_id).model_dump(mode="json")
    message = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.message, "data": problem}}
    kept = {name: one for name, one in usual.headers.items() if name not in ("content-length", "content-type")}
    return Response(json.dumps(message), usual.status_code, kept, media_type=JSON)
