"""How routes describe themselves: every status that they can answer, so that the OpenAPI document is true."""

from __future__ import annotations

from typing import Any

from workbench.wire import rest

_WORDS = {
    400: "The body is not JSON.",
    401: "No key, or one that is not or no more good.",
    403: "A good key, but not for this.",
    404: "There is no such thing in the key's project.",
    409: "Not now: a name is taken, or what it is about is ending or in use.",
    413: "The body is larger than the server takes.",
    415: "The body does not say that it is JSON.",
    422: "A value that cannot be used.",
    429: "More than the tier or the host allows.",
    500: "A defect of the server; its log has it under the request's id.",
    501: "What it needs is not set up on this server; the message says what to do.",
    502: "What the URL leads to failed, or broke off.",
    503: "The sandbox, the host or the store cannot be reached now.",
}
_ALWAYS = (401, 403, 422, 500, 503)
BODY = (400, 413, 415)

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """These, and those that every route under /v1 can answer."""
    return {status: problem(status) for status in sorted({*_ALWAYS, *statuses})}


def problem(status: int) -> dict[str, Any]:
    """One of them."""
    return {"model": rest.ProblemAnswer, "description": _WORDS[status]}
