"""Whether the server lives, whether it can work, and what it has counted."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from workbench import __version__
from workbench.model.access import Scope
from workbench.server.addresses import is_loopback, without_port
from workbench.server.answers import answer
from workbench.server.auth import authenticated, require
from workbench.server.door import Door
from workbench.server.metrics import CONTENT_TYPE
from workbench.server.questions import check_question
from workbench.server.routes import problem
from workbench.wire import rest

router = APIRouter(tags=["health"])

_OF_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")


# Those who watch often ask for the status alone.
@router.head("/healthz", include_in_schema=False)
@router.get(
    "/healthz",
    operation_id="healthz",
    summary="Whether it lives",
    response_model=rest.Health,
    responses={413: problem(413), 422: problem(422), 500: problem(500)},
)
async def healthz(request: Request) -> Response:
    """It answers, whatever else is wrong. For who restarts it if it does not."""
    check_question(request)
    return answer(rest.Health(status="ok", version=__version__))


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Whether it can work",
    response_model=rest.Health,
    responses={
        413: problem(413),
        422: problem(422),
        500: problem(500),
        503: {"model": rest.Health, "description": "It cannot work now; `checks` says why."},
    },
)
async def readyz(request: Request) -> Response:
    """Whether records and host answer. For who sends requests to it."""
    check_question(request)
    door: Door = request.app.state.door
    checks = await door.service.check()
    if door.stopping.is_set():
        checks = {**checks, "server": "it is about to leave"}
    ready = all(told.startswith("ok") for told in checks.values())
    told = rest.Health(status="ok" if ready else "unavailable", version=__version__, checks=checks)
    return answer(told, 200 if ready else 503)


@router.get(
    "/metrics",
    operation_id="metrics",
    summary="What was counted",
    response_class=Response,
    responses={
        200: {"description": "In Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        401: problem(401),
        403: problem(403),
        413: problem(413),
        422: problem(422),
        500: problem(500),
        503: problem(503),
    },
)
async def metrics(request: Request) -> Response:
    """For Prometheus. Without a key only from this machine, of a server that no other reaches; else with admin."""
    door: Door = request.app.state.door
    # BARRIER: how much is done by whom is nobody else's business; a proxy on this machine brings others along; held by
    # tests/server/test_watching.py.
    if not (door.options.metrics_open and _came_straight(request)):
        require(await authenticated(door, request.headers), Scope.ADMIN)
    check_question(request)
    return Response(door.metrics.text(), media_type=CONTENT_TYPE)


def _came_straight(request: Request) -> bool:
    """As far as that can be seen: proxies add headers, or ask for another name, or speak a version that nobody does."""
    headers = request.headers
    if any(name in headers for name in _OF_PROXIES) or request.scope["http_version"] != "1.1":
        return False
    return is_loopback(without_port(headers.get("host", "")))
