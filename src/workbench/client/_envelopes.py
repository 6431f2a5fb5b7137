"""Refusals in the words of the sessions API, whose codes are numbers, as problems of our own tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pydantic import ValidationError

from workbench.errors import (
    Conflict,
    InternalError,
    InvalidRequest,
    NotFound,
    ServerUnavailable,
    UpstreamFailed,
    WorkbenchError,
)
from workbench.wire import rest
from workbench.wire.composio_problems import ROWS, ApiProblem, ApiProblemAnswer

_TIMES = Counter(row.slug for row in ROWS.values())
# Slugs that say which class it was; others are those of several.
_BY_SLUG: Mapping[str, type[WorkbenchError]] = {row.slug: kind for kind, row in ROWS.items() if _TIMES[row.slug] == 1}
_BY_STATUS: Mapping[int, type[WorkbenchError]] = {
    404: NotFound,
    408: ServerUnavailable,
    409: Conflict,
    502: UpstreamFailed,
    503: ServerUnavailable,
    504: ServerUnavailable,
}


def problem_in(body: bytes) -> rest.Problem | None:
    """What such a refusal says; None if it is none."""
    try:
        return _problem(ApiProblemAnswer.model_validate_json(body).error)
    except ValidationError:
        return None


def problem_of(answer: object) -> rest.Problem | None:
    """The same, of what is JSON no more: as in an answer that had begun before anything was wrong."""
    try:
        return _problem(ApiProblemAnswer.model_validate(answer).error)
    except ValidationError:
        return None


def _problem(told: ApiProblem) -> rest.Problem:
    by_status = _BY_STATUS.get(told.status, InvalidRequest if 400 <= told.status < 500 else InternalError)
    kind = _BY_SLUG.get(told.slug, by_status)
    fix = told.suggested_fix or ""
    message = told.message if not fix or fix in told.message else f"{told.message}; {fix}"
    return rest.Problem(
        code=kind.code,
        message=message,
        context={"slug": told.slug, "status": str(told.status)},
        retryable=kind.retryable,
        request_id=told.request_id,
    )
