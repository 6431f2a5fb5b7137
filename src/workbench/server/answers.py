"""Answers as bytes: shapes of `wire.rest` on success, the envelope of an error on everything else."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.responses import Response

from workbench.errors import Unauthenticated, WorkbenchError
from workbench.wire import rest
from workbench.wire.problems import problem_of, status_of

JSON = "application/json"
_RETRY_AFTER_S = "1"


def answer(value: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A success."""
    # By alias: a field may have a name that Python would not take.
    return Response(value.model_dump_json(by_alias=True), status, headers, media_type=JSON)


def nothing() -> Response:
    """A success without words."""
    return Response(status_code=204)


def refusal(
    error: WorkbenchError, request_id: str, status: int | None = None, headers: dict[str, str] | None = None
) -> Response:
    """Anything else."""
    code = status_of(error) if status is None else status
    told = rest.ProblemAnswer(error=problem_of(error, request_id))
    return Response(told.model_dump_json(), code, {**headers_of(error, code), **(headers or {})}, media_type=JSON)


def headers_of(error: WorkbenchError, status: int) -> dict[str, str]:
    """What clients are told beside the words."""
    headers = {}
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = 'Bearer realm="workbench"'
    if status >= 500 or status == 429:
        # Clients that retry by themselves would repeat what cannot succeed.
        headers["x-should-retry"] = "true" if error.retryable else "false"
        if error.retryable:
            headers["retry-after"] = _RETRY_AFTER_S
    return headers
