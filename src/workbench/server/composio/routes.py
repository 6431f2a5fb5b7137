"""How routes of the sessions API are declared: once, for both of its addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response
from starlette.routing import BaseRoute

from workbench.server.routes import Responses
from workbench.wire.composio_problems import ApiProblemAnswer

# The first is what SDKs ask, and what the OpenAPI document describes; older ones and the local helper ask the second.
PREFIXES = ("/api/v3.1", "/api/v3")

Handler = Callable[..., Awaitable[Response]]

_WORDS = {
    400: "The body is not JSON, or has a value that cannot be used.",
    401: "No key, one that is not or no more good, or several different ones.",
    403: "A good key, but not for this.",
    404: "There is no such thing in the key's project.",
    409: "Not now: the configuration is another one by now, or what it is about is ending or in use.",
    413: "The body is larger than the server takes.",
    415: "The body does not say that it is JSON.",
    429: "More than the tier or the host allows.",
    500: "A defect of the server; its log has it under the request's id.",
    502: "What was asked of another server failed.",
    503: "The sandbox, the host or the store cannot be reached now.",
}
_ALWAYS = (400, 401, 403, 500, 503)
BODY = (413, 415)


def problems(*statuses: int) -> Responses:
    """These, and those that every route of the API can answer."""
    return {
        status: {"model": ApiProblemAnswer, "description": _WORDS[status]} for status in sorted({*_ALWAYS, *statuses})
    }


class Api:
    """Routes about one thing. `routes` has each of them twice, once under each prefix."""

    def __init__(self) -> None:
        self._routers = tuple(
            APIRouter(prefix=prefix, tags=["composio"], include_in_schema=prefix == PREFIXES[0]) for prefix in PREFIXES
        )

    @property
    def routes(self) -> list[BaseRoute]:
        """For the app."""
        return [route for router in self._routers for route in router.routes]

    def route(
        self,
        method: str,
        path: str,
        *,
        operation_id: str,
        summary: str,
        answers: type[BaseModel] | Any,
        responses: Responses,
        status: int = 200,
    ) -> Callable[[Handler], Handler]:
        """Declare the function below it as what answers `method` at `path`, which begins after the prefix."""

        def declare(handler: Handler) -> Handler:
            for router in self._routers:
                router.add_api_route(
                    path,
                    handler,
                    methods=[method],
                    operation_id=operation_id,
                    summary=summary,
                    response_model=answers,
                    status_code=status,
                    responses=responses,
                )
            return handler

        return declare
